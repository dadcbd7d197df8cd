"""Documents in one row stay apart in attention, and cost nothing to tell apart in long rows."""

import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from tests.packed_by_hand import Piece, Row, batch_of
from tests.written import pipeline
from zephon import Dataset, InMemoryShard


def lists(*documents):
    """Make a dataset of token lists, in one shard."""
    shards = {0: InMemoryShard([{"input_ids": list(tokens)} for tokens in documents])}
    return Dataset.from_dict("lists", shards)


def packed(data, max_length, microbatch=1, **changes):
    pipe = pipeline(data).pack_flat(max_length, algorithm="wrap", **changes)
    return pipe.batch(microbatch, drop_last=False)


# What attention makes of the bounds


def attend(tokens, how, out):
    """Run one causal attention layer over a row; documents are kept apart as ``how`` says."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention

    table = torch.linspace(-1, 1, 64 * 16, dtype=torch.float32).sin().reshape(64, 16)
    x = table[tokens][None, None]
    n = len(tokens)
    ids = out["document_ids"][0]
    if how == "varlen":
        bounds = out["cu_seqlens"][0].tolist()
        pieces = [
            scaled_dot_product_attention(*[x[:, :, a:b]] * 3, is_causal=True)
            for a, b in pairwise(bounds)
            if b > a
        ]
        return torch.cat(pieces, dim=2)[0, 0] @ table.T
    if how == "positions alone":
        return scaled_dot_product_attention(x, x, x, is_causal=True)[0, 0] @ table.T
    if how == "flex":

        def same(b, h, q, k):
            return (q >= k) & (ids[q] == ids[k])

        mask = create_block_mask(same, 1, 1, n, n, device="cpu")
        return flex_attention(x, x, x, block_mask=mask)[0, 0] @ table.T
    mask = (ids[:, None] == ids[None]) & torch.ones(n, n, dtype=torch.bool).tril()
    return scaled_dot_product_attention(x, x, x, attn_mask=mask)[0, 0] @ table.T


def losses(documents, how):
    """Train on documents in one row of a wrap pack; give the loss of each document's tokens."""
    import torch

    width = sum(map(len, documents))
    (batch,) = packed(lists(*documents), width)
    out = batch.to_training(
        return_labels=True, return_cu_seqlens=True, return_document_ids=True,
        mask_document_boundaries=True,
    )  # fmt: skip
    logits = attend(out["input_ids"][0], how, out)
    loss = torch.nn.functional.cross_entropy(logits, out["labels"][0], reduction="none")
    ids = out["document_ids"][0]
    return [loss[ids == number].tolist() for number in range(len(documents))]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("how", ["varlen", "mask", "flex"])
def test_changing_one_document_changes_no_other_one_s_loss(how):
    documents = [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10, 11, 12]]
    before = losses(documents, how)
    changes = [(1, 0)] if how == "flex" else [(i, at) for i in range(3) for at in (0, -1)]
    for changed, at in changes:  # the flexible kernel is slow on a processor
        other = [list(tokens) for tokens in documents]
        other[changed][at] += 30
        after = losses(other, how)
        assert [number for number in range(3) if after[number] != before[number]] == [changed]


def test_positions_that_begin_anew_keep_no_documents_apart():
    """Why ``to_training`` says which output a kernel needs: without one, everything is one."""
    documents = [[1, 2, 3, 4], [5, 6, 7]]
    before = losses(documents, "positions alone")
    documents[0][1] += 30
    assert losses(documents, "positions alone")[1] != before[1]


# Long rows of many documents

LONG = 131_072


def long_batch(documents, packing):
    cuts = np.linspace(0, LONG, documents + 1).astype(int).tolist()
    row = Row([Piece(list(range(a, b))) for a, b in pairwise(cuts)])
    return batch_of([row], packing, positions=packing == "flat")


EVERYTHING = {
    "return_labels": True,
    "return_loss_mask": True,
    "return_padding_mask": True,
    "return_num_valid_tokens": True,
    "return_cu_seqlens": True,
    "return_document_ids": True,
    "mask_document_boundaries": True,
    "dtype": np.int64,
}


@pytest.mark.parametrize("packing", ["flat", "sequences"])
def test_work_in_python_does_not_grow_with_the_documents_of_a_row(packing):
    """Calls are counted, of functions in Python and in C, between 4 documents and 4,000."""

    def calls(batch):
        count = 0

        def event(frame, kind, argument):
            nonlocal count
            count += kind in ("call", "c_call")

        sys.setprofile(event)
        try:
            batch.to_training(**EVERYTHING)
        finally:
            sys.setprofile(None)
        return count

    few, many = long_batch(4, packing), long_batch(4_000, packing)
    few.to_training(**EVERYTHING)  # what is made once a process is made
    assert calls(few) == calls(many) < 2_000


@pytest.mark.parametrize("packing", ["flat", "sequences"])
def test_memory_grows_with_tokens_not_with_their_square(packing):
    batch = long_batch(4_000, packing)
    tracemalloc.start()
    try:
        out = batch.to_training(**EVERYTHING)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out["cu_seqlens"].shape == (1, 4_001)
    assert out["document_ids"][0, -1] == 3_999
    assert out["num_valid_tokens"] == LONG - 4_000
    assert peak < 100 * LONG
