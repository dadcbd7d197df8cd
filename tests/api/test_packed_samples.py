"""Rows of ``pack_sequences``: what their records hold, and what ``to_training`` makes of them."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import torch

from tests.packed_by_hand import Piece, Row, batch_of, rows_of
from zephon.errors import DataError, ExecutionError, PlanError
from zephon.types import SampleBatch, SampleMeta, SampleRecord

ROWS = [
    Row([
        Piece([1, 2, 3], source={"text": "one", "image": b"a"}),
        Piece([4, 5], start=2, source={"text": "two", "image": b"b"}),
    ]),
    Row([Piece([6, 7], source={"text": "three", "image": b"c"})]),
]  # fmt: skip


def sequences(rows=ROWS, **settings):
    return batch_of(rows, "sequences", payload=True, **settings)


def records(*payloads):
    return SampleBatch(
        SampleRecord(SampleMeta((0, 0, i), 0, 0, i), payload) for i, payload in enumerate(payloads)
    )


def user_batch(*rows):
    return records(*({"packed_samples": documents} for documents in rows))


# -- records ----------------------------------------------------------------------------------


def test_whole_documents_keep_their_source_row_and_cut_ones_their_tokens():
    first, second = sequences().records
    assert first.payload == {
        "packed_samples": [
            {"text": "one", "image": b"a", "input_ids": [1, 2, 3]},
            {"input_ids": [4, 5]},
        ]
    }
    assert second.payload == {
        "packed_samples": [{"text": "three", "image": b"c", "input_ids": [6, 7]}]
    }


def test_a_document_whose_end_lies_in_another_row_is_cut():
    row = Row([Piece([1, 2], ends=False, source={"text": "a"})])
    (record,) = sequences([row]).records
    assert record.payload == {"packed_samples": [{"input_ids": [1, 2]}]}


def test_a_part_of_a_split_row_is_whole_though_it_does_not_close_the_row():
    rows = rows_of([Row([Piece([1, 2], ends=False, source={"a": 1})])], "sequences", payload=True)
    spans = dataclasses.replace(rows.spans, ends=np.array([True]))
    (record,) = SampleBatch.from_rows(dataclasses.replace(rows, spans=spans)).records
    assert record.payload == {"packed_samples": [{"a": 1, "input_ids": [1, 2]}]}
    assert not record.meta.contribution_refs()[0].is_last_child


@pytest.mark.parametrize(
    ("container", "kind"), [("tuple", tuple), ("np", np.ndarray), ("pt", torch.Tensor)]
)
def test_documents_hold_their_fields_in_the_batch_s_container(container, kind):
    batch = sequences(flags=None, masks=("attention_mask",), container=container)
    documents = batch.records[0].payload["packed_samples"]
    for document, tokens in zip(documents, [[1, 2, 3], [4, 5]], strict=True):
        assert type(document["input_ids"]) is type(document["attention_mask"]) is kind
        assert list(document["input_ids"]) == tokens
        assert list(document["attention_mask"]) == [1] * len(tokens)


def test_the_meta_of_a_packed_row_names_no_padding():
    first = sequences(max_length=10).records[0].meta
    assert first.tags["_packing_metadata"] == {
        "num_sequences": 2,
        "total_length": 5,
        "packing_efficiency": 0.5,
        "padding_length": None,
    }
    assert first.tags["_placement"] == {
        "lengths": (3, 2),
        "tokens_field": "input_ids",
        "fields": ("input_ids",),
        "pad_token_id": 0,
    }
    assert first.padding_length is None
    assert first.lineage == (0,)
    assert first.component_sample_counts == {0: 2}
    assert first.component_token_counts == {0: 5}
    assert len(first.contributors) == 2


@pytest.mark.parametrize(
    ("how", "container", "kind"),
    [("numpy_array", "np", np.ndarray), ("torch_tensor", "pt", torch.Tensor)],
)
def test_documents_may_be_joined_field_by_field(how, container, kind):
    rows = [Row([Piece([1, 2], flags=[0, 1]), Piece([3], flags=[1])]), Row([Piece([4])])]
    rows[1].pieces[0].flags = [0]
    batch = batch_of(rows, "sequences", flags="loss_mask", pack_payloads=how, container=container)
    joined = batch.records[0].payload["packed_samples"]
    assert {name: value.tolist() for name, value in joined.items()} == {
        "input_ids": [1, 2, 3],
        "loss_mask": [0, 1, 1],
    }
    assert {type(value) for value in joined.values()} == {kind}


@pytest.mark.parametrize(
    ("how", "container"), [("numpy_array", "list"), ("torch_tensor", "np"), ("numpy_array", "pt")]
)
def test_documents_of_another_container_are_not_joined(how, container):
    record = sequences(pack_payloads=how, container=container).records[1]
    with pytest.raises(
        TypeError, match=rf"pack_payloads='{how}' needs .* got .* in 'text' of .*2\)"
    ):
        record.payload  # noqa: B018
    with pytest.raises(
        TypeError, match=r"got (list|ndarray|Tensor) in 'input_ids' of the row that"
    ):
        batch_of(ROWS, "sequences", pack_payloads=how, container=container).records[0].payload  # noqa: B018


@pytest.mark.parametrize(("how", "container"), [("numpy_array", "np"), ("torch_tensor", "pt")])
def test_documents_that_do_not_go_together_are_a_located_error(how, container):
    wide, narrow = ({"a": value} for value in (np.ones((1, 3)), np.ones((1, 2))))
    if container == "pt":
        wide, narrow = ({"a": torch.tensor(row["a"])} for row in (wide, narrow))
    row = Row([Piece([1], source=wide), Piece([2], source=narrow)])
    record = sequences([row], pack_payloads=how, container=container).records[0]
    with pytest.raises(DataError, match=r"laid end to end .* in 'a' of the row that .*\(0, 0, 0\)"):
        record.payload  # noqa: B018
    row = Row([Piece([1], source=wide), Piece([2])])
    record = sequences([row], pack_payloads=how, container=container).records[0]
    with pytest.raises(
        DataError, match=r"same fields .* sample \(0, 0, 0\) has a, input_ids, samp"
    ):
        record.payload  # noqa: B018


def test_a_function_makes_the_payload_and_the_training_batch():
    def reverse(documents):
        assert type(documents) is list
        return [{"input_ids": document["input_ids"][::-1]} for document in documents]

    batch = sequences(pack_payloads=reverse)
    out = batch.to_training(pad_to="longest", return_document_ids=True, dtype=None)
    assert out["input_ids"] == [[3, 2, 1, 5, 4], [7, 6, 0, 0, 0]]
    assert out["document_ids"] == [[0, 0, 0, 1, 1], [0, 0, -1, -1, -1]]
    assert batch.records[1].payload == {"packed_samples": [{"input_ids": [7, 6]}]}
    assert batch.to_training(pad_to="longest", return_document_ids=True, dtype=None) == out


def test_a_function_that_fails_names_the_row_and_keeps_the_cause():
    def fail(documents):
        return documents[5]

    batch = sequences(pack_payloads=fail)
    message = r"pack_payloads failed on the row that begins with sample \(0, 0, 2\): IndexError: "
    with pytest.raises(ExecutionError, match=message) as caught:
        batch.records[1].payload  # noqa: B018
    assert type(caught.value.__cause__) is IndexError


def test_what_a_function_makes_may_be_nothing_that_tensors_hold():
    batch = sequences(pack_payloads=len)
    assert batch.records[0].payload == {"packed_samples": 2}
    with pytest.raises(DataError, match=r"must be a list of dicts, or a dict .* row 0 is int; let"):
        batch.to_training()


@pytest.mark.parametrize("carry", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_batches_travel_without_their_function(carry):
    batch = sequences(pack_payloads=lambda documents: len(documents))
    assert [r.payload for r in carry(batch).records] == [{"packed_samples": n} for n in (2, 1)]
    plain = rows_of(ROWS, "sequences")
    assert carry(SampleBatch.from_rows(plain)) == SampleBatch.from_rows(plain)


# -- to_training ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "batch",
    [
        sequences(),
        SampleBatch(sequences().records),
        user_batch([{"input_ids": [1, 2, 3]}, {"input_ids": (4, 5)}], [{"input_ids": [6, 7]}]),
    ],
    ids=["engine", "records", "user"],
)
def test_documents_are_laid_end_to_end_and_padded(batch):
    out = batch.to_training(
        pad_to="longest",
        pad_token_id=9,
        return_labels=True,
        return_cu_seqlens=True,
        return_document_ids=True,
        return_padding_mask=True,
        mask_document_boundaries=True,
        dtype=None,
    )
    assert out["input_ids"] == [[1, 2, 3, 4], [6, 7, 9, 9]]
    assert out["labels"] == [[2, 3, -100, 5], [7, -100, -100, -100]]
    assert out["positions"] == [[0, 1, 2, 0], [0, 1, 0, 1]]
    assert out["document_ids"] == [[0, 0, 0, 1], [0, 0, -1, -1]]
    assert out["cu_seqlens"] == [[0, 3, 4], [0, 2, 4]]
    assert out["max_seqlen"] == [3, 2]
    assert out["padding_mask"] == [[False] * 4, [False, False, True, True]]
    assert out["texts"] == ["", ""]
    with pytest.raises(DataError, match=r"got 5 in row 0 and 2 in row 1; .* pad_to='longest'"):
        batch.to_training()


def test_the_batch_s_own_pad_id_is_used_where_none_is_given():
    for batch in (sequences(pad=3), SampleBatch(sequences(pad=3).records)):
        assert batch.to_training(pad_to=6, dtype=None)["input_ids"][1] == [6, 7, 3, 3, 3, 3]
    assert user_batch([{"ids": [1]}]).to_training(pad_to=2, dtype=None)["input_ids"] == [[1, 0]]


def test_no_source_row_is_decoded_that_nobody_asks_for():
    rows = rows_of(ROWS, "sequences", payload=True)
    SampleBatch.from_rows(rows).to_training(pad_to="longest", return_cu_seqlens=True)
    assert rows.payload.looks == 0


def test_no_more_pieces_are_looked_at_than_a_row_has():
    """A batch of many short rows: what a row costs does not grow with the others."""
    seen = []

    class Watched(np.ndarray):
        def __getitem__(self, key):
            found = super().__getitem__(key)
            seen.append(np.size(found))
            return found

    rows = rows_of([Row([Piece([1]), Piece([2])]) for _ in range(50)], "sequences", payload=True)
    spans = dataclasses.replace(rows.spans, start=rows.spans.start.view(Watched))
    batch = SampleBatch.from_rows(dataclasses.replace(rows, spans=spans))
    assert len(batch.records[7].payload["packed_samples"]) == 2
    assert seen
    assert max(seen) <= 2


def test_positions_of_the_documents_themselves_are_handed_on():
    batch = user_batch([{"ids": [1, 2], "positions": [5, 6]}, {"ids": [3], "positions": [7]}])
    out = batch.to_training(return_cu_seqlens=True, dtype=None)
    assert out["positions"] == [[5, 6, 7]]
    assert out["cu_seqlens"] == [[0, 2, 3]]  # from the list, not from positions


def test_documents_without_tokens_are_no_segment():
    batch = user_batch(
        [{"ids": []}, {"ids": [1, 2]}, {"ids": []}, {"ids": [3]}], [{"ids": [1] * 3}]
    )
    out = batch.to_training(return_cu_seqlens=True, return_document_ids=True, dtype=None)
    assert out["cu_seqlens"] == [[0, 2, 3], [0, 3, 3]]
    assert out["document_ids"] == [[0, 0, 1], [0, 0, 0]]


def test_extra_fields_come_from_the_documents_with_one_value_a_token():
    batch = user_batch([{"ids": [1, 2], "score": [0.5, 1]}, {"ids": [3], "score": [2]}])
    out = batch.to_training(extra_fields=["score"], dtype="float32")
    assert out["score"].tolist() == [[0.5, 1, 2]]


def test_joined_documents_without_a_tag_have_tokens_but_no_bounds():
    batch = user_batch({"ids": np.array([1, 2, 3])})
    assert batch.to_training(dtype=None)["input_ids"] == [[1, 2, 3]]
    assert "positions" not in batch.to_training()
    with pytest.raises(PlanError, match="return_document_ids=True needs the field 'positions'"):
        batch.to_training(return_document_ids=True)


def test_fields_beside_the_packed_samples_come_first():
    batch = records(
        {"packed_samples": [{"ids": [1, 2]}, {"ids": [3]}], "source": 7, "mask": [1, 0, 1]}
    )
    out = batch.to_training(extra_fields=["source", "mask"], dtype=None)
    assert (out["input_ids"], out["source"], out["mask"]) == ([[1, 2, 3]], [7], [[1, 0, 1]])
    own = records({"packed_samples": [{"ids": [1, 2]}], "input_ids": [8, 9, 9]})
    assert own.to_training(dtype=None)["input_ids"] == [[8, 9, 9]]
    assert "positions" not in own.to_training()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([3], "must be a list of dicts, or a dict of arrays, and that of row 0 is int"),
        ([[{"ids": [1]}], [[1]]], "must be a list of dicts, .* and that of row 1 is list"),
        ([[{"ids": [1]}, {"text": "x"}]], "'ids' must be in every document .* document 1 of row 0"),
        ([[{"ids": [1]}, {"ids": "x"}]], "'ids' of document 1 of row 0 must be a list .* got str"),
        ([[{"ids": [1]}, {"ids": 4}]], "'ids' of document 1 of row 0 must be a list .* got int"),
        ([[{"ids": [1]}, {"ids": [[4]]}]], r"'ids' must have one shape .* \(1, 1\) in document 1"),
        ([[{"text": "x"}]], "tokens_field='auto' looks for .* and the rows have text; tokenize fi"),
    ],
)
def test_documents_that_do_not_fit_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        user_batch(*rows).to_training()


def test_packed_rows_and_others_do_not_mix():
    batch = records({"packed_samples": [{"ids": [1]}]}, {"ids": [1]})
    with pytest.raises(DataError, match=r"'packed_samples' must be in every row .* row 1 has none"):
        batch.to_training()


def test_rows_that_were_changed_do_not_keep_the_bounds_of_what_was_packed():
    batch = batch_of([Row([Piece([1, 2]), Piece([3])], padding=1)], "flat")
    batch.records[0].payload["input_ids"].append(9)
    with pytest.raises(DataError, match="row 0 was packed from documents of 3 tokens and holds 4"):
        batch.to_training(return_cu_seqlens=True)
    batch.records[0].payload["positions"] = [0, 0, 1, 2, 0]
    assert batch.to_training(return_cu_seqlens=True)["cu_seqlens"].tolist() == [[0, 1, 4, 5]]


# -- fields that no array holds ----------------------------------------------------------------


def test_a_function_collates_what_arrays_do_not_hold():
    batch = records(
        {"ids": [1, 2], "image": b"ab", "boxes": [[1], [2, 3]]},
        {"ids": [3, 4], "image": b"c", "boxes": []},
    )
    out = batch.to_training(
        collate_fields={"image": b"".join, "boxes": list},
        rename_fields={"image": "pixels"},
        flatten=True,
        dtype=None,
    )
    assert out["pixels"] == b"abc"
    assert out["boxes"] == [[[1], [2, 3]], []]
    assert out["input_ids"] == [1, 2, 3, 4]


@pytest.mark.parametrize("look", [False, True])
def test_documents_give_a_list_of_values_a_row(look):
    batch = sequences()
    if look:
        batch.records[0].payload  # noqa: B018
    out = batch.to_training(pad_to="longest", collate_fields={"image": list, "text": len})
    assert out["image"] == [[b"a", None], [b"c"]]
    assert out["text"] == 2


def test_a_collate_function_gets_values_of_its_own():
    rows = [Row([Piece([1, 2], source={"image": b"a"})])]
    batch = batch_of(rows, "none", payload=True)
    assert batch.to_training(collate_fields={"image": list})["image"] == [b"a"]


def test_a_collate_function_that_fails_is_named():
    with pytest.raises(ExecutionError, match=r"collate_fields\['text'\] failed on .* 1 rows: Zero"):
        records({"ids": [1], "text": "x"}).to_training(collate_fields={"text": lambda _: 1 / 0})


def test_fields_of_tokens_are_not_collated():
    for batch in (sequences(flags="loss_mask"), records({"input_ids": [1]})):
        with pytest.raises(PlanError, match="must name fields of the payload, got 'input_ids'"):
            batch.to_training(pad_to="longest", collate_fields={"input_ids": list})
    missing = records({"ids": [1], "text": "x"}, {"ids": [1]})
    with pytest.raises(DataError, match="'text' must be in every row or in none, and row 1"):
        missing.to_training(collate_fields={"text": list})


def test_a_batch_without_tokens_is_collated_whole():
    payloads = [{"image": b"a", "n": 1}, "no dict", None]
    batch = records(*payloads)
    assert batch.collate(list) == payloads
    assert batch.collate(len) == 3
    assert SampleBatch([]).collate(list) == []
    with pytest.raises(ZeroDivisionError):
        batch.collate(lambda _: 1 / 0)
    with pytest.raises(TypeError, match="collate: function must take a list of payloads, got 3"):
        batch.collate(3)


def test_collating_an_engine_s_batch_changes_no_record():
    batch = batch_of([Row([Piece([1, 2], source={"n": 1})])], "none", payload=True)

    def change(payloads):
        payloads[0]["n"] = 9
        return payloads

    assert batch.collate(change) == [{"n": 9, "input_ids": [1, 2]}]
    assert batch.collate(list) == [{"n": 1, "input_ids": [1, 2]}]
    batch.records[0].payload["n"] = 5
    assert batch.collate(list)[0]["n"] == 5
