"""Rows gathered as bytes are the rows that were picked, whatever the column looks like inside."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.fields import NUMBERS, TEXT, TOKENS, Column
from zephon.io.gather import as_bytes, joined, of_bytes, picked

N = 24
WIDE = pa.large_list(pa.int64())
WORDS = pa.array(["é" * (n % 5) + str(n) for n in range(N)], TEXT)
LISTS = pa.array([[n, -n, 2**31 - 1][: n % 4] for n in range(N)], TOKENS)
LATE = pa.LargeListArray.from_arrays(
    pa.array([3, 3, 5, 9], pa.int64()), pa.array(range(100, 120), pa.int32()).slice(2)
)
COLUMNS = {
    "texts": WORDS,
    "lists": LISTS,
    "a slice of texts": WORDS.slice(3, 9),
    "a slice of lists": LISTS.slice(3, 9),
    "lists whose values are a slice": LATE.cast(TOKENS),
    "lists of nothing": pa.array([[]] * 5, TOKENS),
    "one list": LISTS.slice(7, 1),
    "many lists": pa.array([[n % 7] for n in range(9000)], TOKENS),
    **{
        f"lists of {kind}": pa.array([[n % 2] * (n % 4) for n in range(N)], Column("n", kind).type)
        for kind in NUMBERS
    },
    "a slice of wide lists": pa.array([[2**40, n] for n in range(N)], WIDE).slice(3, 9),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_bytes_are_the_column_again(column):
    again = of_bytes(as_bytes(column), column.type)
    assert again.equals(column)
    assert again.type == column.type
    again.validate(full=True)
    part = of_bytes(as_bytes(column).slice(1), column.type)
    assert part.equals(column.slice(1))


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@given(st.data())
def test_any_rows_in_any_order(column, data):
    parts, wanted = [], []
    for _ in range(data.draw(st.integers(1, 3))):
        rows = data.draw(st.lists(st.integers(0, len(column) - 1), min_size=1, max_size=9))
        if data.draw(st.booleans()):
            rows = list(range(min(rows), max(rows) + 1))
        rows = np.array(rows, np.int64)
        parts += picked([column], rows, pa.array(rows))
        wanted += column.take(pa.array(rows)).to_pylist()
    back = None
    if data.draw(st.booleans()):
        back = np.array(data.draw(st.permutations(range(len(wanted)))), np.int64)
        wanted = [wanted[place] for place in back]
    found = joined(parts, back, column.type)
    found.validate(full=True)
    assert found.type == column.type
    assert found.to_pylist() == wanted


@pytest.mark.parametrize("dtype", [TEXT, TOKENS])
def test_nothing_is_picked(dtype):
    assert joined([], None, dtype).equals(pa.array([], dtype))
    assert picked([], np.array([1]), pa.array([1])) == []


def test_only_a_good_part_of_a_column_is_shared():
    def address(rows):
        (part,) = picked([WORDS], np.array(rows), pa.array(rows))
        return part.buffers()[2].address

    whole = WORDS.buffers()[2].address
    assert address(range(4, 10)) == whole
    assert address(range(4, 9)) != whole
    assert address([5, 4, 6, 7, 8, 9]) != whole
