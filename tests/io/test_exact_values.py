import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError
from zephon.io.exact_values import checked, checked_column, exact_column

UTC = datetime.UTC
DAY = datetime.datetime(2020, 1, 1)
OBJECT = pa.struct([("a", pa.int64()), ("b", pa.large_string())])


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None, -1], pa.int8()),
        ([1.5, 2, None], pa.float64()),
        ([True, None], pa.bool_()),
        (["2024-01-01", None], pa.large_string()),
        ([b"a", None], pa.large_binary()),
        ([[1, None], [], None], pa.large_list(pa.int64())),
        ([{"a": 1}, {}, None, {"b": "x", "a": None}], OBJECT),
        ([None, None], pa.timestamp("us")),
    ],
)
def test_plain_values_become_a_column_at_once(values, dtype):
    column = exact_column(values, dtype)
    assert column is not None
    assert column.type == dtype
    slow = checked_column([checked(value, dtype) for value in values], dtype)
    assert column.equals(slow)
    assert column.to_pylist()[0] == slow.to_pylist()[0]


@pytest.mark.parametrize(
    ("value", "dtype", "made"),
    [
        (2**60, pa.float64(), 2.0**60),
        (np.int16(3), pa.int64(), 3),
        (np.uint64(2**63), pa.float64(), 2.0**63),
        (np.bool_(True), pa.bool_(), True),
        (0.5, pa.float32(), 0.5),
        (np.array([1, 2], np.uint8), pa.large_list(pa.int64()), [1, 2]),
        (np.array([[1], [2]]), pa.large_list(pa.large_list(pa.int8())), [[1], [2]]),
        ((1, 2), pa.large_list(pa.int8()), [1, 2]),
        (bytearray(b"x"), pa.large_binary(), b"x"),
        (DAY, pa.timestamp("ms"), DAY),
        (np.datetime64("2020-01-01"), pa.date32(), DAY.date()),
        (np.datetime64("2020-01-01T00:00:00", "s"), pa.timestamp("us"), DAY),
        (
            DAY.replace(tzinfo=datetime.UTC),
            pa.timestamp("us", "UTC"),
            DAY.replace(tzinfo=datetime.UTC),
        ),
        (Decimal("1.5"), pa.decimal128(5, 2), Decimal("1.50")),
    ],
)
def test_other_values_are_taken_one_by_one(value, dtype, made):
    column = checked_column([checked(value, dtype), None], dtype)
    assert column.type == dtype
    assert column.to_pylist() == [made, None]


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ("5", pa.int64(), "text '5'"),
        (5, pa.large_string(), "5"),
        (True, pa.int64(), "the boolean True"),
        (True, pa.float64(), "the boolean True"),
        (1, pa.bool_(), "1"),
        (3.0, pa.int64(), "3.0"),
        (300, pa.int8(), "300"),
        (-1, pa.uint64(), "-1"),
        (2**53 + 1, pa.float64(), str(2**53 + 1)),
        (10**400, pa.float64(), "an integer of 1329 bits"),
        (0.1, pa.float32(), "0.1"),
        ([1, "a"], pa.large_list(pa.int64()), "text 'a'"),
        ("ab", pa.large_list(pa.large_string()), "text 'ab'"),
        ([1], pa.large_string(), r"a list: \[1\]"),
        ("x" * 99, pa.int8(), f"text '{'x' * 60}'\\.\\.\\.$"),
        ({"a": "x"}, OBJECT, "an object whose 'a' is text 'x'"),
        ({"c": 1}, OBJECT, "an object with 'c', which that type lacks"),
        ("a\ud800", pa.large_string(), r"text with '\\ud800' at character 1"),
        ("2020-01-01", pa.timestamp("us"), "text '2020-01-01'"),
        (DAY.replace(microsecond=1), pa.timestamp("ms"), "2020-01-01 00:00:00.000001"),
        (Decimal("1.25"), pa.decimal128(5, 1), "1.25"),
    ],
)
def test_nothing_becomes_what_it_is_not(value, dtype, message):
    assert exact_column([None, value], dtype) is None
    with pytest.raises(DataError, match=f"^{message}"):
        checked(value, dtype)


def test_nulls_in_a_list_stay_a_list_of_nulls():
    nulls = pa.large_list(pa.null())
    for dtype, value in ((nulls, [None, None]), (pa.struct([("a", nulls)]), {"a": [None]})):
        assert checked_column([checked(value, dtype), None], dtype).to_pylist() == [value, None]


def test_a_time_without_a_zone_is_of_utc_where_one_is_declared():
    found = checked_column([checked(DAY, pa.timestamp("us", "UTC"))], pa.timestamp("us", "UTC"))
    assert found[0].as_py() == DAY.replace(tzinfo=datetime.UTC)
