"""Typed columns out of expression columns and out of whole rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.exec.operators.morsels import morsel, payload_of
from zephon.exec.operator import RowError
from zephon.exec.operators import TypeColumnsOp
from zephon.io.fields import TEXT, TOKENS, Column
from zephon.io.made_rows import MadeRows
from zephon.planner import physical
from zephon.types import SampleMeta

TEXTS = Column("text", "text")
IDS = Column("ids", "tokens")


def typed(rows, *columns, **more):
    return TypeColumnsOp(physical.TypeColumns(columns=columns, **more)).run(rows)


def with_frame(**columns):
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values) for values in columns.values()
    ]
    count = len(arrays[0])
    frame = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    return replace(morsel([{}] * count), payload=None, frame=frame)


@pytest.mark.parametrize(
    ("column", "values", "wanted"),
    [
        (TEXTS, ["a", "größe"], ["a", "größe"]),
        (TEXTS, ["a", np.str_("b")], ["a", "b"]),
        (IDS, [[1, 2], []], [[1, 2], []]),
        (IDS, [[], []], [[], []]),
        (IDS, [[1, np.int64(2)], (3,)], [[1, 2], [3]]),
        (IDS, [np.array([1, 2], np.int16), np.array([3], np.int16)], [[1, 2], [3]]),
        (IDS, [np.array([1, 2]), [3]], [[1, 2], [3]]),
        (IDS, [np.array([]), np.array([])], [[], []]),
        (Column("ids", "int64"), [[2**40], [1]], [[2**40], [1]]),
        (Column("ids", "float64"), [[1, 0.5], [2]], [[1.0, 0.5], [2.0]]),
        (Column("ids", "float32"), [np.array([0.5], "f4"), np.array([], "f4")], [[0.5], []]),
        (Column("ids", "bool"), [[True], [False, True]], [[1], [0, 1]]),
        (Column("ids", "bool"), [np.array([True]), np.array([False])], [[1], [0]]),
    ],
)
def test_whole_rows_become_columns(column, values, wanted):
    rows = [{column.path: value, "other": 1} for value in values]
    made = typed(morsel(rows), column)
    assert made.columns.column(column.path).type == column.type
    assert made.columns.column(column.path).to_pylist() == wanted
    assert made.payload.rows()[0]["other"] == 1


def test_columns_do_not_share_memory_with_the_rows():
    values = [np.array([1, 2], np.int32)]
    rows = payload_of(MadeRows([{"ids": values[0]}]), 1)
    made = typed(replace(morsel([{}]), payload=rows), IDS)
    values[0][:] = 9
    assert made.columns.column("ids").to_pylist() == [[1, 2]]


def test_inner_and_absent_fields():
    rows = morsel([{"a": {"b": "x"}}, {"a": {}}, {"a.b": "y"}])
    assert typed(rows, Column("a.b", "text", missing="empty")).columns.column(0).to_pylist() == [
        "x", "", "y",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "bad", "problem"),
    [
        (TEXTS, {"text": 3}, "field 'text' must be text, got a number"),
        (TEXTS, {"text": None}, "field 'text' must be text, got null"),
        (TEXTS, {"x": 1}, "no field 'text'; the row has x; name one of these, or pass"),
        (TEXTS, ["text"], "a row must be an object with fields, got"),
        (TEXTS, {"text": "\ud800"}, "field 'text' must be valid UTF-8"),
        (IDS, {"ids": [2**31]}, "field 'ids' must be a list of 32-bit integers, got 2147483648"),
        (IDS, {"ids": [2**70]}, "field 'ids' must be a list of 32-bit integers"),
        (IDS, {"ids": [True]}, "field 'ids' must be a list of 32-bit integers, got a list that"),
        (IDS, {"ids": np.array([2**31])}, "field 'ids' must be a list of 32-bit integers"),
        (IDS, {"ids": np.zeros((1, 1), int)}, "field 'ids' must be a list of 32-bit integers"),
        (IDS, {"ids": "ab"}, "field 'ids' must be a list of 32-bit integers, got text"),
        (
            Column("text", "text", without=("late",)),
            {"text": "", "late": 1},
            "field 'late' must be",
        ),
    ],
)
def test_the_first_bad_row_is_named_in_the_words_of_rows_in_memory(column, bad, problem):
    good = {"text": "a", "ids": [1], "late": None}
    with pytest.raises(RowError) as told:
        typed(morsel([good, good, bad, bad]), column)
    assert told.value.row == 2
    assert told.value.problem.startswith(problem)
    assert told.value.way_out.startswith("mend the row, or what made it")


def test_what_an_object_raises_is_kept():
    class Odd(dict):
        def __contains__(self, name):
            raise ZeroDivisionError("no")

    with pytest.raises(RowError, match="field 'text' raised ZeroDivisionError: no") as told:
        typed(replace(morsel([{}]), payload=payload_of(MadeRows([Odd()]), 1)), TEXTS)
    assert isinstance(told.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("column", "values", "wanted"),
    [
        (TEXTS, pa.array(["a", "b"]), ["a", "b"]),
        (TEXTS, pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (IDS, pa.array([[1], [2, 3]], pa.list_(pa.int64())), [[1], [2, 3]]),
        (IDS, pa.array([[], []], pa.list_(pa.null())), [[], []]),
        (Column("ids", "float64"), pa.array([[1], []], pa.list_(pa.int8())), [[1.0], []]),
        (Column("ids", "bool"), pa.array([[True], []]), [[1], []]),
    ],
)
def test_the_frame_becomes_columns(column, values, wanted):
    made = typed(with_frame(**{column.path: values}), column)
    assert made.columns.column(column.path).type == column.type
    assert made.columns.column(column.path).to_pylist() == wanted
    assert made.frame.schema.names == [column.path]  # for expressions above


def test_a_field_inside_the_objects_of_the_frame():
    rows = with_frame(a=[{"b": {"c": "x"}}, {"b": {"c": "y"}}])
    assert typed(rows, Column("a.b.c", "text")).columns.column(0).to_pylist() == ["x", "y"]
    with pytest.raises(RowError, match="must be text, got null") as told:
        typed(with_frame(a=[{"b": "x"}, None]), Column("a.b", "text"))
    assert told.value.row == 1


@pytest.mark.parametrize(
    ("column", "values", "row", "problem"),
    [
        (TEXTS, pa.array(["a", None]), 1, "field 'text' must be text, got null"),
        (TEXTS, pa.array([None, None], pa.int64()), 0, "field 'text' must be text, got null"),
        (TEXTS, pa.array([None, 3]), 1, "field 'text' must be text, got a number"),
        (TEXTS, pa.array([[], []], pa.list_(pa.null())), 0, "field 'text' must be text, got"),
        (
            IDS,
            pa.array([[1], [None]]),
            1,
            "field 'ids' must be a list of 32-bit integers, got a list",
        ),
        (IDS, pa.array([[1], [2**31]]), 1, "field 'ids' must be a list of 32-bit integers, got 21"),
        (IDS, pa.array(["a"]), 0, "field 'ids' must be a list of 32-bit integers, got text"),
        (IDS, pa.array([[], [0.5]]), 0, "field 'ids' must be a list of 32-bit integers, got"),
    ],
)
def test_bad_rows_of_the_frame(column, values, row, problem):
    with pytest.raises(RowError) as told:
        typed(with_frame(**{column.path: values}), column)
    assert told.value.problem.startswith(problem)
    assert told.value.row == row


def test_the_frame_comes_before_whole_rows_and_typed_columns_stay():
    frame = pa.RecordBatch.from_arrays([pa.array(["frame"])], names=["text"])
    rows = replace(morsel([{"text": "row", "ids": [5], "x": [6]}], ids=[[1]]), frame=frame)
    made = typed(rows, TEXTS, IDS, Column("x", "tokens"))
    assert made.columns.to_pydict() == {"ids": [[1]], "text": ["frame"], "x": [[6]]}
    assert made.columns.schema.types == [TOKENS, TEXT, TOKENS]


def test_whole_rows_may_go_but_not_who_they_are():
    metas = [SampleMeta((0, 0, 5), 0, 0)]
    rows = morsel([{"text": "a"}], metas)
    made = typed(rows, TEXTS, keep_payload=False)
    assert made.payload.rows() == [{}]
    assert made.payload.meta(0) == metas[0]
    assert typed(morsel([{"text": "a"}]), TEXTS, keep_payload=False).payload is None
    assert typed(rows, TEXTS).payload.rows() == [{"text": "a"}]


def test_no_rows_and_nowhere_to_look():
    made = typed(morsel([]), TEXTS, IDS, Column("b", "bool"))
    assert made.columns.num_rows == 0
    assert made.columns.schema.types == [TEXT, TOKENS, pa.large_list(pa.uint8())]
    assert typed(with_frame(text=pa.array([], TEXT)), TEXTS).columns.num_rows == 0


def test_a_field_that_no_step_gives_and_no_row_has():
    with pytest.raises(RowError, match="no field 'text'"):
        typed(with_frame(other=["a"]), TEXTS)
    empty = Column("text", "text", missing="empty")
    assert typed(with_frame(other=["a", "b"]), empty).columns.column(0).to_pylist() == ["", ""]
