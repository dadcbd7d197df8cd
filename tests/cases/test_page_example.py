"""The behaviour page's example of packing, as rows that a user gets: ten documents, rows of ten."""

import numpy as np
import pytest

from tests.properties.recipes import source, token_dataset
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import DataError

DOCUMENTS = [5, 3, 9, 2, 12, 4, 6, 1, 8, 7]
L = 10
PAD = 7
WHOLE = [(5, 3, 2), (4, 6), (9, 1), (8,), (7,)]

# Rows, each the lengths of its pieces, and tokens that are in none of them.
EXAMPLE = {
    "first_fit": ({"algorithm": "first_fit", "num_bins": 2}, WHOLE, {"oversized": 12}),
    "best_fit": ({"algorithm": "best_fit", "num_bins": 2}, WHOLE, {"oversized": 12}),
    "the default": ({"num_bins": 2, "drop_oversized": True}, WHOLE, {"oversized": 12}),
    "wrap": (
        {"algorithm": "wrap"},
        [(5, 3, 2), (7, 2, 1), (10,), (1, 4, 5), (1, 1, 8)],
        {"end_of_data": 7},
    ),
    "capped wrap": (
        {"algorithm": "wrap", "max_sequences_per_bin": 2},
        [(5, 3), (9, 1), (1, 9), (3, 4), (6, 1), (8, 2), (5,)],
        {},
    ),
    "best_fit_wrap": (
        {"algorithm": "best_fit_wrap"},
        [(10,), (9, 1), (8, 2), (7, 3), (6, 4), (5, 2)],
        {},
    ),
    "best_fit_decreasing": (
        {"algorithm": "best_fit_decreasing"},
        [(9, 1), (8, 2), (7, 3), (6, 4), (5,)],
        {"oversized": 12},
    ),
    "a cap": (
        {"algorithm": "first_fit", "num_bins": 2, "max_sequences_per_bin": 2},
        [(5, 3), (2, 4), (9, 1), (6,), (8,), (7,)],
        {"oversized": 12},
    ),
    "room for less than three is none": (
        {"algorithm": "first_fit", "num_bins": 2, "min_sequence_length": 3},
        [(5, 3), (9,), (8,), (2, 4, 1), (6,), (7,)],
        {"oversized": 12},
    ),
    "longest first": (
        {"algorithm": "first_fit", "num_bins": 2, "shuffle_strategy": "length"},
        [(9,), (8,), (7,), (6, 4), (5, 3, 2), (1,)],
        {"oversized": 12},
    ),
}  # fmt: skip


def pipe(rows=None):
    data = token_dataset("prose", DOCUMENTS, 1)
    if rows is not None:
        data = Dataset.from_dict("prose", {0: InMemoryShard(rows)})
    return Pipeline(source([data], shuffle_within_shard=False)).options(runner="inline")


def pieces(tokens):
    """Split a row where a token does not follow the one before it."""
    tokens = np.asarray(tokens)
    return [part.tolist() for part in np.split(tokens, np.flatnonzero(np.diff(tokens) != 1) + 1)]


@pytest.mark.filterwarnings("ignore:packing dropped 1 document of 12 tokens")
@pytest.mark.parametrize("name", EXAMPLE)
def test_documents_end_to_end(name):
    arguments, wanted, dropped = EXAMPLE[name]
    packed = pipe().pack_flat(L, pad_token_id=PAD, **arguments)
    records = list(packed)
    assert len(records) == len(wanted)
    for record, lengths in zip(records, wanted, strict=True):
        padding = L - sum(lengths)
        tokens = record.payload["input_ids"]
        assert tokens[L - padding :] == [PAD] * padding
        assert tuple(map(len, pieces(tokens[: L - padding]))) == lengths
        assert record.payload["positions"] == [at for n in (*lengths, padding) for at in range(n)]
        assert record.meta.padding_length == padding
        assert record.meta.tags["_packing_metadata"] == {
            "num_sequences": len(lengths),
            "total_length": sum(lengths),
            "packing_efficiency": sum(lengths) / L,
            "padding_length": padding,
        }
        assert len(record.meta.contribution_refs()) == len(lengths)
        # The identity is where the first piece begins: in which document, and at which token.
        assert record.meta.sample_id == (0, 0, tokens[0] // 1000 % 1000)
        assert record.meta.lineage == (tokens[0] % 1000,)
    (part,) = packed.accounting().values()
    assert part["tokens_dropped"] == dropped
    assert part["tokens_delivered"] == sum(map(sum, wanted)) == 57 - sum(dropped.values())


@pytest.mark.filterwarnings("ignore:packing dropped 1 document of 12 tokens")
@pytest.mark.parametrize("name", EXAMPLE)
def test_documents_side_by_side(name):
    arguments, wanted, dropped = EXAMPLE[name]
    packed = pipe().pack_sequences(L, **arguments)
    records = list(packed)
    found = [[s["input_ids"] for s in record.payload["packed_samples"]] for record in records]
    assert [tuple(map(len, row)) for row in found] == wanted
    flat = pipe().pack_flat(L, pad_token_id=PAD, **arguments)
    for row, record in zip(found, flat, strict=True):
        assert [token for tokens in row for token in tokens] == record.payload["input_ids"][
            : sum(map(len, row))
        ]
    assert all(record.meta.padding_length is None for record in records)
    (part,) = packed.accounting().values()
    assert part["tokens_dropped"] == dropped


@pytest.mark.filterwarnings("ignore:packing dropped 1 document of 0 tokens")
@pytest.mark.parametrize("name", ["first_fit", "best_fit", "best_fit_decreasing", "longest first"])
def test_a_function_that_measures_rows_without_tokens(name):
    arguments, wanted, _ = EXAMPLE[name]
    rows = [{"size": size, "text": "x" * size} for size in DOCUMENTS]
    packed = pipe(rows).pack_sequences(L, length_fn=lambda row: row["size"], **arguments)
    found = [record.payload["packed_samples"] for record in packed]
    assert [tuple(row["size"] for row in each) for each in found] == wanted
    assert all(row in rows for each in found for row in each)


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
@pytest.mark.parametrize("name", ["first_fit", "best_fit", "best_fit_decreasing"])
def test_a_document_that_is_too_long_may_be_an_error(call, name):
    arguments = EXAMPLE[name][0]
    pad = {"pad_token_id": 0} if call == "pack_flat" else {}
    packed = getattr(pipe(), call)(L, drop_oversized=False, **arguments, **pad)
    message = rf"{call}: Sequence length 12 exceeds max_length 10 .*'prose', .*row 4; pass drop_o"
    with pytest.raises(DataError, match=message):
        list(packed)


@pytest.mark.filterwarnings("ignore:packing dropped 1 document of 12 tokens")
@pytest.mark.parametrize("name", EXAMPLE)
def test_batches_hold_the_same_rows(name):
    arguments, wanted, _ = EXAMPLE[name]
    packed = pipe().pack_flat(L, pad_token_id=PAD, **arguments).batch(2, drop_last=False)
    rows = []
    for batch in packed:
        out = batch.to_training(
            dtype=np.int64, return_padding_mask=True, return_cu_seqlens=True,
            return_document_ids=True,
        )  # fmt: skip
        rows += list(zip(out["padding_mask"], out["document_ids"], out["cu_seqlens"], strict=True))
    assert len(rows) == len(wanted)
    for (padding, ids, bounds), lengths in zip(rows, wanted, strict=True):
        assert padding.sum() == L - sum(lengths)
        assert tuple(np.bincount(ids[ids >= 0]).tolist()) == lengths
        assert tuple(np.diff(np.unique(bounds))[: len(lengths)].tolist()) == lengths
