"""Chains of calls as training code writes them: packing, shuffling, batches, and state."""

import pickle
from itertools import islice, pairwise

import numpy as np
import pytest
import torch

from tests.cases.chains import S, from_files, megatron, megatron_batch, titan, titan_batch
from tests.properties.recipes import source, text_dataset
from tests.written import dataset, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import PlanError

PACKINGS = [
    ("wrap", None, None),
    ("wrap", None, 4),
    ("first_fit", 64, None),
    ("first_fit", 64, 4),
    ("best_fit", 64, None),
    ("best_fit_wrap", None, None),
    ("best_fit_decreasing", None, None),
]


@pytest.mark.parametrize(("algorithm", "bins", "cap"), PACKINGS)
def test_text_split_packed_and_shuffled_for_torch(tmp_path, tokenizer_file, algorithm, bins, cap):
    pipe = titan(tmp_path, tokenizer_file, algorithm, bins, cap)
    items = iter(pipe)
    outs = [titan_batch(batch) for batch in islice(items, 8)]
    state = pickle.dumps(pipe.checkpoint())
    rest = [titan_batch(batch) for batch in items]
    items.close()
    for out in [*outs, *rest]:
        assert out["input"].shape == out["labels"].shape == (2 * S,)
        assert out["input"].dtype == out["labels"].dtype == torch.long
        # Padding is masked, and the token before it has no label.
        assert (out["labels"][out["padding_mask"]] == -100).all()
        assert int((out["labels"] != -100).sum()) == out["num_valid_tokens"]
        assert (out["positions"][out["input"] == 1] == 0).all()  # BOS begins its document
    assert any(out["padding_mask"].any() for out in [*outs, *rest]) == (
        algorithm != "wrap" or cap is not None
    )

    again = titan(tmp_path, tokenizer_file, algorithm, bins, cap, runner="inline")
    again.restore(pickle.loads(state))
    found = [titan_batch(batch) for batch in again]
    assert len(found) == len(rest) > 10
    for one, two in zip(found, rest, strict=True):
        assert all(torch.equal(torch.as_tensor(one[k]), torch.as_tensor(two[k])) for k in one)


@pytest.mark.parametrize("mode", ["preserve", "sequence"])
def test_text_wrapped_for_megatron(tmp_path, tokenizer_file, mode):
    identity = {"dp_degree": 2, "dp_group_id": 1, "world_size": 2, "global_rank": 1}
    pipe = megatron(tmp_path, tokenizer_file, **identity)
    items = iter(pipe)
    for batch in islice(items, 6):
        out = megatron_batch(batch, mode)
        for name in ("tokens", "labels", "loss_mask", "position_ids"):
            assert out[name].shape == (4, S)
        assert (out["labels"][out["tokens"] == 2] == -100).all()
        assert torch.equal(out["loss_mask"] > 0, out["labels"] != -100)
        if mode == "sequence":
            assert torch.equal(out["position_ids"], torch.arange(S).expand(4, S))
        else:
            begins = (out["position_ids"] == 0).sum(1)
            assert begins.tolist() == [len(set(row.tolist())) - 1 for row in out["cu_seqlens"]]
    items.close()


def test_the_order_of_statements_is_that_of_the_chain(tmp_path, tokenizer_file):
    """Calls on one object, and calls on what each returns, are one pipeline."""
    pipe = Pipeline(from_files(tmp_path))
    tokenized = pipe.tokenize(tokenizer_id=tokenizer_file, field="text")
    packed = tokenized.pack_flat(S, num_bins=4, pad_token_id=0)
    shuffled = packed.shuffle(16)
    assert shuffled.batch(2) is pipe
    chain = (
        Pipeline(from_files(tmp_path))
        .tokenize(tokenizer_id=tokenizer_file, field="text")
        .pack_flat(S, num_bins=4, pad_token_id=0)
        .shuffle(16)
        .batch(2)
    )
    assert pipe.fingerprint() == chain.fingerprint()


# Rows as tokenize makes them


def made(rows, tokenizer, **arguments):
    data = dataset("in_memory", None, rows)
    return pipeline(data).tokenize(tokenizer_id=tokenizer, field="text", **arguments)


SHORT = [{"text": text, "id": i} for i, text in enumerate(["the tree", "elm!", "", "and the wood"])]


def brackets(tokenizer):
    encode = texts_to_tokens(tokenizer)
    return [[1, *encode(row["text"]), 2] for row in SHORT]


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
def test_rows_padded_to_a_length_are_packed_with_their_masks(tokenizer_file, call):
    width = 9
    wanted = [(ids + [0] * width)[:width] for ids in brackets(tokenizer_file)]
    masks = [[int(at < len(ids)) for at in range(width)] for ids in brackets(tokenizer_file)]
    assert max(map(len, brackets(tokenizer_file))) <= width
    pipe = made(SHORT, tokenizer_file, max_length=width, padding="max_length")
    if call == "pack_flat":
        (one, two) = pipe.pack_flat(2 * width + 1, num_bins=1, pad_token_id=5)
        for record, at in ((one, 0), (two, 2)):
            assert record.payload["input_ids"] == [*wanted[at], *wanted[at + 1], 5]
            assert record.payload["attention_mask"] == [*masks[at], *masks[at + 1], 0]
            assert record.payload["positions"] == [*range(width), *range(width), 0]
            assert record.meta.padding_length == 1
    else:
        (one, two) = pipe.pack_sequences(2 * width + 1, num_bins=1)
        for record, at in ((one, 0), (two, 2)):
            assert record.payload["packed_samples"] == [
                {"input_ids": wanted[i], "attention_mask": masks[i]} for i in (at, at + 1)
            ]


def test_masks_are_cut_with_their_tokens(tokenizer_file):
    width, length = 9, 7
    pipe = made(SHORT, tokenizer_file, max_length=width, padding="max_length")
    records = list(pipe.pack_flat(length, algorithm="wrap"))
    ids = [n for ids in brackets(tokenizer_file) for n in (ids + [0] * width)[:width]]
    mask = [int(at < len(ids)) for ids in brackets(tokenizer_file) for at in range(width)]
    for number, record in enumerate(records):
        inside = slice(number * length, (number + 1) * length)
        assert record.payload["input_ids"] == ids[inside]
        assert record.payload["attention_mask"] == mask[inside]
        begins = [at for at in range(inside.start, inside.stop) if at % width == 0]
        bounds = [inside.start, *begins, inside.stop]
        assert record.payload["positions"] == [n for a, b in pairwise(bounds) for n in range(b - a)]
    assert len(records) == 4 * width // length


@pytest.mark.parametrize("padding", [True, "longest"])
def test_padding_to_the_longest_pads_no_document_of_a_packed_row(tokenizer_file, padding):
    """It says how a batch is stacked, and rows of one length need no stacking."""
    plain = made(SHORT, tokenizer_file).pack_flat(11, num_bins=2, pad_token_id=0)
    padded = made(SHORT, tokenizer_file, padding=padding).pack_flat(11, num_bins=2, pad_token_id=0)
    assert [r.payload for r in padded] == [r.payload for r in plain]


@pytest.mark.parametrize("asked", [True, False])
def test_a_mask_is_there_where_it_is_asked_for(tokenizer_file, asked):
    pipe = made(SHORT, tokenizer_file, add_attention_mask=asked)
    records = list(pipe.pack_flat(11, num_bins=2, pad_token_id=0))
    for record in records:
        assert ("attention_mask" in record.payload) == asked
        if asked:
            padding = record.meta.padding_length
            assert record.payload["attention_mask"] == [1] * (11 - padding) + [0] * padding


@pytest.mark.parametrize("tensors", [None, "np", "pt"])
@pytest.mark.parametrize("padding", [False, "max_length"])
def test_rows_keep_what_holds_them(tokenizer_file, tensors, padding):
    kind = {None: list, "np": np.ndarray, "pt": torch.Tensor}[tensors]
    settings = {"max_length": 9, "padding": padding, "return_tensors": tensors}
    flat = made(SHORT, tokenizer_file, **settings).pack_flat(20, num_bins=1, pad_token_id=0)
    for record in flat:
        assert {type(value) for value in record.payload.values()} == {kind}
    beside = made(SHORT, tokenizer_file, **settings).pack_sequences(20, num_bins=1)
    for record in beside:
        for row in record.payload["packed_samples"]:
            assert {type(value) for value in row.values()} == {kind}


@pytest.mark.parametrize(
    "pack",
    [lambda p: p.pack_flat(6, algorithm="wrap"), lambda p: p.pack_sequences(6, algorithm="wrap")],
    ids=["pack_flat", "pack_sequences that cuts"],
)
def test_a_kept_loss_mask_is_packed_or_the_call_fails(tokenizer_file, pack):
    rows = [{**row, "loss_mask": [1] * 3} for row in SHORT]

    def fitted(row):
        return {**row, "loss_mask": [int(token > 2) for token in row["input_ids"]]}

    kept = made(rows, tokenizer_file, preserve_upstream_payload=True)
    with pytest.raises(PlanError, match="field 'loss_mask' must hold one number or boolean a toke"):
        pack(kept)
    documents = [
        document
        for record in pack(kept.map_transform(fitted))
        for document in record.payload.get("packed_samples", [record.payload])
    ]
    assert documents
    assert all(list(d["loss_mask"]) == [t > 2 for t in d["input_ids"]] for d in documents)


def test_whole_documents_keep_their_row_and_cut_ones_their_tokens(tokenizer_file):
    kept = {"preserve_upstream_payload": True}
    whole = made(SHORT, tokenizer_file, **kept).pack_sequences(20, num_bins=1)
    rows = [row for record in whole for row in record.payload["packed_samples"]]
    assert [(row["text"], row["id"]) for row in rows] == [(r["text"], r["id"]) for r in SHORT]
    assert [row["input_ids"] for row in rows] == brackets(tokenizer_file)

    cut = made(SHORT, tokenizer_file, **kept).pack_sequences(5, algorithm="wrap")
    rows = [row for record in cut for row in record.payload["packed_samples"]]
    sizes = {len(ids) for ids in brackets(tokenizer_file)}
    assert {frozenset(row) for row in rows} == {
        frozenset({"text", "id", "input_ids", "attention_mask"}),
        frozenset({"input_ids", "attention_mask"}),
    }
    assert all(len(row["input_ids"]) in sizes for row in rows if "text" in row)

    flat = made(SHORT, tokenizer_file, **kept).pack_flat(20, num_bins=1, pad_token_id=0)
    assert {tuple(sorted(r.payload)) for r in flat} == {
        ("attention_mask", "input_ids", "positions")
    }


def test_rows_that_were_tokenized_before_are_packed_without_tokenize():
    rows = [
        {"tokens": [10 + i] * n, "loss_mask": [i % 2] * n, "url": f"{i}", "score": 0.5}
        for i, n in enumerate([4, 3, 6, 2])
    ]
    data = Dataset.from_dict("rows", {0: InMemoryShard(rows)})
    pipe = pipeline(data).pack_flat(8, num_bins=1, pad_token_id=10, emit_positions=False)
    found = [(r.payload["tokens"], r.payload["loss_mask"]) for r in pipe]
    assert found == [
        ([10] * 4 + [11] * 3 + [10], [0] * 4 + [1] * 3 + [0]),
        ([12] * 6 + [13] * 2, [0] * 6 + [1] * 2),
    ]
    assert {frozenset(r.payload) for r in pipe} == {frozenset({"tokens", "loss_mask"})}


def test_what_was_shuffled_split_and_mixed_is_all_there(tokenizer_file):
    """The longest chain that the page allows loses no token."""
    data = [text_dataset("words", 40), text_dataset("other", 30, seed=1)]
    pipe = (
        Pipeline(source(data, exhausted_policy="redistribute"))
        .shuffle(buffer_size=16, seed=3, algorithm="block_warmup", warmup_growth=2.0)
        .tokenize(
            tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=12
        )
        .ensure_mixture(
            max_buffer_size=20, drain_target_ratio=0.5, obsolete_drain_rate=0.2,
            weight_by="auto", warn_tolerance=1.0, mixture={"words": 2, "other": 1},
            placement="local", parallelism=2,
        )
        .pack_sequences(
            24, algorithm="best_fit", num_bins=4, max_sequences_per_bin=6,
            min_sequence_length=2, shuffle_strategy="random", shuffle_seed=7,
            flush_strategy="fullest", pack_payloads="keep_list", homogeneity="none",
            placement="auto", parallelism=2,
        )
        .ensure_mixture(weight_by="samples", max_buffer_size=None)
        .shuffle(8)
        .batch(3, drop_last=False)
        .options(runner="inline")
    )  # fmt: skip
    delivered = sum(
        len(document["input_ids"])
        for batch in pipe
        for record in batch.records
        for document in record.payload["packed_samples"]
    )
    parts = pipe.accounting()
    assert delivered == sum(part["tokens_delivered"] for part in parts.values())
    lost = sum(sum(part["tokens_dropped"].values()) for part in parts.values())
    assert delivered + lost == sum(part["tokens_made"] for part in parts.values())
    assert {reason for part in parts.values() for reason in part["tokens_dropped"]} <= {
        "end_of_data"
    }
    assert delivered > 0.8 * (delivered + lost)
