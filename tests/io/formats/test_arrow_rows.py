import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError
from zephon.io.formats.arrow_rows import TableRows, python_value

ONE = [
    (pa.scalar(3, pa.int16()), np.int16(3)),
    (pa.scalar(3, pa.uint64()), np.uint64(3)),
    (pa.scalar(1.5, pa.float32()), np.float32(1.5)),
    (pa.scalar(True), np.bool_(True)),
    (pa.scalar("a"), "a"),
    (pa.scalar("a", pa.large_string()), "a"),
    (pa.scalar(b"a"), b"a"),
    (pa.scalar(None, pa.int16()), None),
    (pa.scalar(None), None),
    (pa.scalar(Decimal("1.50")), Decimal("1.50")),
    (pa.scalar(1, pa.timestamp("ms", "UTC")), np.datetime64(1, "ms")),
    (pa.scalar(datetime.date(2024, 1, 2)), np.datetime64("2024-01-02")),
    (pa.scalar({"a": 1, "b": None}), {"a": 1, "b": None}),
    (pa.scalar([[1], []]), [[1], []]),
    (pa.scalar([1, None]), [1, None]),
    (pa.scalar(["a"]), ["a"]),
    (pa.array(["x"]).dictionary_encode()[0], "x"),
]


@pytest.mark.parametrize(("scalar", "value"), ONE, ids=str)
def test_values(scalar, value):
    found = python_value(scalar)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "dtype", [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)], ids=str
)
def test_lists_of_numbers_are_read_only_arrays_of_their_own(dtype):
    array = pa.array([[1, 2], [3, 4]], dtype)
    found = python_value(array[1])
    assert found.dtype == np.int32
    assert found.tolist() == [3, 4]
    assert not found.flags.writeable
    assert found.flags.owndata


def test_lists_of_booleans_and_empty_lists():
    assert python_value(pa.scalar([True, False])).dtype == np.bool_
    assert python_value(pa.scalar([], pa.list_(pa.float32()))).dtype == np.float32


def test_a_row_is_fresh_each_time():
    rows = TableRows(pa.table({"text": ["a", "b"], "m": [{"x": [1]}, {"x": []}], "n": [1, 2]}))
    first = rows.row(0)
    first["m"]["x"].append("mine")
    assert rows.row(0) == {"text": "a", "m": {"x": [1]}, "n": 1}
    assert rows.row(1)["text"] == "b"


def test_rows_of_a_table_in_chunks():
    table = pa.concat_tables([pa.table({"n": [1, 2]}), pa.table({"n": [3]})])
    assert [TableRows(table).row(i)["n"] for i in range(3)] == [1, 2, 3]


def test_text_that_is_not_utf8_is_named() -> None:
    text = pa.array([b"ok", b"\xff"]).view(pa.string())
    rows = TableRows(pa.table({"text": text}), "dataset 'd', shard 'a'", 10)
    assert rows.row(0) == {"text": "ok"}
    with pytest.raises(DataError, match=r"dataset 'd', shard 'a', row 11: field 'text' must be"):
        rows.row(1)


def test_some_rows_are_copied_and_keep_their_numbers() -> None:
    text = [b"a", b"b", b"c", b"\xff", b"e", b"f"]
    chunks = [pa.array(text[:2]), pa.array([], pa.binary()), pa.array(text[2:])]
    column = pa.chunked_array([chunk.view(pa.string()) for chunk in chunks])
    numbers = pa.chunked_array([pa.array([{"n": [n]} for n in range(6)])])
    rows = TableRows(pa.table({"text": column, "m": numbers}), "dataset 'd', shard 'a'", 10)
    some, places = rows.some(np.array([5, 1, 3, 5]))
    assert some is not rows
    assert [some.row(places[i])["text"] for i in (0, 1, 3)] == ["f", "b", "f"]
    assert some.row(places[1]) == {"text": "b", "m": {"n": [1]}}
    fewer, places = some.some(places[2:])
    assert fewer.row(places[1]) == {"text": "f", "m": {"n": [5]}}
    for source, place in ((some, 1), (fewer, 0)):
        with pytest.raises(DataError, match="shard 'a', row 13: field 'text'"):
            source.row(place)


def test_rows_that_arrow_cannot_copy_stay_in_their_table() -> None:
    rows = TableRows(pa.table({"text": pa.array(["a", "b"], pa.string_view())}))
    some, places = rows.some(np.array([1]))
    assert some.row(places[0]) == {"text": "b"}


def test_some_rows_of_a_table_without_columns() -> None:
    some, places = TableRows(pa.table({})).some(np.array([3, 1]))
    assert some.row(places[0]) == {}


@pytest.mark.parametrize(("scalar", "value"), ONE, ids=str)
def test_some_rows_hold_the_same_values(scalar, value) -> None:
    column = pa.chunked_array([pa.array([scalar.as_py()], scalar.type)] * 3)
    some, places = TableRows(pa.table({"x": column})).some(np.array([2, 1]))
    found = some.row(places[0])["x"]
    assert found == value
    assert type(found) is type(value)
