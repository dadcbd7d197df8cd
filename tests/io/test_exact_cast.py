import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.exact_cast import exact_cast

BROKEN = pa.array([b"a", b"\xff", None, "ü".encode()]).view(pa.string())
DAY = datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("column", "wanted", "values", "bad"),
    [
        (pa.array([1, 2**53 + 1, 2**53 + 2, None]), pa.float64(), [1, None, 2**53 + 2, None], [1]),
        (pa.array([2**63 - 1, -(2**63)]), pa.float64(), [None, -(2**63)], [0]),
        (pa.array([0.1, 1.5, None]), pa.float32(), [None, 1.5, None], [0]),
        (pa.array([1e300, np.inf]), pa.float32(), [None, np.inf], [0]),
        (pa.array([1.0, 1.5, np.nan, None]), pa.int8(), [1, None, None, None], [1, 2]),
        (pa.array([300, None, -1, 7]), pa.uint8(), [None, None, None, 7], [0, 2]),
        (pa.array([2**63, 5], pa.uint64()), pa.int64(), [None, 5], [0]),
        (
            pa.array([Decimal("1.25"), Decimal("1.50")]),
            pa.decimal128(5, 1),
            [None, Decimal("1.5")],
            [0],
        ),
        (pa.array([7]), pa.decimal128(22, 2), [Decimal("7.00")], []),
        (pa.array([DAY, DAY.replace(microsecond=5)]), pa.timestamp("ms"), [DAY, None], [1]),
        (pa.array([datetime.datetime(9000, 1, 1)]), pa.timestamp("ns"), [None], [0]),
        (pa.array([datetime.date(2020, 1, 1)], pa.date64()), pa.date32(), [DAY.date()], []),
        (BROKEN, pa.large_string(), ["a", None, None, "ü"], [1]),
        (BROKEN.dictionary_encode(), pa.large_string(), ["a", None, None, "ü"], [1]),
        (pa.array(["a", None], pa.string_view()), pa.large_string(), ["a", None], []),
        (pa.array([b"abcd"], pa.binary(4)), pa.large_binary(), [b"abcd"], []),
        (pa.nulls(2), pa.struct([("a", pa.int8())]), [None, None], []),
        (
            pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)),
            pa.large_list(pa.int64()),
            [[1, 2], None, [3, None]],
            [],
        ),
        (pa.array([[1], [300, 1], []]), pa.large_list(pa.int8()), [[1], None, []], [1]),
        (
            pa.array([{"a": 1}, None, {"a": 300}]),
            pa.struct([("b", pa.large_string()), ("a", pa.int8())]),
            [{"b": None, "a": 1}, None, None],
            [2],
        ),
    ],
)
def test_values_stay_what_they_are_or_are_bad(column, wanted, values, bad):
    made, rows = exact_cast(column, wanted)
    made.validate(full=True)
    assert (made.type, made.to_pylist(), rows.tolist()) == (wanted, values, bad)
    made, rows = exact_cast(pa.concat_arrays([column, column]).slice(len(column)), wanted)
    assert (made.to_pylist(), rows.tolist()) == (values, bad)


def test_text_inside_lists_and_objects_is_looked_at():
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 4]), BROKEN)
    made, rows = exact_cast(lists, pa.large_list(pa.large_string()))
    assert (made.to_pylist(), rows.tolist()) == ([None, [], [None, "ü"]], [0])
    objects = pa.StructArray.from_arrays([BROKEN], names=["t"])
    made, rows = exact_cast(objects, pa.struct([("t", pa.large_string())]))
    assert (made[0].as_py(), made[1].as_py(), rows.tolist()) == ({"t": "a"}, None, [1])


def test_what_needs_no_change_is_shared():
    column = pa.array([1, None])
    assert exact_cast(column, pa.int64())[0] is column
    text = pa.array(["größe"], pa.large_string())
    assert exact_cast(text, text.type)[0].buffers()[2].address == text.buffers()[2].address


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="values of type int64 cannot be read as large_string"):
        exact_cast(pa.array([1]), pa.large_string())


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.sampled_from(["float32", "float64", "int16", "uint64"]),
)
def test_a_number_is_equal_afterwards_or_bad(values, name):
    wanted = pa.type_for_alias(name)
    made, bad = exact_cast(pa.array(values, pa.int64()), wanted)
    limits = np.dtype(name)
    for row, value in enumerate(values):
        if value is None:
            assert made[row].as_py() is None
        elif limits.kind == "f":
            held = int(limits.type(value)) == value
            assert made[row].as_py() == (value if held else None)
            assert (row in bad) == (not held)
        else:
            held = np.iinfo(limits).min <= value <= np.iinfo(limits).max
            assert made[row].as_py() == (value if held else None)
            assert (row in bad) == (not held)
