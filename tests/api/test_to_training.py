"""``to_training``: outputs as documented, their types and their memory."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from tests.columns_by_hand import engine_batch, engine_rows, user_batch
from zephon import tensors
from zephon.errors import DataError, PlanError
from zephon.types import SampleBatch

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
        tensors.installed_torch.cache_clear()
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
