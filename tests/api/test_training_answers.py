"""``to_training``: the engine's columns and records of the same content say the same."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columns_by_hand import engine_rows, plain
from zephon.types import SampleBatch


def cut(draw, row):
    """Cut a row of tokens into documents; return their lengths."""
    cuts = draw(st.lists(st.integers(0, len(row)), max_size=2).map(sorted))
    return [b - a for a, b in pairwise([0, *cuts, len(row)])]


def source_row(draw, length):
    """Give the source row of a document: some fields it may lack, none of them packed."""
    row = {
        "text": "x",
        "score": 5,
        "flags": [1] * length,
        "loss_mask": [0] * length,
        "positions": 7,
        "input_ids": [8] * length,
    }
    lacks = draw(st.sampled_from([(), (), ("score",), ("flags", "positions"), tuple(row)]))
    return {name: value for name, value in row.items() if name not in lacks}


@st.composite
def any_columns(draw):
    count = draw(st.integers(1, 4))
    packing = draw(st.sampled_from(["none", "flat", "sequences"]))
    longest = packing == "none" and draw(st.booleans())
    width = draw(st.integers(0, 6))
    ragged = longest or packing == "sequences"
    lengths = [draw(st.integers(0, 6)) if ragged else width for _ in range(count)]
    token = st.integers(0, 4)
    rows = [draw(st.lists(token, min_size=n, max_size=n)) for n in lengths]
    flags = [draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)) for n in lengths]
    padding = [draw(st.integers(0, n)) for n in lengths] if packing == "flat" else None
    documents = positions = None
    kept, container = None, draw(st.sampled_from(["list", "tuple", "np", "pt"]))
    if packing == "none":
        scores = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
        rows_below = [
            {"text": str(score), "score": score, "flags": row}
            for score, row in zip(scores, flags, strict=True)
        ]
        kept = draw(st.sampled_from([None, rows_below, [None] * count]))
        # Starts of segments anywhere, so that a row's first position need not be 0.
        positions = [draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)) for n in lengths]
    else:
        pads = padding or [0] * count
        documents = [cut(draw, row[pad:]) for row, pad in zip(rows, pads, strict=True)]
    below = packing == "sequences" and draw(st.booleans())
    if below:
        kept = [source_row(draw, n) for row in documents for n in row]
    if packing == "flat":
        positions = [
            [at for n in (*row, pad) for at in range(n)]
            for row, pad in zip(documents, padding, strict=True)
        ]
    # Arrays of numbers alone are joined, which source rows are not.
    joins = {} if below else {"np": "numpy_array", "pt": "torch_tensor"}
    how = {"list": "keep_list", **joins}.get(container, list)
    return engine_rows(
        rows,
        padding=padding,
        positions=positions if packing != "sequences" and draw(st.booleans()) else None,
        documents=documents,
        starts=[draw(st.integers(0, 1)) for row in documents for _ in row] if below else None,
        packing=packing,
        masks=draw(st.sampled_from([(), ("attention_mask",)])),
        payload=kept,
        container=container,
        name=draw(st.sampled_from(["input_ids", "tokens"])),
        longest=longest,
        more={"loss_mask": flags} if draw(st.booleans()) else None,
        pack_payloads=how if packing == "sequences" else None,
    )


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "return_labels": st.booleans(),
        "dtype": st.sampled_from([None, "auto", torch.int32, np.int64, np.float32, torch.bfloat16]),
        "extra_fields": st.lists(
            st.sampled_from(["score", "flags", "attention_mask", "tokens"]), unique=True
        ),
        "ignore_index": st.sampled_from([-100, 2]),
        "rename_fields": st.sampled_from([{"input_ids": "positions", "positions": "input_ids"}]),
        "flatten": st.booleans(),
        "exclude_fields": st.sampled_from([("texts",), ["labels"]]),
        "return_num_valid_tokens": st.booleans(),
        "return_loss_mask": st.booleans(),
        "return_cu_seqlens": st.booleans(),
        "return_padding_mask": st.booleans(),
        "eos_mask_loss": st.booleans(),
        "eos_token_id": st.just(3),
        "position_mode": st.sampled_from(["preserve", "sequence"]),
        "return_document_ids": st.booleans(),
        "mask_document_boundaries": st.booleans(),
        "pad_to": st.sampled_from(["longest", 4, 9]),
        "pad_token_id": st.just(7),
        "tokens_field": st.sampled_from(["input_ids", "tokens"]),
        "collate_fields": st.sampled_from(
            [{"score": list}, {"attention_mask": repr}, {"flags": repr, "score": list}]
        ),
    },
)


def repaired(arguments, columns, free):
    """Most arguments are mended so that they fit; the others show that errors are the same, too."""
    if free:
        return arguments
    labels = {"return_num_valid_tokens", "return_loss_mask", "eos_mask_loss"}
    labels.add("mask_document_boundaries")
    fitting = {name: value for name, value in arguments.items() if name not in labels}
    fitting |= dict.fromkeys(labels & arguments.keys(), fitting.get("return_labels", False))
    fitting["eos_token_id"] = 3
    if columns.packing == "sequences" or "pad_token_id" in fitting:
        fitting["pad_to"] = "longest"
    if fitting.get("tokens_field") not in (None, columns.tokens_field):
        del fitting["tokens_field"]
    names = [name for name in fitting.get("extra_fields", ()) if name in columns.masks]
    fitting["extra_fields"] = names
    if not {*fitting.get("collate_fields", ())}.issubset(columns.masks) and not columns.payload:
        del fitting["collate_fields"]
    if names and "collate_fields" in fitting:
        fitting["extra_fields"] = []
    return fitting


@settings(max_examples=250, deadline=None)
@given(any_columns(), ARGUMENTS, st.integers(0, 4).map(lambda n: n == 4))
@pytest.mark.filterwarnings("ignore:to_training. eos_token_id")
def test_columns_and_records_give_the_same(columns, arguments, free):
    arguments = repaired(arguments, columns, free)

    def answer(batch):
        try:
            out = batch.to_training(**arguments)
        except (ValueError, TypeError) as error:
            return (type(error), str(error))
        return {name: plain(value) for name, value in out.items()}

    engine = SampleBatch.from_rows(columns)
    expected = answer(engine)
    for record in engine.records:
        assert record.meta.lane_id == 0
    assert answer(engine) == expected  # records were made and not looked into
    assert answer(SampleBatch(SampleBatch.from_rows(columns).records)) == expected
    engine.records[-1].payload  # noqa: B018
    assert answer(engine) == expected
    for record in engine.records:
        record.payload  # noqa: B018
    assert answer(engine) == expected
    if not callable(columns.pack_payloads):
        assert answer(pickle.loads(pickle.dumps(engine))) == expected
