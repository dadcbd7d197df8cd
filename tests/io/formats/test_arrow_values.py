"""Columns as Python values: the same, of the same types, as value by value."""

import datetime
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.arrow_values import python_value, python_values

DAY = datetime.date(2024, 2, 29)
TIME = datetime.time(1, 2, 3, 4)
STRUCT = pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})


class Tagged(pa.ExtensionType):
    """An extension type over lists of numbers."""

    def __init__(self):
        super().__init__(pa.list_(pa.int16()), "tests.tagged")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


COLUMNS = [
    *(pa.array([1, None, 0, 127], dtype) for dtype in map(
        pa.type_for_alias, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
    )),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([-(2**63), 2**63 - 1], pa.int64()),
    pa.array(np.array([1.5, np.nan], np.float16)),
    pa.array([1.5, None, float("nan"), -0.0, float("inf")], pa.float32()),
    pa.array([1.5, None], pa.float64()),
    pa.array([True, None, False]),
    pa.array([None, None]),
    *(pa.array(["a", None, "größe", ""], t) for t in (pa.string(), pa.large_string())),
    pa.array(["a", None, "a string too long to be kept inline"], pa.string_view()),
    *(pa.array([b"a", None, b"\xff"], t) for t in (pa.binary(), pa.large_binary())),
    pa.array([b"ab", None], pa.binary(2)),
    pa.array(["a", None, "b", "a"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([5, None], pa.int8())),
    pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
    pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)),
    *(pa.array([1, None, -5], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
    pa.array([1, None, -(2**63)], pa.timestamp("us", "Europe/Rome")),
    pa.array([DAY, None], pa.date32()),
    pa.array([DAY, None], pa.date64()),
    pa.array([TIME, None], pa.time64("us")),
    pa.array([1, None], pa.time32("ms")),
    pa.array([1, None], pa.duration("us")),
    *(
        pa.array([[1, 2], None, [], [3, None], [4]], make(pa.int32()))
        for make in (pa.list_, pa.large_list)
    ),
    pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)),
    pa.array([[True], [], None, [None]]),
    pa.array([[1.5], []], pa.list_(pa.float32())),
    pa.array([["a"], None, []]),
    pa.array([[[1], []], None]),
    pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}], STRUCT),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.ExtensionArray.from_storage(Tagged(), pa.array([[1], None], pa.list_(pa.int16()))),
    pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
]  # fmt: skip


def same(one, other):
    """Compare values with their types, not-a-number with itself."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.flags.owndata == other.flags.owndata is True
        assert one.flags.writeable == other.flags.writeable
        return bool(np.array_equal(one, other))
    if isinstance(one, np.datetime64):
        assert one.dtype == other.dtype
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or bool(one != one and other != other)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_column_gives_what_its_values_give(column):
    wanted = [python_value(scalar) for scalar in column]
    assert all(map(same, python_values(column), wanted))
    assert len(python_values(column)) == len(column)
    assert all(map(same, python_values(column.slice(1)), wanted[1:]))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
@pytest.mark.parametrize("chunks", [1, 3])
def test_rows_at_once_are_rows_one_by_one(column, chunks):
    table = pa.table({"x": pa.chunked_array([column] * chunks), "n": range(chunks * len(column))})
    rows = TableRows(table)
    count = len(table)
    for picked in (np.arange(count), np.arange(count)[::-1], np.array([1, 1, 0]), np.arange(0)):
        found = rows.rows(picked)
        assert len(found) == len(picked)
        for row, index in zip(found, picked.tolist(), strict=True):
            wanted = rows.row(index)
            assert list(row) == ["x", "n"]
            assert same(row["x"], wanted["x"])
            assert same(row["n"], wanted["n"])


def test_rows_at_once_share_nothing():
    rows = TableRows(pa.table({"m": [{"x": [1]}], "n": [[1]]}))
    first, second = rows.rows(np.array([0, 0]))
    first["m"]["x"].append(2)
    assert second["m"] == {"x": [1]}
    assert not np.shares_memory(first["n"], second["n"])


def test_a_bad_row_among_others_is_named():
    text = pa.array([b"ok", b"\xff", b"ok"]).view(pa.string())
    rows = TableRows(pa.table({"text": text}), "dataset 'd', shard 'a'", 10)
    assert rows.rows(np.array([2, 0])) == [{"text": "ok"}] * 2
    with pytest.raises(DataError, match=r"dataset 'd', shard 'a', row 11: field 'text' must be"):
        rows.rows(np.array([0, 1]))


def test_a_day_that_python_does_not_have_fails_as_alone():
    rows = TableRows(pa.table({"d": pa.array([2932897], pa.int32()).view(pa.date32())}))
    with pytest.raises(DataError, match="row 0: field 'd' must hold what Python has") as alone:
        rows.row(0)
    with pytest.raises(DataError, match=re.escape(str(alone.value))):
        rows.rows(np.array([0]))


def nanoseconds(dtype, count=None):
    """A column of such a type with a value of so many nanoseconds; without any, a null."""
    count = pa.array([count], pa.int64())
    if pa.types.is_struct(dtype):
        return pa.StructArray.from_arrays([count.view(dtype[0].type)], fields=list(dtype))
    if pa.types.is_map(dtype):
        return pa.MapArray.from_arrays([0, 1], pa.array(["k"]), count.view(dtype.item_type))
    if pa.types.is_list(dtype):
        return pa.ListArray.from_arrays([0, 1], count.view(dtype.value_type))
    if pa.types.is_large_list(dtype):
        return pa.LargeListArray.from_arrays([0, 1], count.view(dtype.value_type))
    return count.view(dtype)


STAMP = datetime.datetime(1970, 1, 1, 0, 0, 0, 5)
NANOSECONDS = [
    (pa.duration("ns"), datetime.timedelta(microseconds=5)),
    (pa.time64("ns"), datetime.time(0, 0, 0, 5)),
    (pa.list_(pa.duration("ns")), [datetime.timedelta(microseconds=5)]),
    (pa.large_list(pa.timestamp("ns")), [STAMP]),
    (pa.list_(pa.timestamp("ns", "UTC")), [STAMP.replace(tzinfo=datetime.UTC)]),
    (pa.struct([("x", pa.timestamp("ns"))]), {"x": STAMP}),
    (pa.map_(pa.string(), pa.time64("ns")), [("k", datetime.time(0, 0, 0, 5))]),
]


@pytest.mark.parametrize(("dtype", "wanted"), NANOSECONDS, ids=str)
def test_whole_microseconds_become_what_python_has_with_pandas_or_without(dtype, wanted):
    (found,) = python_values(nanoseconds(dtype, 5000))
    assert found == wanted
    assert type(found) is type(wanted)
    nothing = python_value(nanoseconds(dtype)[0])
    assert nothing in (None, [None], {"x": None}, [("k", None)])


@pytest.mark.parametrize(("dtype", "wanted"), NANOSECONDS, ids=str)
def test_parts_of_a_microsecond_are_refused_with_their_place(dtype, wanted):
    table = pa.table({"d": pa.concat_arrays([nanoseconds(dtype, n) for n in (5000, 5001)])})
    rows = TableRows(table, "dataset 'd', shard 'a'", 10)
    assert rows.row(0) == {"d": wanted}
    message = (
        r"dataset 'd', shard 'a', row 11: field 'd' must hold what Python has a value for, as "
        r"datetime has whole microseconds, got .*lose data: 5001\); round or cast the field"
    )
    with pytest.raises(DataError, match=message):
        rows.row(1)
    with pytest.raises(DataError, match=message):
        rows.rows(np.array([0, 1]))


def test_timestamps_keep_their_nanoseconds():
    column = pa.array([5001], pa.timestamp("ns"))
    assert python_value(column[0]) == python_values(column)[0] == np.datetime64(5001, "ns")


def test_rows_without_columns():
    assert TableRows(pa.table({})).rows(np.array([2, 0])) == [{}, {}]
