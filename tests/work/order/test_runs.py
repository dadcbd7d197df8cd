import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zephon.work.order.runs import Runs, count_up, first_of_each


@given(st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(0, 20)), min_size=1))
def test_ranges_are_laid_end_to_end(ranges: list[tuple[int, int]]) -> None:
    first, count = np.array(ranges, dtype=np.int64).T
    expected = [start + i for start, length in ranges for i in range(length)]
    numbers = count_up(first, count)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == expected


@given(st.lists(st.integers(0, 2), min_size=1))
def test_stretches_of_equal_neighbours(values: list[int]) -> None:
    expected = [i for i, value in enumerate(values) if i == 0 or values[i - 1] != value]
    assert first_of_each(np.array(values)).tolist() == expected


def test_a_slice_shares_memory() -> None:
    column = np.arange(5)
    part = Runs(column, column, column).slice(1, 4)
    assert part.start.tolist() == [1, 2, 3]
    assert np.shares_memory(part.length, column)
