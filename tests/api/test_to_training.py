"""``to_training``: outputs as documented, from an engine's batch and from records."""

import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import tensors
from zephon.errors import DataError, PlanError
from zephon.types import (
    BatchRows,
    SampleBatch,
    SampleMeta,
    SampleRecord,
    Spans,
    TokenField,
)


class Kept:
    """Rows of a dataset as the engine keeps them: every look gives a fresh dict."""

    def __init__(self, rows):
        self._rows = rows

    def __len__(self):
        return len(self._rows)

    def row(self, i):
        return {**self._rows[i]} if isinstance(self._rows[i], dict) else self._rows[i]


def engine_rows(
    rows,
    *,
    padding=None,
    positions=None,
    packing="none",
    masks=(),
    payload=None,
    container="list",
    name="input_ids",
    longest=False,
    more=None,
    documents=None,
    **fields_of_batch,
):
    """Columns as the engine makes them; where rows are packed, positions say of which documents.

    documents: of each row, the lengths of its documents, where positions do not say it.
    """
    count = len(rows)
    offsets = np.cumsum([0, *map(len, rows)])

    def field(values, dtype):
        return TokenField(np.array([v for row in values for v in row], dtype), offsets)

    fields = {name: field(rows, np.int64)}
    if positions is not None:
        fields["positions"] = field(positions, np.int32)
    for key, values in (more or {}).items():
        fields[key] = field(values, np.int64)
    pads = np.zeros(count, np.int64) if padding is None else np.array(padding, np.int64)
    content = (np.diff(offsets) - pads).tolist()
    if documents is None:
        told = positions if packing == "flat" and positions is not None else [None] * count
        documents = [pieces(n, at) for n, at in zip(content, told, strict=True)]
    lengths = np.array([n for row in documents for n in row], np.int64)
    splits = np.cumsum([0, *map(len, documents)])
    row = np.repeat(np.arange(count), np.diff(splits))
    spans = Spans(
        row_splits=splits,
        start=np.zeros(len(lengths), np.int64),
        length=lengths,
        closes=np.ones(len(lengths), bool),
        component=np.zeros(len(lengths), np.int32),
        dataset_id=np.full(len(lengths), 3),
        shard_id=row,
        row=row + 10,
        ordinal=np.arange(len(lengths)),
        child=np.full(len(lengths), -1, np.int32),
    )
    return BatchRows(
        fields=fields,
        tokens_field=name,
        masks=masks,
        spans=spans,
        lane=np.zeros(count, np.int64),
        padding=None if padding is None else pads,
        packing=packing,
        payload=None if payload is None else Kept(payload),
        container=container,
        chunk_size=16384,
        pad_token_id=0,
        pad_to_longest=longest,
        **fields_of_batch,
    )


def pieces(content, positions):
    """Give the lengths of the documents that positions count, or of one that is all the row."""
    if positions is None or not content:
        return [content]
    starts = [i for i, at in enumerate(positions[:content]) if at == 0]
    return [b - a for a, b in pairwise([*starts, content])]


def engine_batch(rows, **options):
    return SampleBatch.from_rows(engine_rows(rows, **options))


def user_batch(*payloads, padding=None):
    tags = [{}] * len(payloads)
    if padding is not None:
        tags = [{"_packing_metadata": {"padding_length": p}} for p in padding]
    return SampleBatch(
        SampleRecord(SampleMeta((0, 0, i), 0, 0, i, tags=tags[i]), payload)
        for i, payload in enumerate(payloads)
    )


def plain(value):
    """Values together with the type that they came in, so that equal means equal."""
    if isinstance(value, torch.Tensor):
        return ("torch", value.dtype, tuple(value.shape), value.tolist())
    if isinstance(value, np.ndarray):
        return ("numpy", value.dtype, value.shape, value.tolist())
    return (type(value), value)


EXAMPLE_ROWS = [[0, 1, 2, 3, 4, 9, 9, 9]] * 2
EXAMPLE_POSITIONS = [[0, 1, 2, 3, 4, 0, 1, 2]] * 2


def example_batches():
    payloads = [
        {"input_ids": row, "positions": at}
        for row, at in zip(EXAMPLE_ROWS, EXAMPLE_POSITIONS, strict=True)
    ]
    engine = engine_batch(EXAMPLE_ROWS, positions=EXAMPLE_POSITIONS, padding=[3, 3], packing="flat")
    return [
        pytest.param(engine, id="engine"),
        pytest.param(user_batch(*payloads, padding=[3, 3]), id="records"),
    ]


@pytest.mark.parametrize("batch", example_batches())
def test_the_documented_example(batch):
    out = batch.to_training(
        return_labels=True,
        return_loss_mask=True,
        return_padding_mask=True,
        return_cu_seqlens=True,
        return_num_valid_tokens=True,
    )
    assert out["input_ids"].tolist() == [[0, 1, 2, 3, 4, 9, 9]] * 2
    assert out["labels"].tolist() == [[1, 2, 3, 4, -100, -100, -100]] * 2
    assert out["positions"].tolist() == [[0, 1, 2, 3, 4, 0, 1]] * 2
    assert out["loss_mask"].tolist() == [[1, 1, 1, 1, 0, 0, 0]] * 2
    assert out["padding_mask"].tolist() == [[False] * 5 + [True] * 2] * 2
    assert out["cu_seqlens"].tolist() == [[0, 5, 7]] * 2
    assert out["max_seqlen"].tolist() == [5, 5]
    assert out["num_valid_tokens"] == 8
    assert type(out["num_valid_tokens"]) is int
    assert out["texts"] == ["", ""]
    types = {name: value.dtype for name, value in out.items() if hasattr(value, "dtype")}
    assert types == {
        "input_ids": torch.long,
        "labels": torch.long,
        "positions": torch.long,
        "loss_mask": torch.float32,
        "padding_mask": torch.bool,
        "cu_seqlens": torch.int32,
        "max_seqlen": torch.int32,
    }


@pytest.mark.parametrize("batch", example_batches())
def test_flatten_lays_rows_end_to_end(batch):
    out = batch.to_training(
        return_labels=True, flatten=True, return_padding_mask=True, return_cu_seqlens=True
    )
    assert out["labels"].tolist() == [1, 2, 3, 4, -100, -100, -100] * 2
    assert out["input_ids"].shape == out["positions"].shape == out["padding_mask"].shape == (14,)
    assert out["cu_seqlens"].tolist() == [0, 5, 7, 12, 14]
    assert out["max_seqlen"] == 5
    assert type(out["max_seqlen"]) is int


@pytest.mark.parametrize("batch", example_batches())
def test_without_labels_nothing_is_shifted_or_masked(batch):
    out = batch.to_training(return_padding_mask=True, return_cu_seqlens=True)
    assert list(out) == [
        *("ids", "texts", "input_ids", "positions"),
        *("padding_mask", "cu_seqlens", "max_seqlen"),
    ]
    assert out["input_ids"].tolist() == EXAMPLE_ROWS
    assert out["positions"].tolist() == EXAMPLE_POSITIONS
    assert out["padding_mask"].sum().item() == 6
    assert out["cu_seqlens"].tolist() == [[0, 5, 8]] * 2


# -- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", example_batches())
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("auto", torch.int64),
        (torch.int32, torch.int32),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16),
        (np.int64, np.dtype(np.int64)),
        (np.dtype("int32"), np.dtype(np.int32)),
        ("float64", np.dtype(np.float64)),
    ],
)
def test_dtype_decides_tokens_labels_and_positions(batch, dtype, kind):
    out = batch.to_training(return_labels=True, dtype=dtype)
    assert out["input_ids"].dtype == out["labels"].dtype == out["positions"].dtype == kind
    assert out["labels"].tolist() == [[1, 2, 3, 4, -100, -100, -100]] * 2


@pytest.mark.parametrize("batch", example_batches())
def test_dtype_none_gives_lists(batch):
    out = batch.to_training(return_labels=True, dtype=None, return_padding_mask=True)
    assert out["labels"] == [[1, 2, 3, 4, -100, -100, -100]] * 2
    assert out["padding_mask"][0] == [False] * 5 + [True] * 2
    assert type(out["positions"][0][0]) is int


def test_auto_is_numpy_where_torch_is_missing(monkeypatch):
    def forget():
        tensors._installed_torch.cache_clear()
        tensors._target_of.cache_clear()

    monkeypatch.setitem(sys.modules, "torch", None)
    forget()
    try:
        out = engine_batch(EXAMPLE_ROWS).to_training()
        with pytest.raises(ImportError, match=r"pip install 'zephon\[torch\]'"):
            engine_batch(EXAMPLE_ROWS, container="pt").records[0].payload  # noqa: B018
    finally:
        forget()
    assert out["input_ids"].dtype == np.int64


def test_importing_the_types_loads_no_torch():
    code = "import sys, zephon.types; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("dtype", ["bool", "text", complex, torch.bool, [1], object()])
def test_a_dtype_that_holds_no_numbers_is_refused(dtype):
    with pytest.raises(PlanError, match="dtype must be 'auto', a torch or NumPy type"):
        engine_batch(EXAMPLE_ROWS).to_training(dtype=dtype)


@pytest.mark.parametrize("dtype", [np.int16, torch.int16, np.float16, torch.bfloat16])
def test_a_token_that_the_dtype_would_change_is_refused(dtype):
    with pytest.raises(DataError, match=r"'input_ids' holds 50257, which .* pass a wider dtype"):
        engine_batch([[1, 50257]]).to_training(dtype=dtype)


def test_an_ignore_index_that_the_dtype_cannot_hold_is_refused():
    with pytest.raises(PlanError, match="ignore_index must fit uint16, got -100"):
        engine_batch(EXAMPLE_ROWS).to_training(return_labels=True, dtype=np.uint16)


# -- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 8])
def test_inputs_and_labels_are_contiguous_and_share_nothing(rows):
    columns = engine_rows([list(range(33))] * rows, positions=[list(range(33))] * rows)
    batch = SampleBatch.from_rows(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = batch.to_training(return_labels=True)
    assert all(out[name].is_contiguous() for name in ("input_ids", "labels", "positions"))
    inputs, labels = out["input_ids"].numpy(), out["labels"].numpy()
    assert not np.shares_memory(inputs, labels)
    assert not np.shares_memory(inputs, columns.fields["input_ids"].values)
    assert not np.shares_memory(labels, columns.fields["input_ids"].values)
    out["labels"].view(-1).fill_(7)
    assert out["input_ids"].tolist() == [list(range(32))] * rows


def test_without_labels_inputs_are_the_batch_s_own_memory():
    columns = engine_rows(EXAMPLE_ROWS)
    out = SampleBatch.from_rows(columns).to_training()
    assert np.shares_memory(out["input_ids"].numpy(), columns.fields["input_ids"].values)


def test_a_read_only_buffer_is_copied_not_handed_out():
    columns = engine_rows(EXAMPLE_ROWS, more={"loss_mask": [[1] * 8] * 2})
    for column in columns.fields.values():
        column.values.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = SampleBatch.from_rows(columns).to_training(dtype=np.int64)
    assert out["input_ids"].flags.writeable
    assert out["loss_mask"].flags.writeable


def test_records_keep_their_values_when_outputs_are_written_to():
    values = np.arange(4)
    batch = user_batch({"input_ids": values})
    batch.to_training(dtype=np.int64)["input_ids"][:] = 0
    assert values.tolist() == [0, 1, 2, 3]


# -- fields -----------------------------------------------------------------------------------


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
    assert batch.to_training()["input_ids"].tolist() == [[8, 9]]
    assert batch.to_training(tokens_field="ids")["input_ids"].tolist() == [[1, 2]]


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
    columns = engine_rows([[0, 0]], payload=[{"tokens": [5, 6], "text": "t"}])
    raw = {
        name: getattr(columns, name)
        for name in (
            *("masks", "spans", "lane", "padding", "packing", "payload", "container"),
            *("chunk_size", "pad_token_id", "pad_to_longest"),
        )
    }
    batch = SampleBatch.from_rows(BatchRows(fields={}, tokens_field=None, **raw))
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


# -- names ------------------------------------------------------------------------------------


def test_renames_may_swap_and_come_before_exclusion():
    out = engine_batch(EXAMPLE_ROWS, positions=EXAMPLE_POSITIONS).to_training(
        return_labels=True,
        rename_fields={"input_ids": "labels", "labels": "input_ids", "positions": "position_ids"},
        exclude_fields=("ids", "texts", "nothing of that name"),
    )
    assert list(out) == ["labels", "input_ids", "position_ids"]
    assert out["labels"].tolist() == [row[:-1] for row in EXAMPLE_ROWS]
    assert out["input_ids"].tolist() == [row[1:] for row in EXAMPLE_ROWS]


@pytest.mark.parametrize(
    ("renames", "message"),
    [
        ({"label": "x"}, "no output 'label' to rename; did you mean 'labels'"),
        ({"input_ids": "labels"}, "gives the name 'labels' to two outputs"),
        ({"input_ids": "x", "labels": "x"}, "gives the name 'x' to two outputs"),
    ],
)
def test_renames_that_do_not_fit_are_refused(renames, message):
    with pytest.raises(PlanError, match=message):
        engine_batch(EXAMPLE_ROWS).to_training(return_labels=True, rename_fields=renames)


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"return_label": True}, TypeError, "no argument 'return_label'; did you mean 'return_la"),
        ({"exclude_fields": "ids"}, TypeError, "exclude_fields must be a list or tuple of names"),
        ({"extra_fields": "mask"}, TypeError, "extra_fields must be a list or tuple of names"),
        ({"extra_fields": 3}, TypeError, "extra_fields must be a list or tuple of names"),
        ({"rename_fields": ["ids"]}, TypeError, "rename_fields must be a dict"),
        ({"tokens_field": None}, ValueError, "tokens_field must be 'auto' or the name"),
        ({"tokens_field": "input_id"}, ValueError, "no tokens field 'input_id' in row 0; did you"),
        ({"position_mode": "sequences"}, ValueError, "position_mode must be .* mean 'sequence'"),
        ({"return_loss_mask": True}, ValueError, "return_loss_mask=True needs labels"),
        ({"return_num_valid_tokens": True}, ValueError, "return_num_valid_tokens=True needs la"),
        ({"eos_mask_loss": True, "eos_token_id": 1}, ValueError, "eos_mask_loss=True needs label"),
        ({"eos_mask_loss": True, "return_labels": True}, ValueError, "needs eos_token_id, got Non"),
        ({"eos_token_id": -1}, ValueError, "eos_token_id must be at least 0, got -1"),
        ({"eos_token_id": True}, ValueError, "eos_token_id must be an int, got True"),
        ({"eos_token_id": 1.0}, ValueError, "eos_token_id must be an int, got 1.0"),
        ({"ignore_index": "no"}, ValueError, "ignore_index must be an int, got 'no'"),
        ({"extra_fields": ["attention"]}, ValueError, "extra field 'attention' is missing in row"),
        ({"mask_document_boundaries": True}, ValueError, "mask_document_boundaries=True needs lab"),
        ({"mask_document_boundary": True}, TypeError, "did you mean 'mask_document_boundaries'"),
        ({"pad_to": "longst"}, ValueError, "pad_to must be 'longest', .*; did you mean 'longest'"),
        ({"pad_to": 0}, ValueError, "pad_to must be at least 1, got 0"),
        ({"pad_to": True}, ValueError, "pad_to must be an int, got True"),
        ({"pad_to": 1}, ValueError, "pad_to must be at least .* longest row, which are 2 in row 0"),
        ({"pad_token_id": 5}, ValueError, "pad_token_id=5 needs pad_to, got None"),
        ({"pad_to": 3, "pad_token_id": -1}, ValueError, "pad_token_id must be at least 0, got -1"),
        ({"pad_to": 3, "pad_token_id": 1.5}, ValueError, "pad_token_id must be an int, got 1.5"),
        ({"collate_fields": [list]}, TypeError, "collate_fields must be a dict from fields to"),
        ({"collate_fields": {"a": 1}}, TypeError, r"collate_fields\['a'\] must be a function"),
        ({"collate_fields": {"labels": list}}, ValueError, "got 'labels', which is made already"),
        ({"collate_fields": {"loss_mask": list}}, ValueError, "'loss_mask', which is made already"),
        (
            {"collate_fields": {"a": list}, "extra_fields": ["a"]},
            ValueError,
            "got 'a', which extra_fields names too",
        ),
        (
            {"collate_fields": {"image": list}},
            ValueError,
            "must name fields of the payload, got 'im",
        ),
        (
            {"extra_fields": ["document_ids"], "return_document_ids": True},
            ValueError,
            "got 'document_ids', which to_training makes itself",
        ),
        *(
            ({"extra_fields": [name], "return_labels": True}, ValueError, f"got '{name}', which to")
            for name in (
                *("loss_mask", "padding_mask", "num_valid_tokens", "cu_seqlens", "max_seqlen"),
                *("input_ids", "labels", "ids", "texts", "positions"),
            )
        ),
    ],
)
@pytest.mark.parametrize(
    "batch",
    [engine_batch([[1, 2]] * 2), user_batch({"input_ids": [1, 2]}, {"input_ids": [3, 4]})],
    ids=["engine", "records"],
)
def test_an_argument_that_does_not_fit_is_refused(batch, arguments, error, message):
    with pytest.raises(error, match=message):
        batch.to_training(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"return_cu_seqlens": True},
        {"return_document_ids": True},
        {"mask_document_boundaries": True, "return_labels": True},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_records_of_a_user_must_say_where_documents_begin(arguments):
    batch = user_batch({"input_ids": [1, 2]}, {"input_ids": [3, 4]})
    with pytest.raises(
        PlanError, match=f"{next(iter(arguments))}=True needs the field 'positions'"
    ):
        batch.to_training(**arguments)
    assert engine_batch([[1, 2]] * 2).to_training(**arguments)


@pytest.mark.parametrize(
    ("second", "arguments", "message"),
    [
        ({}, {}, "'tokens' must be in every row or in none, and row 1 has none"),
        (
            {"tokens": [1, 2], "positions": [0, 1], "loss_mask": [1, 1]},
            {"extra_fields": ["x"]},
            "'x' must be in every row or in none, and row 1 has none",
        ),
        (
            {"tokens": [1, 2], "x": 1, "loss_mask": [1, 1]},
            {},
            "'positions' must be in every row or in none, and row 1",
        ),
        (
            {"tokens": [1, 2], "x": 1, "positions": [0, 1]},
            {},
            "'loss_mask' must be in every row or in none, and row 1",
        ),
        (
            {"tokens": [1, 2], "positions": [0], "loss_mask": [1, 1]},
            {},
            "'positions' must have one value a token, and row 1 has 2 tokens and 1 values",
        ),
        (
            {"tokens": [1, 2], "positions": [0, 1], "loss_mask": [1, 1, 1]},
            {},
            "'loss_mask' must have one value a token, and row 1 has 2 tokens and 3 values",
        ),
        (
            {"tokens": [1, 2], "positions": [1, 2], "loss_mask": [1, 1]},
            {"return_cu_seqlens": True},
            "needs positions that start at 0, and those of row 1 start at 1",
        ),
        ({"tokens": "one two"}, {}, "'tokens' of row 1 must hold numbers .* got str 'one two'"),
        ({"tokens": [1, None]}, {}, r"'tokens' of row 1 must hold numbers .* got list \[1, None\]"),
        ({"tokens": [[1], [2]]}, {}, r"'tokens' must have one shape .* \(2,\) in row 0 and \(2, 1"),
        ({"tokens": 7}, {}, r"'tokens' must have one shape beside its length"),
    ],
)
@pytest.mark.parametrize("labels", [False, True])
def test_a_row_that_does_not_fit_is_refused_by_number(second, arguments, message, labels):
    first = {"tokens": [1, 2], "x": 1, "positions": [0, 1], "loss_mask": [1, 1]}
    with pytest.raises(DataError, match=message):
        user_batch(first, second).to_training(return_labels=labels, **arguments)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [(7, "got single values"), ([[1], [2]], "got nested sequences")],
)
def test_tokens_must_be_one_sequence_a_row(tokens, message):
    with pytest.raises(DataError, match=message):
        user_batch({"tokens": tokens}).to_training()


def test_positions_must_be_a_sequence():
    with pytest.raises(DataError, match=r"'positions' must have one value a token.*single value"):
        user_batch({"tokens": [1, 2], "positions": 0}).to_training()


@pytest.mark.parametrize("length", [-1, 3])
def test_padding_must_lie_inside_the_row(length):
    for batch in (
        user_batch({"tokens": [1, 2]}, {"tokens": [1, 2]}, padding=[0, length]),
        engine_batch([[1, 2]] * 2, padding=[0, length], packing="flat"),
    ):
        with pytest.raises(DataError, match=f"padding_length of row 1 .* 0 to 2.* got {length}"):
            batch.to_training(return_labels=True)
    with pytest.raises(DataError, match="padding_length of row 0 must be an int, got 'two'"):
        user_batch({"tokens": [1, 2]}, padding=["two"]).to_training()


def test_an_eos_id_that_does_nothing_is_warned_of_at_the_caller():
    with pytest.warns(UserWarning, match="eos_token_id=2 does nothing") as caught:
        engine_batch([[1, 2]]).to_training(eos_token_id=2)
    assert caught[0].filename == __file__


def test_an_empty_batch_answers_with_nothing():
    empty = SampleBatch([])
    assert empty.to_training() == {"ids": [], "texts": []}
    everything = {
        "return_labels": True,
        "return_loss_mask": True,
        "return_num_valid_tokens": True,
        "return_padding_mask": True,
        "return_cu_seqlens": True,
        "return_document_ids": True,
        "mask_document_boundaries": True,
        "collate_fields": {"image": list},
    }
    assert empty.to_training(**everything, rename_fields={"input_ids": "x", "ids": "who"}) == {
        "who": [],
        "texts": [],
        "loss_mask": [],
        "num_valid_tokens": 0,
        "padding_mask": [],
        "cu_seqlens": [],
        "max_seqlen": [],
        "document_ids": [],
    }
    flat = empty.to_training(**everything, flatten=True)
    assert (flat["cu_seqlens"], flat["max_seqlen"]) == ([0], 0)
    with pytest.raises(PlanError):
        empty.to_training(return_loss_mask=True)


# -- the engine's columns and records of the same content say the same ------------------------


def cut(draw, row):
    """Cut a row of tokens into documents; return their lengths."""
    cuts = draw(st.lists(st.integers(0, len(row)), max_size=2).map(sorted))
    return [b - a for a, b in pairwise([0, *cuts, len(row)])]


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
    if packing == "flat":
        positions = [
            [at for n in (*row, pad) for at in range(n)]
            for row, pad in zip(documents, padding, strict=True)
        ]
    how = {"list": "keep_list", "np": "numpy_array", "pt": "torch_tensor"}.get(container, list)
    return engine_rows(
        rows,
        padding=padding,
        positions=positions if packing != "sequences" and draw(st.booleans()) else None,
        documents=documents,
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
        "collate_fields": st.just({"score": list}),
    },
)


@settings(max_examples=400, deadline=None)
@given(columns=any_columns(), arguments=ARGUMENTS)
@pytest.mark.filterwarnings("ignore:to_training. eos_token_id")
def test_columns_and_records_give_the_same(columns, arguments):
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
    rebuilt = answer(SampleBatch(SampleBatch.from_rows(columns).records))
    if rebuilt != expected:  # records that no packer made do not say what documents they are
        assert columns.packing == "none"
        assert "positions" not in columns.fields
        assert rebuilt[0] is PlanError
        assert "needs the field 'positions'" in rebuilt[1]
    for record in engine.records:
        record.payload  # noqa: B018
    assert answer(engine) == expected
