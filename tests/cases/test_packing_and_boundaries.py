"""Documents end to end in rows: every token once, and boundaries that no token value can move."""

import json
import shutil
import sys
import threading
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packed_by_hand import Piece, Row, batch_of, by_hand
from tests.properties.recipes import token_dataset, tokens_of
from tests.written import dataset, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard
from zephon.types import SampleBatch, SampleMeta, SampleRecord

EOS = 2


def lists(*documents):
    """Make a dataset of token lists, in one shard."""
    shards = {0: InMemoryShard([{"input_ids": list(tokens)} for tokens in documents])}
    return Dataset.from_dict("lists", shards)


def packed(data, max_length, microbatch=1, **changes):
    pipe = pipeline(data).pack_flat(max_length, algorithm="wrap", **changes)
    return pipe.batch(microbatch, drop_last=False)


def training(data, max_length, **arguments):
    (batch,) = packed(data, max_length)
    return batch.to_training(**{"dtype": np.int64, **arguments})


# Boundaries come from packing


def test_boundaries_are_those_of_documents_not_of_end_tokens():
    """[1, 2, EOS] and [3, EOS, 4, EOS]: two documents, though there are three EOS."""
    found = training(lists([1, 2, EOS], [3, EOS, 4, EOS]), 7, return_cu_seqlens=True)
    assert found["input_ids"].tolist() == [[1, 2, EOS, 3, EOS, 4, EOS]]
    assert found["positions"].tolist() == [[0, 1, 2, 0, 1, 2, 3]]
    assert found["cu_seqlens"].tolist() == [[0, 3, 7]]
    assert found["max_seqlen"].tolist() == [4]


def test_a_document_without_an_end_token_ends_all_the_same():
    found = training(lists([5, 6, 7], [8, 9, 10, 11]), 7, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 7]]


def test_a_document_that_the_row_cuts_off_before_its_end_token_is_a_segment():
    one, two = (
        batch.to_training(return_cu_seqlens=True, dtype=np.int64)
        for batch in packed(lists([1, 2, EOS], [3, 4, 5, 6, 7, EOS], [8, EOS]), 5)
    )
    assert one["cu_seqlens"].tolist() == [[0, 3, 5]]
    assert two["input_ids"].tolist() == [[5, 6, 7, EOS, 8]]
    assert two["positions"].tolist() == [[0, 1, 2, 3, 0]]
    assert two["cu_seqlens"].tolist() == [[0, 4, 5]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 5))
def test_token_values_move_no_boundary(lengths, max_length, value):
    def positions(token):
        documents = [[token(row, at) for at in range(n)] for row, n in enumerate(lengths)]
        return [
            record.payload["positions"]
            for batch in packed(lists(*documents), max_length)
            for record in batch.records
        ]

    assert positions(lambda row, at: value) == positions(lambda row, at: 100 * row + at)


def test_labels_shift_over_the_row_and_inputs_lose_their_last_token():
    found = training(lists([1, 2, EOS], [3, EOS, 4, EOS]), 7, return_labels=True)
    assert found["input_ids"].tolist() == [[1, 2, EOS, 3, EOS, 4]]
    assert found["labels"].tolist() == [[2, EOS, 3, EOS, 4, EOS]]
    assert found["positions"].tolist() == [[0, 1, 2, 0, 1, 2]]


def test_losing_the_last_token_loses_no_boundary():
    """A document of one token at the end of the row is gone from the inputs with its segment."""
    found = training(lists([1, 2, 3], [4, 5], [6]), 6, return_labels=True, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 5]]
    found = training(lists([1, 2, 3], [4, 5, 6]), 6, return_labels=True, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 5]]


def test_a_tokenizer_without_any_end_token_packs_by_documents(tmp_path, tokenizer_file):
    folder = tmp_path / "bare"
    folder.mkdir()
    shutil.copy(f"{tokenizer_file}/tokenizer.json", folder)
    encoded = texts_to_tokens(folder)
    texts = ["the tree", "ash", "", "größe and the wood"]
    sizes = [len(encoded(text)) for text in texts]
    pipe = pipeline(dataset("jsonl", tmp_path / "words", [{"text": text} for text in texts]))
    pipe.tokenize(tokenizer_id=str(folder), field="text", special_tokens="none")
    (record,) = pipe.pack_flat(sum(sizes), algorithm="wrap")
    assert record.payload["input_ids"] == [t for text in texts for t in encoded(text)]
    assert record.payload["positions"] == [at for n in sizes for at in range(n)]


# Padding is known by length


def test_a_real_end_token_keeps_its_label_where_padding_has_the_same_id(tmp_path, tokenizer_file):
    folder = tmp_path / "pad-is-eos"
    shutil.copytree(tokenizer_file, folder)
    names = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<eos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    encoded = texts_to_tokens(folder)
    data = dataset(
        "jsonl", tmp_path / "words", [{"text": "ash"}, {"text": "the tree and the wood"}]
    )
    pipe = pipeline(data).tokenize(tokenizer_id=str(folder), field="text", padding="longest")
    (batch,) = pipe.batch(2)
    found = batch.to_training(return_labels=True, return_padding_mask=True, dtype=np.int64)
    short, long = [1, *encoded("ash"), EOS], [1, *encoded("the tree and the wood"), EOS]
    gap = len(long) - len(short)
    assert found["input_ids"][0].tolist() == (short + [EOS] * gap)[:-1]
    assert found["labels"][0].tolist() == short[1:] + [-100] * gap
    assert found["labels"][0].tolist().count(EOS) == 1
    assert found["labels"][1].tolist() == long[1:]
    assert found["padding_mask"].sum() == gap - 1


def test_packed_rows_have_no_padding_at_all():
    data = token_dataset("prose", [3, 9, 1, 14, 2, 8, 5], 1)
    for batch in packed(data, 6, 2):
        found = batch.to_training(
            return_labels=True, return_padding_mask=True, return_num_valid_tokens=True,
            dtype=np.int64,
        )  # fmt: skip
        assert not found["padding_mask"].any()
        assert found["num_valid_tokens"] == 5 * len(batch)
        assert [record.meta.padding_length for record in batch.records] == [0] * len(batch)


# Documents of every length

L = 16


@pytest.mark.parametrize("order", ["as listed", "reversed"])
@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_every_token_of_documents_of_any_length_comes_once(order, runner):
    lengths = [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L, 0, 1, 1]
    lengths = lengths[::-1] if order == "reversed" else lengths
    data = token_dataset("prose", lengths, 1)
    made = [t for row in data.backend["shards"][0].getsamples(range(10)) for t in row["input_ids"]]
    pipe = packed(data, L, 2).options(runner=runner)
    found = [t for batch in pipe for t in tokens_of(batch)]
    whole = sum(lengths) // L * L
    assert found == made[:whole]
    (part,) = pipe.accounting().values()
    assert part["tokens_delivered"] == whole
    assert part["tokens_dropped"] == {"end_of_data": sum(lengths) - whole}


def test_a_document_of_many_rows_fills_them_alone():
    rows = [record for batch in packed(lists(range(10 * L)), L) for record in batch.records]
    assert len(rows) == 10
    for number, record in enumerate(rows):
        assert record.payload["input_ids"] == list(range(number * L, (number + 1) * L))
        assert record.payload["positions"] == list(range(L))
        assert record.meta.lineage == (number * L,)
        (ref,) = record.meta.contribution_refs()
        assert ref.is_last_child is (number == 9)


@pytest.mark.parametrize("max_length", [1, 2, 1000])
def test_rows_of_extreme_lengths(max_length):
    found = [t for batch in packed(lists([1, 2, 3], [], [4, 5, 6, 7]), max_length)
             for t in tokens_of(batch)]  # fmt: skip
    assert found == list(range(1, 1 + 7 // max_length * max_length))


def test_empty_documents_make_no_segment_and_no_row():
    found = training(lists([], [1, 2], [], [], [3], []), 3, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 2, 3]]
    (batch,) = packed(lists([], [1, 2], [], [], [3], []), 3)
    (record,) = batch.records
    assert [ref.cursor.sample_id[2] for ref in record.meta.contribution_refs()] == [1, 4]
    assert list(packed(lists([], [], []), 3)) == []


def test_a_batch_of_empty_texts_alone_is_no_crash(tmp_path, tokenizer_file):
    data = dataset("jsonl", tmp_path, [{"text": ""}] * 6)

    def make(special):
        return pipeline(data).tokenize(
            tokenizer_id=tokenizer_file, field="text", special_tokens=special
        )

    assert list(make("none").pack_flat(4, algorithm="wrap").batch(1)) == []
    (batch,) = make("none").batch(6)
    assert [record.payload["input_ids"] for record in batch.records] == [[]] * 6
    (batch,) = make("eos").pack_flat(6, algorithm="wrap").batch(1)
    assert tokens_of(batch) == [EOS] * 6
    assert batch.records[0].payload["positions"] == [0] * 6


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(1, 12), st.booleans())
def test_segments_are_those_of_documents_laid_end_to_end_by_hand(lengths, max_length, positions):
    """The boundary oracle: document numbers of each token, by hand, against spans and positions."""
    owner = [row for row, n in enumerate(lengths) for _ in range(n)]
    owner = owner[: len(owner) // max_length * max_length]
    by_hand = [owner[at : at + max_length] for at in range(0, len(owner), max_length)]
    data = token_dataset("prose", lengths, 1)
    found = []
    for batch in packed(data, max_length, emit_positions=positions):
        (record,) = batch.records
        assert ("positions" in record.payload) is positions
        rows = [ref.cursor.sample_id[2] for ref in record.meta.contribution_refs()]
        if positions:
            segment = np.cumsum(np.array(record.payload["positions"]) == 0) - 1
            found.append([rows[s] for s in segment.tolist()])
        else:
            found.append(rows)
    if not positions:
        by_hand = [list(dict.fromkeys(row)) for row in by_hand]
    assert found == by_hand


# The boundary oracle: every output, one token after the other


@st.composite
def packed_by_hand(draw):
    """Rows of pieces, some of no tokens; flat rows are padded to one width, or are all padding."""
    token = st.integers(0, 4)  # the pad id and the end of a document are among them
    packing = draw(st.sampled_from(["flat", "sequences"]))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        pieces = []
        for _ in range(draw(st.integers(1, 4))):
            tokens = draw(st.lists(token, max_size=5))
            flags = draw(st.lists(st.integers(0, 1), min_size=len(tokens), max_size=len(tokens)))
            pieces.append(Piece(tokens, draw(st.integers(0, 2)), draw(st.booleans()), flags=flags))
        rows.append(Row(pieces))
    lengths = [sum(len(piece.tokens) for piece in row.pieces) for row in rows]
    if packing == "flat":
        width = max(lengths) + draw(st.integers(0, 2))
        for row, length in zip(rows, lengths, strict=True):
            row.padding = width - length
    return packing, rows, max(lengths)


def forms_of(packing, rows, flagged, positions):
    """Give the same rows in every form in which a batch may hold them."""
    flags = "loss_mask" if flagged else None
    kind = {"list": "keep_list", "np": "numpy_array", "pt": "torch_tensor"}

    def engine(container="list"):
        how = {"pack_payloads": kind[container]} if packing == "sequences" else {}
        return batch_of(rows, packing, flags=flags, positions=positions, container=container, **how)

    yield "columns", engine()
    looked_at = engine()
    for record in looked_at.records[1:]:
        record.payload  # noqa: B018
    yield "columns that were looked at", looked_at
    for container in kind:
        yield f"records of {container}", SampleBatch(engine(container).records)
    if packing == "sequences":
        documents = [
            [
                {"input_ids": piece.tokens, **({flags: piece.flags} if flags else {})}
                for piece in row.pieces
            ]
            for row in rows
        ]
        yield (
            "records of a user",
            SampleBatch(
                SampleRecord(SampleMeta((0, 0, i), 0, 0, i), {"packed_samples": row})
                for i, row in enumerate(documents)
            ),
        )
        function = batch_of(rows, packing, flags=flags, pack_payloads=tuple)
        yield "columns with a function", function


@settings(max_examples=100, deadline=None)
@given(packed_by_hand(), st.data())
def test_every_output_is_that_of_a_walk_over_the_tokens(made, data):
    """Bounds, ids, masks, labels, positions: by hand, in every form and with every option."""
    packing, rows, longest = made
    draw = data.draw
    labels, flatten, flagged, positions = (draw(st.booleans()) for _ in range(4))
    boundaries = labels and draw(st.booleans())
    eos = draw(st.sampled_from([None, 2])) if labels else None
    width = longest if packing == "sequences" else longest + rows[0].padding + 2
    pads = ["longest", max(width, 1), width + 3]
    pad_to = draw(st.sampled_from([None, *pads] if packing == "flat" else pads))
    pad = draw(st.sampled_from([0, 2, 9]))  # as packed padding, as EOS in documents, neither
    options = {
        "return_labels": labels,
        "flatten": flatten,
        "mask_document_boundaries": boundaries,
        "eos_mask_loss": eos is not None,
        "eos_token_id": eos,
        "pad_to": pad_to,
        "pad_token_id": pad if pad_to else None,
        "return_cu_seqlens": True,
        "return_document_ids": True,
        "return_padding_mask": True,
        "return_loss_mask": labels,
        "return_num_valid_tokens": labels,
        "dtype": np.int64,
        "exclude_fields": ("ids", "texts") if labels else ("ids", "texts", "loss_mask"),
    }
    expected = by_hand(
        rows,
        labels=labels,
        flatten=flatten,
        boundaries=boundaries,
        eos=eos,
        pad_to=pad_to,
        pad=pad,
        flagged=flagged,
    )
    if not positions and packing == "flat":
        del expected["positions"]
    whole = {"cu_seqlens", "max_seqlen", "num_valid_tokens"}
    if flatten:
        expected = {
            name: value if name in whole else [v for row in value for v in row]
            for name, value in expected.items()
        }
    for form, batch in forms_of(packing, rows, flagged, positions and packing == "flat"):
        found = batch.to_training(**options)
        as_lists = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in found.items()
        }
        assert as_lists == expected, form


# Rows that hold padding, put together by hand


def shape_of(out, *names):
    return [out[name].tolist() for name in names]


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("pad", [0, EOS])
def test_a_pad_tail_is_a_segment_of_its_own_whatever_its_id(positions, pad):
    row = Row([Piece([1, 2, EOS]), Piece([3, EOS, 4, EOS])], padding=1)
    batch = batch_of([row], "flat", positions=positions, pad=pad)
    out = batch.to_training(return_cu_seqlens=True, return_document_ids=True, dtype=np.int64)
    assert shape_of(out, "cu_seqlens", "max_seqlen") == [[[0, 3, 7, 8]], [4]]
    assert out["document_ids"].tolist() == [[0, 0, 0, 1, 1, 1, 1, -1]]
    assert ("positions" in out) is positions


def test_a_tokenizer_s_end_tokens_inside_a_document_make_no_mask():
    row = Row([Piece([EOS, EOS, 1, EOS]), Piece([EOS])], padding=2)
    found = batch_of([row], "flat", pad=EOS).to_training(
        return_labels=True, return_document_ids=True, mask_document_boundaries=True, dtype=np.int64
    )
    assert found["labels"].tolist() == [[EOS, 1, EOS, -100, -100, -100]]
    assert found["document_ids"].tolist() == [[0, 0, 0, 0, 1, -1]]


@pytest.mark.parametrize("how", ["flat", "sequences", "records"])
def test_the_last_real_end_token_keeps_its_label_before_padding_of_the_same_id(how):
    tokens, padding = [5, 6, EOS], {"flat": 2}.get(how, 0)
    if how == "records":
        batch = SampleBatch([SampleRecord(SampleMeta((0, 0, 0), 0, 0), {"input_ids": tokens})])
    else:
        batch = batch_of([Row([Piece(tokens)], padding)], how, pad=EOS)
    found = batch.to_training(
        return_labels=True, return_num_valid_tokens=True, return_padding_mask=True,
        pad_to=5, pad_token_id=EOS, dtype=np.int64,
    )  # fmt: skip
    assert found["input_ids"].tolist() == [[5, 6, EOS, EOS]]
    assert found["labels"].tolist() == [[6, EOS, -100, -100]]
    assert found["padding_mask"].tolist() == [[False, False, False, True]]
    assert found["num_valid_tokens"] == 2


def test_a_document_that_begins_with_the_last_token_still_masks_the_label_before_it():
    """The shift takes the document out of the inputs, but its token is the last label."""
    row = Row([Piece([1, 2]), Piece([3])])
    found = batch_of([row], "flat").to_training(
        return_labels=True, mask_document_boundaries=True, return_document_ids=True, dtype=np.int64
    )
    assert shape_of(found, "labels", "document_ids") == [[[2, -100]], [[0, 0]]]


@pytest.mark.parametrize("length", [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L])
def test_a_document_of_any_length_is_trained_on_but_where_a_row_begins(length):
    """One token a row and the first of a document are never labels; every other token is once."""
    lengths = [3, length, L - 3 - length % L]
    seen = []
    for batch in packed(token_dataset("prose", lengths, 1), L):
        found = batch.to_training(
            return_labels=True, mask_document_boundaries=True, return_document_ids=True,
            return_cu_seqlens=True, dtype=np.int64,
        )  # fmt: skip
        seen += [label for label in found["labels"][0].tolist() if label >= 0]
        bounds = [at for at in found["cu_seqlens"][0].tolist() if at < L - 1]
        ids = found["document_ids"][0]
        assert [int(np.argmax(ids == number)) for number in range(ids.max() + 1)] == bounds
    rows = token_dataset("prose", lengths, 1).backend["shards"][0].getsamples(range(3))
    stream = [(at, token) for row in rows for at, token in enumerate(row["input_ids"])]
    stream = stream[: len(stream) // L * L]
    assert seen == [token for i, (at, token) in enumerate(stream) if at and i % L]


# A mask of what is trained on, made before packing


def turns(*parts):
    """Give tokens and loss mask of a conversation: (speaker, tokens) in order."""
    tokens = [token for _, said in parts for token in said]
    return tokens, [int(who == "assistant") for who, said in parts for _ in said]


@pytest.mark.parametrize("boundaries", [False, True])
def test_exactly_the_assistant_s_tokens_are_labels_in_packed_rows(boundaries):
    """Three turns, a tool between them, the end of a turn included; a row cuts the second one."""
    chats = [
        turns(("user", [10, 11]), ("assistant", [12, EOS]), ("tool", [13]), ("user", [14]),
              ("assistant", [15, 16, EOS])),
        turns(("assistant", [20, EOS]), ("user", [21]), ("assistant", [22, 23, EOS])),
    ]  # fmt: skip
    rows = [{"input_ids": tokens, "loss_mask": mask} for tokens, mask in chats]
    data = Dataset.from_dict("chats", {0: InMemoryShard(rows)})
    found, stream = [], [pair for chat in chats for pair in zip(*chat, strict=True)]
    for batch in packed(data, 5):
        out = batch.to_training(
            return_labels=True, return_loss_mask=True, dtype=np.int64,
            mask_document_boundaries=boundaries,
        )  # fmt: skip
        found.append((out["labels"][0].tolist(), out["loss_mask"][0].tolist()))
    begins = len(chats[0][0])
    for number, (labels, mask) in enumerate(found):
        for at, label in enumerate(labels, 5 * number + 1):
            token, said = stream[at]
            counts = said and not (boundaries and at == begins)
            assert label == (token if counts else -100)
            assert mask[at - 5 * number - 1] == counts
    assert len(found) == 3


def test_a_loss_mask_goes_with_the_documents_of_a_sequence_row():
    rows = [
        Row([Piece([1, 2, 3], flags=[0, 0, 1]), Piece([4, 5], flags=[1, 1])]),
        Row([Piece([6, 7], flags=[0, 0])]),
    ]
    found = batch_of(rows, "sequences", flags="loss_mask").to_training(
        return_labels=True, pad_to="longest", return_num_valid_tokens=True, dtype=np.int64
    )
    assert found["labels"].tolist() == [[-100, 3, 4, 5], [-100] * 4]
    assert found["num_valid_tokens"] == 3


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
    for changed in range(3):
        for at in (0, -1):
            other = [list(tokens) for tokens in documents]
            other[changed][at] += 30
            after = losses(other, how)
            assert [
                number for number in range(3) if after[number] != before[number]
            ] == [changed]  # fmt: skip


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


# Every way to pack

FITS = ("first_fit", "best_fit", "best_fit_decreasing")
WRAPS = ("wrap", "best_fit_wrap")


def packed_as(data, algorithm, call="pack_flat", max_length=L):
    arguments = {"algorithm": algorithm}
    if algorithm in ("first_fit", "best_fit"):
        arguments["num_bins"] = 3
    if call == "pack_flat":
        arguments["pad_token_id"] = 0
    return getattr(pipeline(data), call)(max_length, **arguments).batch(3, drop_last=False)


def documents_in(batch, **arguments):
    """Give the tokens of each document in each row, as ``document_ids`` tells them apart."""
    found = batch.to_training(
        return_document_ids=True, pad_to=L, return_padding_mask=True, dtype=np.int64, **arguments
    )
    for tokens, ids, pads in zip(
        found["input_ids"], found["document_ids"], found["padding_mask"], strict=True
    ):
        assert ((ids < 0) == pads).all()
        yield [tokens[ids == number].tolist() for number in range(ids.max() + 1)]


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
@pytest.mark.parametrize("algorithm", [*FITS, *WRAPS])
def test_documents_of_any_length_in_every_mode(algorithm, call):
    """Wrapping modes deliver every token once; the others whole documents, the rest counted."""
    lengths = [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L, 0, 1, 1]
    data = token_dataset("prose", lengths, 1)
    whole = [row["input_ids"] for row in data.backend["shards"][0].getsamples(range(10))]
    pipe = packed_as(data, algorithm, call)
    found = [document for batch in pipe for row in documents_in(batch) for document in row]
    (part,) = pipe.accounting().values()
    dropped = sum(part["tokens_dropped"].values())
    assert part["tokens_delivered"] + dropped == sum(lengths)
    if algorithm in FITS:
        assert sorted(found) == sorted(row for row in whole if 0 < len(row) <= L)
        assert part["tokens_dropped"] == {"oversized": sum(n for n in lengths if n > L)}
    else:
        made = [token for row in whole for token in row]
        delivered = sorted(token for document in found for token in document)
        assert delivered == made[: len(made) - dropped]
        assert dropped == (sum(lengths) % L if algorithm == "wrap" else 0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=14),
    st.sampled_from([*FITS, *WRAPS]),
    st.sampled_from(["pack_flat", "pack_sequences"]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:the data end before", "ignore:pack_")
def test_ids_bounds_and_positions_are_those_that_the_tokens_tell(lengths, algorithm, call, labels):
    """Tokens say which document they are of and where in it; nothing else is looked at here."""
    for batch in packed_as(token_dataset("prose", lengths, 1), algorithm, call):
        out = batch.to_training(
            return_labels=labels, mask_document_boundaries=labels, return_cu_seqlens=True,
            return_document_ids=True, pad_to=L, dtype=None,
        )  # fmt: skip
        whole = batch.to_training(pad_to=L, dtype=None)["input_ids"]
        for i, (row, inputs) in enumerate(zip(whole, out["input_ids"], strict=True)):
            assert inputs == (row[:-1] if labels else row)
            starts = [
                at
                for at, (before, token) in enumerate(pairwise([-1, *row]))
                if (token and token != before + 1) or (not token and before)
            ]
            ends = [*starts[1:], L]
            ids = [
                n if row[a] else -1
                for n, (a, b) in enumerate(zip(starts, ends, strict=True))
                for _ in range(a, b)
            ]
            at = [k for a, b in zip(starts, ends, strict=True) for k in range(b - a)]
            assert out["document_ids"][i] == ids[: len(inputs)]
            assert out["positions"][i] == at[: len(inputs)]
            bounds = [a for a in starts if a < len(inputs)] + [len(inputs)]
            assert out["cu_seqlens"][i][: len(bounds)] == bounds
            if labels:
                assert out["labels"][i] == [
                    -100 if k in starts or not row[k] else row[k] for k in range(1, L)
                ]


# One tokenizer, many threads


def test_one_tokenizer_object_may_serve_many_pipelines_at_once(tokenizer_file):
    """Truncation set on a shared object would change what the others get."""
    from tokenizers import Tokenizer

    shared = Tokenizer.from_file(f"{tokenizer_file}/tokenizer.json")
    encoded = texts_to_tokens(tokenizer_file)
    texts = [f"the tree and the wood {i} größe" for i in range(300)]
    words = Dataset.from_dict("words", {0: InMemoryShard([{"text": text} for text in texts])})
    found, errors = {}, []

    def work(max_length):
        try:
            pipe = pipeline(words).tokenize(
                tokenizer=shared,
                field="text",
                special_tokens="none",
                truncation=True,
                max_length=max_length,
            )
            pipe.options(runner="threads")
            found[max_length] = [record.payload["input_ids"] for record in pipe]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    for max_length in range(1, 9):
        assert found[max_length] == [encoded(text)[:max_length] for text in texts]
    assert shared.encode("the tree and the wood", add_special_tokens=False).ids == encoded(
        "the tree and the wood"
    )
    assert shared.truncation is None


def test_there_is_exactly_one_bos_and_one_eos(tmp_path, tokenizer_file):
    texts = ["the tree", "", "größe"]
    pipe = pipeline(dataset("jsonl", tmp_path, [{"text": text} for text in texts])).tokenize(
        tokenizer_id=tokenizer_file, field="text"
    )
    for record in pipe:
        tokens = record.payload["input_ids"]
        assert (tokens[0], tokens[-1]) == (1, EOS)
        assert tokens.count(1) == tokens.count(EOS) == 1
