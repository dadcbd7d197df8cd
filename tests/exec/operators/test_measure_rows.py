"""What rows measure: by a function of the user, or by the length of a field."""

import numpy as np
import pyarrow as pa
import pytest

from zephon.exec.morsel import Morsel
from zephon.exec.operator import RowError
from zephon.exec.operators import MeasureRowsOp
from zephon.io.fields import TOKENS
from zephon.io.formats.memory import ObjectRows
from zephon.io.payload import Payload
from zephon.planner import physical
from zephon.work.refs import Refs


def refs(count):
    rows = np.arange(count)
    narrow = np.zeros(count, np.int32)
    return Refs.of(narrow, rows * 0, rows, narrow, rows)


def morsel(count, rows=None, **columns):
    """Make rows with columns of tokens, and whole rows below them."""
    arrays = [
        pa.array(values, pa.large_string() if name == "text" else TOKENS)
        for name, values in columns.items()
    ]
    payload = None
    if rows is not None:
        payload = Payload((ObjectRows(rows),), np.zeros(count, np.int32), np.arange(count))
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    return Morsel(refs(count), batch, payload)


def step(name="length", **changes):
    known = {"function": None, "field": None, "token_fields": (), "masks": (), "container": "list"}
    return MeasureRowsOp(physical.MeasureRows(name=name, **{**known, **changes}))


def measured(rows, name="length", **changes):
    found = step(name, **changes).run(rows).measures[name]
    assert found.dtype == np.int64
    return (found.view(np.float64) if name == "weight" else found).tolist()


def test_a_function_gets_each_row_as_a_record_has_it():
    seen = []

    def length(row):
        seen.append(row)
        row["input_ids"].append(9)  # its own copy
        return len(row["input_ids"])

    rows = [{"text": "a", "input_ids": "below"}, {"text": "b"}]
    made = morsel(2, rows, input_ids=[[1, 2], [3]])
    changes = {"token_fields": ("input_ids",), "masks": ("attention_mask",)}
    assert measured(made, function=length, **changes) == [3, 2]
    assert seen == [
        {"text": "a", "input_ids": [1, 2, 9], "attention_mask": [1, 1]},
        {"text": "b", "input_ids": [3, 9], "attention_mask": [1]},
    ]
    assert rows[0]["input_ids"] == "below"
    assert made.columns.column(0).to_pylist() == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("container", "kind"), [("list", list), ("tuple", tuple), ("np", np.ndarray)]
)
def test_tokens_are_held_as_in_a_record(container, kind):
    def length(row):
        assert isinstance(row["input_ids"], kind)
        if kind is np.ndarray:
            assert row["input_ids"].dtype == np.int64
            row["input_ids"][:] = 0
        return int(sum(row["input_ids"]))

    made = morsel(2, input_ids=[[1, 2], [3]])
    wanted = [0, 0] if kind is np.ndarray else [3, 3]
    changes = {"function": length, "token_fields": ("input_ids",), "container": container}
    assert measured(made, **changes) == wanted
    assert made.columns.column(0).to_pylist() == [[1, 2], [3]]


def test_rows_that_are_no_dicts_go_to_the_function_as_they_are():
    made = morsel(2, ["abc", [1]])
    assert measured(made, function=len) == [3, 1]


def test_a_field_that_is_a_column_is_measured_without_its_rows():
    made = morsel(3, input_ids=[[1, 2], [], [3]], text=["größe", "", "ab"])
    assert measured(made, field="input_ids") == [2, 0, 1]
    assert measured(made, field="text") == [5, 0, 2]
    assert measured(made, "weight", field="input_ids") == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (7, 7),
        (np.int16(7), 7),
        (np.array(7), 7),
        (np.zeros((3, 2)), 3),
        ([1, 2], 2),
        ((), 0),
        ("größe", 5),
        (b"ab", 2),
        ({"a": 1}, 1),
    ],
)
def test_any_other_field_is_a_number_or_has_a_length(value, length):
    assert measured(morsel(1, [{"x": value}]), field="x") == [length]


def test_tensors_have_a_length():
    import torch

    rows = [{"x": torch.zeros(4, 2)}, {"x": torch.tensor(5)}]
    assert measured(morsel(2, rows), field="x") == [4, 5]


def test_weights_are_any_finite_numbers():
    rows = [{"x": 0.25}, {"x": np.float32(0.5)}, {"x": 3}]
    assert measured(morsel(3, rows), "weight", field="x") == [0.25, 0.5, 3.0]
    assert measured(morsel(3, rows), "weight", function=lambda row: row["x"] * 2) == [0.5, 1.0, 6.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("length", -1), ("length", 1.0), ("length", True), ("length", None), ("length", 2**63),
        ("weight", -0.5), ("weight", float("inf")), ("weight", float("nan")), ("weight", "1"),
        ("weight", None), ("weight", True),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_of_the_row(name, value):
    made = morsel(2, [{"x": 1}, {"x": 2}])
    with pytest.raises(RowError) as told:
        measured(made, name, function=lambda row: 1 if row["x"] == 1 else value)
    assert told.value.row == 1
    word = "a whole number" if name == "length" else "a finite number"
    assert told.value.problem == (
        f"a {name} must be {word} of at least 0, got {value!r} from the function"
    )
    assert told.value.__cause__ is None


def test_what_a_function_raises_is_kept():
    error = ZeroDivisionError("no")

    def length(row):
        raise error

    with pytest.raises(RowError, match="the function raised ZeroDivisionError: no") as told:
        measured(morsel(1, [{}]), function=length)
    assert told.value.__cause__ is error


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"y": 1}, "no field 'x'; the row has y"),
        ("text", "a row with a field 'x' was wanted, got a str"),
        ({"x": None}, "field 'x' must hold a whole number or a list, got None"),
        ({"x": 0.5}, "a length must be a whole number of at least 0, got 0.5 from field 'x'"),
    ],
)
def test_a_row_without_such_a_field(row, problem):
    with pytest.raises(RowError) as told:
        measured(morsel(2, [{"x": 1}, row]), field="x")
    assert (told.value.row, told.value.problem) == (1, problem)


def test_measures_stand_beside_each_other_and_rows_may_be_none():
    made = step("weight", function=lambda row: 0.5).run(morsel(2, [{}, {}]))
    made = step("length", function=lambda row: 3).run(made)
    assert made.measures["length"].tolist() == [3, 3]
    assert made.measures["weight"].view(np.float64).tolist() == [0.5, 0.5]
    assert measured(morsel(0, []), function=len) == []
    assert measured(morsel(0, []), field="x") == []
