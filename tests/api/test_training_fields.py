"""``to_training``: which fields of a payload are read, how, and rows of unequal length."""

import numpy as np
import pytest
import torch

from tests.columns_by_hand import columns_of, engine_batch, engine_rows, user_batch
from zephon.errors import DataError, PlanError
from zephon.types import SampleBatch

EXAMPLE_ROWS = [[0, 1, 2, 3, 4, 9, 9, 9]] * 2
EXAMPLE_POSITIONS = [[0, 1, 2, 3, 4, 0, 1, 2]] * 2


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, torch.tensor, lambda v: np.array(v, np.uint16)]
)
def test_payloads_may_hold_any_container(make):
    batch = user_batch({"tokens": make([1, 2, 3])}, {"tokens": [4, 5, 6]})
    out = batch.to_training(return_labels=True)
    assert out["input_ids"].tolist() == [[1, 2], [4, 5]]
    assert out["labels"].tolist() == [[2, 3], [5, 6]]


def test_auto_takes_the_first_documented_name():
    payload = {"ids": [4, 4], "token_ids": [3, 3], "tokens": [2, 2], "input_ids": [1, 1]}
    for name, value in [("input_ids", 1), ("tokens", 2), ("token_ids", 3), ("ids", 4)]:
        assert user_batch(payload).to_training()["input_ids"].tolist() == [[value, value]]
        del payload[name]
    with pytest.raises(PlanError, match="looks for input_ids, tokens, token_ids, ids, and the"):
        user_batch({"text": "x"}).to_training()


def test_auto_sees_kept_fields_of_an_engine_s_batch():
    batch = engine_batch([[1, 2]], name="ids", payload=[{"tokens": [8, 9]}])
    assert batch.to_training()["input_ids"].tolist() == [[1, 2]]  # the batch's own come first
    assert batch.to_training(tokens_field="tokens")["input_ids"].tolist() == [[8, 9]]


def test_texts_come_from_the_kept_payload():
    batch = engine_batch([[1], [2]], payload=[{"text": "one"}, {"text": None}])
    assert batch.to_training()["texts"] == ["one", "None"]
    assert user_batch({"tokens": [1], "text": 5}).to_training()["texts"] == ["5"]


def test_ids_are_those_of_the_rows():
    assert engine_batch([[1], [2]]).to_training()["ids"] == [(3, 0, 10), (3, 1, 11)]


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_payloads_may_be_arrays(make):
    batch = user_batch(make([1, 2, 3]), make([4, 5, 6]))
    out = batch.to_training(return_labels=True, tokens_field="input_ids")
    assert out["labels"].tolist() == [[2, 3], [5, 6]]
    assert out["texts"] == ["", ""]


@pytest.mark.parametrize("odd", [[1, 2], None, "text", np.arange(2)])
def test_other_payloads_are_a_type_error(odd):
    with pytest.raises(TypeError, match="payloads must be all dicts or all arrays, got dict, "):
        user_batch({"tokens": [1, 2]}, odd).to_training()


def test_a_batch_of_raw_rows_is_read_from_its_payload():
    batch = SampleBatch.from_rows(columns_of({}, [[0]], payload=[{"tokens": [5, 6], "text": "t"}]))
    assert batch.to_training()["input_ids"].tolist() == [[5, 6]]
    assert batch.records[0].payload == {"tokens": [5, 6], "text": "t"}
    assert batch.records[0].meta.component_token_counts is None


def test_sequence_positions_number_every_row():
    out = engine_batch(EXAMPLE_ROWS).to_training(position_mode="sequence", return_labels=True)
    assert out["positions"].tolist() == [list(range(7))] * 2
    with_own = engine_batch(EXAMPLE_ROWS, positions=EXAMPLE_POSITIONS)
    out = with_own.to_training(position_mode="sequence", return_cu_seqlens=True)
    assert out["positions"].tolist() == [list(range(8))] * 2
    assert out["cu_seqlens"].tolist() == [[0, 5, 8]] * 2  # from the payload's positions


def test_extra_fields_are_stacked_and_shifted():
    batch = user_batch(
        {"tokens": [1, 2, 3], "kind": 5, "mask": [True, True, False], "at": [[1, 2]] * 3},
        {"tokens": [4, 5, 6], "kind": 6, "mask": [1, 0, 0], "at": [[3, 4]] * 3},
    )
    out = batch.to_training(extra_fields=["kind", "mask", "at"], return_labels=True)
    assert out["kind"].tolist() == [5, 6]
    assert out["mask"].tolist() == [[1, 1], [1, 0]]
    assert out["at"].tolist() == [[[1, 2], [1, 2]], [[3, 4], [3, 4]]]
    assert {out[name].dtype for name in ("kind", "mask", "at")} == {torch.long}
    assert out["mask"].is_contiguous()
    flat = batch.to_training(extra_fields=["kind", "at"], return_labels=True, flatten=True)
    assert flat["kind"].tolist() == [5, 6]
    assert flat["at"].shape == (4, 2)


def test_an_extra_field_of_another_length_stands_alone_but_is_not_shifted():
    batch = user_batch({"tokens": [1, 2, 3], "box": [7, 8]})
    assert batch.to_training(extra_fields=["box"])["box"].tolist() == [[7, 8]]
    with pytest.raises(DataError, match="'box' must have one value a token, and row 0 has 3"):
        batch.to_training(extra_fields=["box"], return_labels=True)


def test_a_fraction_is_not_cut_to_fit_the_tokens_type():
    batch = user_batch({"tokens": [1], "score": 0.5})
    with pytest.raises(DataError, match=r"'score' holds 0\.5, which torch\.int64 cannot hold"):
        batch.to_training(extra_fields=["score"])
    assert batch.to_training(extra_fields=["score"], dtype=None)["score"] == [0.5]
    assert batch.to_training(extra_fields=["score"], dtype="float32")["score"].tolist() == [0.5]


def test_masks_are_made_when_asked_for():
    batch = engine_batch(EXAMPLE_ROWS, masks=("attention_mask",), padding=[3, 0], packing="flat")
    assert "attention_mask" not in batch.to_training()
    out = batch.to_training(extra_fields=["attention_mask"])
    assert out["attention_mask"].tolist() == [[1] * 5 + [0] * 3, [1] * 8]
    assert batch.records[0].payload["attention_mask"] == [1] * 5 + [0] * 3


def test_a_payload_loss_mask_masks_labels_and_passes_through_without_them():
    batch = user_batch({"tokens": [1, 2, 3, 4], "loss_mask": [1, 0, 0.5, 1]})
    out = batch.to_training(return_labels=True, return_loss_mask=True)
    assert out["labels"].tolist() == [[-100, 3, 4]]
    assert out["loss_mask"].tolist() == [[0, 1, 1]]
    raw = batch.to_training()["loss_mask"]
    assert raw.tolist() == [[1, 0, 0.5, 1]]
    assert raw.dtype == torch.float64


def test_eos_masks_the_label_behind_it_when_asked():
    batch = engine_batch([[1, 2, 0, 3, 2, 4]])
    plainly = batch.to_training(return_labels=True)
    assert plainly["labels"].tolist() == [[2, 0, 3, 2, 4]]
    masked = batch.to_training(return_labels=True, eos_mask_loss=True, eos_token_id=np.int64(2))
    assert masked["labels"].tolist() == [[2, -100, 3, 2, -100]]


def test_a_pad_id_equal_to_eos_keeps_the_real_eos_label():
    batch = engine_batch([[5, 6, 2, 2, 2]], padding=[2], packing="flat")
    out = batch.to_training(return_labels=True, ignore_index=-1)
    assert out["labels"].tolist() == [[6, 2, -1, -1]]


def test_boundaries_do_not_depend_on_token_values():
    rows = [[1, 2, 9, 3, 9, 4, 9, 9]]  # 9 ends both documents, stands inside one, and pads
    batch = engine_batch(rows, positions=[[0, 1, 2, 0, 1, 2, 3, 0]], padding=[1], packing="flat")
    assert batch.to_training(return_cu_seqlens=True)["cu_seqlens"].tolist() == [[0, 3, 7, 8]]


def test_rows_with_fewer_segments_are_filled_with_the_row_s_length():
    at = [[0, 1, 0, 1, 0], [0, 1, 2, 3, 4]]
    batch = engine_batch([[1] * 5] * 2, positions=at, packing="flat")
    out = batch.to_training(return_cu_seqlens=True, return_labels=True)
    assert out["cu_seqlens"].tolist() == [[0, 2, 4], [0, 4, 4]]
    assert out["max_seqlen"].tolist() == [2, 4]


def test_a_row_of_padding_loses_one_label_to_the_shift():
    out = engine_batch([[0] * 4], padding=[4], packing="flat").to_training(
        return_labels=True, return_num_valid_tokens=True, return_padding_mask=True
    )
    assert out["labels"].tolist() == [[-100] * 3]
    assert out["num_valid_tokens"] == 0
    assert out["padding_mask"].tolist() == [[True] * 3]


@pytest.mark.parametrize("width", [0, 1])
def test_rows_too_short_for_a_label_give_none(width):
    batch = engine_batch([[1] * width] * 2, positions=[[0] * width] * 2)
    out = batch.to_training(return_labels=True, return_num_valid_tokens=True)
    assert out["input_ids"].shape == out["labels"].shape == out["positions"].shape == (2, 0)
    assert out["num_valid_tokens"] == 0
    bounds = batch.to_training(return_labels=True, return_cu_seqlens=True, flatten=True)
    assert bounds["cu_seqlens"].tolist() == [0]


# -- rows of unequal length -------------------------------------------------------------------


@pytest.mark.parametrize(
    "batch",
    [
        engine_batch([[1, 2], [3, 4], [5]]),
        user_batch({"input_ids": [1, 2]}, {"input_ids": [3, 4]}, {"input_ids": [5]}),
    ],
    ids=["engine", "records"],
)
def test_rows_of_unequal_length_are_refused_naming_both(batch):
    with pytest.raises(
        DataError, match=r"got 2 in row 0 and 1 in row 2; pack with pack_flat, or .*'longest'"
    ):
        batch.to_training()


def test_rows_are_padded_to_the_longest_where_the_pipeline_said_so():
    columns = engine_rows([[1, 2, 3], [4]], masks=("attention_mask",), longest=True)
    asked = {"extra_fields": ["attention_mask"], "return_padding_mask": True}
    for batch in (
        SampleBatch.from_rows(columns),
        SampleBatch(SampleBatch.from_rows(columns).records),  # as a map_batch function may do
    ):
        out = batch.to_training(return_labels=True, **asked)
        assert out["input_ids"].tolist() == [[1, 2], [4, 0]]
        assert out["labels"].tolist() == [[2, 3], [-100, -100]]
        assert out["attention_mask"].tolist() == [[1, 1], [1, 0]]
        assert out["padding_mask"].tolist() == [[False, False], [False, True]]


def test_padding_to_the_longest_numbers_its_own_tail():
    batch = engine_batch([[1, 2, 3], [4]], positions=[[0, 1, 2], [0]], longest=True)
    out = batch.to_training(return_cu_seqlens=True)
    assert out["positions"].tolist() == [[0, 1, 2], [0, 0, 1]]
    assert out["cu_seqlens"].tolist() == [[0, 3, 3], [0, 1, 3]]


@pytest.mark.parametrize(
    "batch",
    [
        engine_batch([[1, 2, 3], [4]]),
        engine_batch([[1, 2, 3], [4]], longest=True),
        user_batch({"ids": np.array([1, 2, 3], np.uint8)}, {"ids": np.array([4], np.uint8)}),
        user_batch(np.array([1, 2, 3]), np.array([4])),
    ],
    ids=["engine", "longest", "records", "arrays"],
)
def test_rows_are_padded_when_asked_with_the_id_and_to_the_width_asked_for(batch):
    out = batch.to_training(pad_to="longest", pad_token_id=50256, return_labels=True, dtype=None)
    assert out["input_ids"] == [[1, 2], [4, 50256]]
    assert out["labels"] == [[2, 3], [-100, -100]]
    wide = batch.to_training(pad_to=5, return_padding_mask=True, dtype=None)
    assert wide["input_ids"] == [[1, 2, 3, 0, 0], [4, 0, 0, 0, 0]]
    assert wide["padding_mask"] == [[False] * 3 + [True] * 2, [False] + [True] * 4]
    flat = batch.to_training(pad_to=4, flatten=True, dtype=None)
    assert flat["input_ids"] == [1, 2, 3, 0, 4, 0, 0, 0]


def test_aligned_fields_are_padded_with_nothing():
    batch = user_batch(
        {"ids": [1, 2], "loss_mask": [True, True], "score": [0.5, 1.5], "at": [[1, 2]] * 2},
        {"ids": [3], "loss_mask": [True], "score": [2.5], "at": [[3, 4]]},
    )
    out = batch.to_training(pad_to="longest", extra_fields=["score", "at"], dtype="float32")
    assert out["score"].tolist() == [[0.5, 1.5], [2.5, 0]]
    assert out["at"].tolist() == [[[1, 2], [1, 2]], [[3, 4], [0, 0]]]
    assert out["loss_mask"].tolist() == [[True, True], [True, False]]
    assert out["loss_mask"].dtype == bool


def test_padding_of_a_row_that_has_some_goes_on_as_one_segment():
    rows = [[1, 2, 0], [3, 4, 5]]
    at = [[0, 1, 0], [0, 1, 0]]
    engine = engine_batch(rows, positions=at, padding=[1, 0], packing="flat")
    own = user_batch(
        *({"ids": row, "positions": p} for row, p in zip(rows, at, strict=True)), padding=[1, 0]
    )
    for batch in (engine, own):
        out = batch.to_training(
            pad_to=5, return_cu_seqlens=True, return_document_ids=True, dtype=None
        )
        assert out["positions"] == [[0, 1, 0, 1, 2], [0, 1, 0, 0, 1]]
        assert out["cu_seqlens"] == [[0, 2, 5, 5], [0, 2, 3, 5]]
        assert out["document_ids"] == [[0, 0, -1, -1, -1], [0, 0, 1, -1, -1]]


# -- documents --------------------------------------------------------------------------------


def test_rows_that_nothing_packed_are_a_document_each():
    batch = engine_batch([[1, 2, 3], [4]], longest=True)
    out = batch.to_training(return_cu_seqlens=True, return_document_ids=True, dtype=None)
    assert out["cu_seqlens"] == [[0, 3, 3], [0, 1, 3]]
    assert out["document_ids"] == [[0, 0, 0], [0, -1, -1]]


def test_document_ids_number_on_over_a_flat_batch():
    at = [[0, 1, 0, 1, 2], [0, 1, 2, 0, 0]]
    batch = engine_batch([[1] * 5] * 2, positions=at, padding=[0, 1], packing="flat")
    each = batch.to_training(return_document_ids=True)["document_ids"]
    assert each.tolist() == [[0, 0, 1, 1, 1], [0, 0, 0, 1, -1]]
    assert each.dtype == torch.int32
    flat = batch.to_training(return_document_ids=True, flatten=True)
    assert flat["document_ids"].tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, -1]


def test_a_payload_field_may_be_called_document_ids_while_nobody_asks_for_ours():
    batch = user_batch({"ids": [1, 2], "document_ids": [7, 8]})
    assert batch.to_training(extra_fields=["document_ids"])["document_ids"].tolist() == [[7, 8]]


def test_a_user_s_positions_say_where_documents_begin_and_padding_is_none():
    """The tail's positions need not begin anew: its length is known from the packing tag."""
    batch = user_batch({"ids": [1, 2, 3, 0, 0], "positions": [0, 0, 1, 2, 3]}, padding=[2])
    out = batch.to_training(
        return_document_ids=True, mask_document_boundaries=True, return_labels=True, dtype=None
    )
    assert out["document_ids"] == [[0, 1, 1, -1]]
    assert out["labels"] == [[-100, 3, -100, -100]]


def test_weights_of_labels_are_those_of_the_payload():
    batch = user_batch({"tokens": [1, 2, 3, 4], "loss_mask": [1, 0, 0.5, 2]})
    out = batch.to_training(return_labels=True, return_loss_weights=True)
    assert list(out)[-1] == "loss_weights"
    assert "loss_mask" not in out
    assert out["loss_weights"].tolist() == [[0, 0.5, 2]]
    assert out["loss_weights"].dtype == torch.float32
    flat = batch.to_training(return_labels=True, return_loss_weights=True, flatten=True)
    assert flat["loss_weights"].tolist() == [0, 0.5, 2]
    plain = user_batch({"tokens": [1, 2, 3]})
    assert plain.to_training(return_labels=True, return_loss_weights=True)[
        "loss_weights"
    ].tolist() == [[1, 1]]
    with pytest.raises(PlanError, match="return_loss_weights=True needs labels"):
        batch.to_training(return_loss_weights=True)
