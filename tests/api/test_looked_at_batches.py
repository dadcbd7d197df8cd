"""The answer of ``to_training`` does not depend on who looked at a record, or rebuilt the batch."""

import copy
import pickle

import numpy as np
import pytest

from tests.columns_by_hand import columns_of, engine_batch, engine_rows, plain
from tests.packed_by_hand import Piece, Row, batch_of
from tests.written import pipeline
from zephon import Dataset, InMemoryShard
from zephon.types import SampleBatch


def looked_at(batch):
    for record in batch.records:
        record.payload  # noqa: B018
    return batch


def half_looked_at(batch):
    batch.records[-1].payload  # noqa: B018
    return batch


WAYS = {
    "half looked at": half_looked_at,
    "looked at": looked_at,
    "rebuilt": lambda batch: SampleBatch(batch.records),
    "pickled": lambda batch: pickle.loads(pickle.dumps(batch)),
    "pickled after a look": lambda batch: pickle.loads(pickle.dumps(looked_at(batch))),
    "copied after a look": lambda batch: copy.deepcopy(looked_at(batch)),
    "rebuilt after a look": lambda batch: SampleBatch(looked_at(batch).records),
}


def answer_of(batch, **arguments):
    try:
        out = batch.to_training(**arguments)
    except (ValueError, TypeError) as error:
        return (type(error), str(error))
    return {name: plain(value) for name, value in out.items()}


def the_answer(make, **arguments):
    """Ask a batch as it came, and in every other way; give what all of them answer."""
    arguments = {"dtype": None, **arguments}
    expected = answer_of(make(), **arguments)
    for name, way in WAYS.items():
        assert answer_of(way(make()), **arguments) == expected, name
    if isinstance(expected, tuple):
        return expected
    return {name: value[-1] for name, value in expected.items()}


def packed(rows, call="pack_sequences", max_length=4, **arguments):
    """Pack the rows of one shard; give a function that makes the one batch anew."""

    def make():
        data = Dataset.from_dict("rows", {0: InMemoryShard(rows)})
        pipe = getattr(pipeline(data), call)(max_length, algorithm="wrap", **arguments)
        (batch,) = pipe.batch(len(rows), drop_last=False)
        return batch

    return make


def test_a_loss_mask_that_was_not_packed_masks_nothing():
    rows = [{"input_ids": [1, 2], "loss_mask": [0, 0]}, {"input_ids": [3, 4], "loss_mask": [1, 0]}]
    out = the_answer(packed(rows, aligned_fields=()), return_labels=True)
    assert out["labels"] == [[2, 3, 4]]
    assert "loss_mask" not in the_answer(packed(rows, aligned_fields=()))
    assert the_answer(packed(rows), return_labels=True)["labels"] == [[-100, 3, -100]]


@pytest.mark.parametrize("positions", [7, [[1, 2, 3], [4, 5, 6]], [5, 6]])
def test_positions_that_were_not_packed_number_nothing(positions):
    rows = [{"input_ids": [1, 2], "positions": positions}] * 2
    make = packed(rows, aligned_fields=())
    out = the_answer(make, return_cu_seqlens=True, return_document_ids=True)
    assert out["positions"] == [[0, 1, 0, 1]]
    assert out["cu_seqlens"] == [[0, 2, 4]]
    assert out["document_ids"] == [[0, 0, 1, 1]]


@pytest.mark.parametrize("call", ["pack_sequences", "pack_flat"])
def test_auto_takes_the_tokens_that_were_packed(call):
    rows = [{"tokens": [1, 2], "input_ids": [8, 9]}, {"tokens": [3, 4], "input_ids": [7, 6]}]
    make = packed(rows, call, tokens_field="tokens")
    assert the_answer(make)["input_ids"] == [[1, 2, 3, 4]]
    assert the_answer(make, tokens_field="input_ids")["input_ids"] == [[8, 9, 7, 6]]
    if call == "pack_sequences":
        make = packed(rows, call, tokens_field="tokens", aligned_fields=())
        assert the_answer(make)["input_ids"] == [[1, 2, 3, 4]]
        assert the_answer(make, tokens_field="input_ids")["input_ids"] == [[8, 9, 7, 6]]


@pytest.mark.parametrize("kept", [False, True])
def test_a_loss_mask_that_was_made_after_a_look_acts(kept):
    """Beside the documents always; inside them where no source row may have brought it."""
    rows = [Row([Piece([1, 2]), Piece([3, 4])])]
    beside, inside = (batch_of(rows, "sequences", payload=kept) for _ in range(2))
    beside.records[0].payload["loss_mask"] = [1, 0, 1, 0]
    for document in inside.records[0].payload["packed_samples"]:
        document["loss_mask"] = [1, 0]
    for batch, acts in ((beside, True), (inside, not kept)):
        for way in WAYS.values():
            out = way(batch).to_training(return_labels=True, dtype=None)
            assert out["labels"] == [[-100, 3, -100] if acts else [2, 3, 4]]


def test_fields_that_were_not_packed_may_be_named():
    rows = [
        {"input_ids": [1, 2], "score": [5, 6], "n": 1},
        {"input_ids": [3, 4], "score": [7, 8], "n": 2},
    ]
    make = packed(rows, aligned_fields=())
    out = the_answer(make, extra_fields=["score"], collate_fields={"n": list, "text": list})
    assert out["score"] == [[5, 6, 7, 8]]
    assert (out["n"], out["text"]) == ([[1, 2]], [[None, None]])
    error, message = the_answer(make, extra_fields=["scor"])
    assert error.__name__ == "PlanError"
    assert "'scor' is missing in row 0; did you mean 'score'?" in message


def test_a_cut_document_has_no_field_that_was_not_packed():
    rows = [{"input_ids": [1, 2, 3], "score": [5, 6, 7], "n": 1}, {"input_ids": [4], "n": 2}]
    make = packed(rows, max_length=2, aligned_fields=())
    out = the_answer(make, collate_fields={"n": list})
    assert out["n"] == [[None], [None, 2]]
    _, message = the_answer(make, extra_fields=["n"])
    assert "'n' must be in every document or in none, and document 0 of row 0 has none" in message


def test_placement_comes_before_positions_of_the_data():
    rows = [{"input_ids": [1, 2], "positions": [5, 0]}, {"input_ids": [3, 4], "positions": [7, 8]}]
    make = packed(rows, "pack_flat", emit_positions=False)
    out = the_answer(make, return_cu_seqlens=True, return_document_ids=True)
    assert out["positions"] == [[5, 0, 7, 8]]
    assert out["cu_seqlens"] == [[0, 2, 4]]
    assert out["document_ids"] == [[0, 0, 1, 1]]


@pytest.mark.parametrize("container", ["list", "np"])
@pytest.mark.parametrize("packing", ["none", "flat", "sequences"])
def test_a_field_of_the_engine_s_is_collated_as_records_hold_it(packing, container):
    rows = [Row([Piece([1, 2]), Piece([3])]), Row([Piece([4, 5, 6])])]

    def make():
        return batch_of(rows, packing, masks=("attention_mask",), container=container)

    shown = the_answer(make, collate_fields={"attention_mask": repr})["attention_mask"]
    ones = {"list": "[1, 1, 1]", "np": "array([1, 1, 1])"}[container]
    if packing == "sequences":
        two, one = {"list": ("[1, 1]", "[1]"), "np": ("array([1, 1])", "array([1])")}[container]
        assert shown == f"[[{two}, {one}], [{ones}]]"
    else:
        assert shown == f"[{ones}, {ones}]"


@pytest.mark.parametrize("container", ["list", "tuple", "np", "pt"])
@pytest.mark.parametrize("packing", ["none", "flat", "sequences"])
def test_a_mask_of_fractions_has_one_type_however_it_is_read(packing, container):
    def make():
        return engine_batch(
            [[1, 2]],
            packing=packing,
            padding=[0] if packing == "flat" else None,
            more={"loss_mask": [[0.25, 1]]},
            types={"loss_mask": np.float32},
            container=container,
            pack_payloads="keep_list" if packing == "sequences" else None,
        )

    out = the_answer(make, dtype=np.int64)
    assert out["loss_mask"] == [[0.25, 1]]


def test_rows_that_nothing_packed_stay_a_document_each():
    def make():
        return engine_batch([[1, 2, 3], [4]], longest=True)

    out = the_answer(
        make,
        return_document_ids=True,
        return_cu_seqlens=True,
        return_labels=True,
        mask_document_boundaries=True,
    )
    assert out["document_ids"] == [[0, 0], [0, -1]]
    assert out["cu_seqlens"] == [[0, 2, 2], [0, 1, 2]]


def test_a_row_that_was_shortened_is_still_a_document():
    batch = looked_at(engine_batch([[1, 2, 3]]))
    batch.records[0].payload["input_ids"].pop()
    assert batch.to_training(return_document_ids=True)["document_ids"].tolist() == [[0, 0]]


def test_records_of_several_kinds_each_say_what_they_are():
    flat = engine_batch([[1, 2, 3]], documents=[[1, 2]], packing="flat", padding=[0])
    batch = SampleBatch([*flat.records, *engine_batch([[4, 5, 6]]).records])
    out = batch.to_training(return_document_ids=True, dtype=None)
    assert out["document_ids"] == [[0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    "samples", [[{"ids": [1, 2]}, {"ids": [3]}], {"ids": np.array([1, 2, 3])}], ids=["list", "dict"]
)
def test_raw_rows_that_hold_packed_samples_are_read_as_such(samples):
    def make():
        return SampleBatch.from_rows(columns_of({}, [[0]], payload=[{"packed_samples": samples}]))

    assert the_answer(make)["input_ids"] == [[1, 2, 3]]
    found = the_answer(make, return_document_ids=True)
    if isinstance(samples, dict):
        assert "return_document_ids=True needs the field 'positions'" in found[1]
    else:
        assert found["document_ids"] == [[0, 0, 1]]


def test_source_rows_under_tokens_may_hold_packed_samples():
    def make():
        below = [{"packed_samples": [{"input_ids": [7, 8]}]}]
        return engine_batch([[1, 2]], payload=below)

    out = the_answer(make, return_document_ids=True)
    assert (out["input_ids"], out["document_ids"]) == ([[1, 2]], [[0, 0]])


@pytest.mark.parametrize("look", [False, True])
def test_functions_may_change_what_they_get(look):
    def empty(values):
        taken = [list(value) for value in values]
        for value in values:
            value.clear()
        return taken

    def make():
        rows = [Row([Piece([1, 2], source={"boxes": [1, [2]]})])]
        batch = batch_of(rows, "none", payload=True)
        return looked_at(batch) if look else batch

    batch = make()
    for _ in range(2):
        assert batch.to_training(collate_fields={"boxes": empty})["boxes"] == [[1, [2]]]
        assert batch.collate(empty) == [["boxes", "input_ids"]]
    assert batch.records[0].payload == {"boxes": [1, [2]], "input_ids": [1, 2]}


def test_what_cannot_be_copied_is_handed_over_as_it_is():
    handle = open(__file__, "rb")  # noqa: SIM115
    with handle:
        batch = looked_at(engine_batch([[1]], payload=[{"file": handle, "at": np.arange(2)}]))
        out = batch.to_training(collate_fields={"file": list, "at": list})
    assert out["file"] == [handle]
    assert out["at"][0] is not batch.records[0].payload["at"]
    assert out["at"][0].tolist() == [0, 1]


@pytest.mark.parametrize("way", [lambda b: pickle.loads(pickle.dumps(b)), copy.deepcopy])
def test_a_batch_that_travels_keeps_the_mixture_it_was_made_under(way):
    for look in (lambda batch: batch, looked_at):
        batch = SampleBatch.from_rows(engine_rows([[1]], target_mixture={"a": 0.5}))
        assert way(look(batch)).target_mixture == {"a": 0.5}
