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
