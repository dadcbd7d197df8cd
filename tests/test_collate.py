"""The arithmetic of batches, by small numbers and against slow obvious versions."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zephon import collate

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=5)


def lengths_of(rows):
    return np.array([len(row) for row in rows])


@given(ROWS)
def test_rows_laid_end_to_end_are_found_by_their_offsets(rows):
    values, offsets = collate.concatenate([np.array(row, np.int64) for row in rows])
    found = [values[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == rows


@given(ROWS, st.integers(-3, 3))
def test_padding_fills_behind_each_row(rows, fill):
    values, offsets = collate.concatenate([np.array(row, np.int64) for row in rows])
    width = max(map(len, rows))
    expected = [row + [fill] * (width - len(row)) for row in rows]
    assert collate.pad_rows(values, offsets, fill).tolist() == expected


def test_a_stack_is_a_view_that_starts_where_the_offsets_say():
    values = np.arange(10)
    matrix = collate.stack(values, np.array([2, 5, 8]))
    assert matrix.tolist() == [[2, 3, 4], [5, 6, 7]]
    assert np.shares_memory(matrix, values)


def test_unequal_rows_names_the_first_and_the_first_other():
    assert collate.unequal_rows(np.array([4, 4, 5, 3])) == (0, 2)
    assert collate.unequal_rows(np.array([4, 4])) is None


@given(ROWS, st.data())
def test_masks_and_tails_are_each_other_s_opposite(rows, data):
    lengths = lengths_of(rows)
    padding = np.array([data.draw(st.integers(0, int(n))) for n in lengths])
    offsets = np.concatenate([[0], np.cumsum(lengths)]) + 3
    mask = collate.token_mask(offsets, padding)
    expected = [v for n, p in zip(lengths, padding, strict=True) for v in [1] * (n - p) + [0] * p]
    assert mask.tolist() == expected
    width = int(lengths.max())
    marked = collate.tail(width, padding)
    assert marked.tolist() == [[False] * (width - p) + [True] * p for p in padding]
    assert collate.token_mask(offsets, None).tolist() == [1] * int(lengths.sum())


def test_tails_are_numbered_from_zero():
    positions = np.array([[0, 1, 2, 3], [0, 1, 0, 0]], np.int32)
    collate.number_tails(positions, np.array([0, 2]))
    assert positions.tolist() == [[0, 1, 2, 3], [0, 1, 0, 1]]
    assert positions.dtype == np.int32


def test_a_shift_makes_two_arrays_of_their_own():
    tokens = np.arange(8).reshape(2, 4)
    inputs, labels = collate.shift(tokens, np.dtype(np.int32))
    assert inputs.tolist() == [[0, 1, 2], [4, 5, 6]]
    assert labels.tolist() == [[1, 2, 3], [5, 6, 7]]
    assert inputs.flags.c_contiguous
    assert labels.flags.c_contiguous
    assert inputs.dtype == labels.dtype == np.int32
    arrays = [tokens, inputs, labels]
    assert not any(np.shares_memory(a, b) for a in arrays for b in arrays if a is not b)


def test_columns_are_numbered_in_memory_of_their_own():
    numbers = collate.number_columns(2, 3, np.dtype(np.int64))
    numbers[0, 0] = 9
    assert numbers.tolist() == [[9, 1, 2], [0, 1, 2]]


@given(st.integers(1, 4), st.integers(1, 7), st.data())
def test_bounds_equal_a_walk_over_positions(rows, width, data):
    flags = st.lists(st.booleans(), min_size=width - 1, max_size=width - 1)
    starts = [[True, *data.draw(flags)] for _ in range(rows)]
    expected = [[i for i, start in enumerate(row) if start] + [width] for row in starts]
    most = max(map(len, expected))
    gaps = [max(b - a for a, b in pairwise(row)) for row in expected]

    bounds, longest = collate.row_bounds(np.array(starts))
    assert bounds.tolist() == [row + [width] * (most - len(row)) for row in expected]
    assert longest.tolist() == gaps
    assert bounds.dtype == longest.dtype == np.int32

    flat, top = collate.batch_bounds(np.array(starts))
    assert flat.tolist() == [
        *(r * width + at for r, row in enumerate(expected) for at in row[:-1]),
        rows * width,
    ]
    assert flat.dtype == np.int32
    assert top == max(gaps)


def test_bounds_of_rows_without_columns():
    bounds, longest = collate.row_bounds(np.zeros((2, 0), bool))
    assert (bounds.tolist(), longest.tolist()) == ([[0], [0]], [0, 0])
    flat, top = collate.batch_bounds(np.zeros((2, 0), bool))
    assert (flat.tolist(), top) == ([0], 0)


def test_long_rows_with_many_documents_stay_linear():
    positions = np.arange(131_072) % 32
    bounds, longest = collate.row_bounds(collate.segment_starts(positions[None]))
    assert bounds.shape == (1, 4097)
    assert longest.tolist() == [32]


def test_flatten_leaves_a_value_a_row_alone():
    assert collate.flatten(np.arange(3)).shape == (3,)
    assert collate.flatten(np.zeros((2, 3))).shape == (6,)
    assert collate.flatten(np.zeros((2, 3, 4))).shape == (6, 4)
    assert collate.flatten(np.zeros((2, 0))).shape == (0,)
