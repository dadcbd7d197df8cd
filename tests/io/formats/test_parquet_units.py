"""Which parts of row groups are decoded at a time, whatever told of a shard."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.formats.parquet_units import HUGE_BYTES, UNIT_BYTES, Part, parts_of, units_of
from zephon.io.offsets import offsets_of

MB = 1 << 20


def units(shards):
    """Part the groups of some shards, each (decoded bytes, rows of its row groups)."""
    rows = np.array([sum(groups) for _, groups in shards], np.int64)
    starts = offsets_of([len(groups) for _, groups in shards])
    sizes = np.array([size for _, groups in shards for size in groups], np.int64)
    decoded = np.array([size for size, _ in shards], np.int64)
    first, made = units_of(rows, decoded, (starts, sizes))
    return [made[a:b].tolist() for a, b in pairwise(first.tolist())]


def test_groups_that_are_not_huge_stay_as_they_are():
    shards = [(2 * HUGE_BYTES, [5, 0, 5]), (10, [3]), (0, []), (0, [0])]
    assert units(shards) == [[5, 0, 5], [3], [], [0]]


def test_a_huge_group_becomes_parts_of_about_32_megabytes():
    assert units([(10, [2]), (320 * MB, [1000])]) == [[2], [100] * 10]
    assert units([(330 * MB, [1000, 0, 5])]) == [[97] * 10 + [30, 0, 5]]


def test_a_part_has_a_row_at_least():
    assert units([(1 << 40, [3, 1])]) == [[1, 1, 1, 1]]


def test_parts_of_parts_are_the_same():
    once = units([(1 << 31, [70_001, 12, 9])])
    assert units([(1 << 31, once[0])]) == once


def test_a_catalogue_that_lies_takes_no_memory():
    assert units([(2**62, [2**40])]) == [[2**40]]


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 34), st.lists(st.integers(0, 300), max_size=5)), max_size=4
    )
)
def test_every_row_is_in_one_part_and_parts_are_found_in_the_file(shards):
    for (size, groups), made in zip(shards, units(shards), strict=True):
        parts = parts_of(np.array(groups, np.int64), np.array(made, np.int64))
        assert parts is not None
        assert [part.stop - part.start for part in parts] == made
        covered = [(part.group, row) for part in parts for row in range(part.start, part.stop)]
        assert covered == [(g, row) for g, rows in enumerate(groups) for row in range(rows)]
        assert {part.group for part in parts} == set(range(len(groups)))
        mean = size / max(sum(groups), 1)
        assert all(rows == 1 or rows * mean <= HUGE_BYTES + 1 for rows in made)
        assert all(rows * mean >= UNIT_BYTES / 2 or rows in groups or rows == 1 or part_is_last
                   for rows, part_is_last in lasts(parts, groups))  # fmt: skip


def lasts(parts, groups):
    return [(part.stop - part.start, part.stop == groups[part.group]) for part in parts]


@pytest.mark.parametrize(
    ("groups", "parts"), [([5], [3, 1]), ([5], [3, 3]), ([5, 2], [5]), ([5], [5, 1]), ([], [1])]
)
def test_what_are_no_parts_of_the_row_groups(groups, parts):
    assert parts_of(np.array(groups, np.int64), np.array(parts, np.int64)) is None


def test_whole_groups_and_parts():
    assert parts_of(np.array([4, 0, 2]), np.array([3, 1, 0, 2])) == [
        Part(0, 0, 3, False, 3),
        Part(0, 3, 4, False, 3),
        Part(1, 0, 0, True, 0),
        Part(2, 0, 2, True, 2),
    ]
