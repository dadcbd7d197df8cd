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
    values, offsets = collate.concatenate(
        [np.array(row, np.int64) for row in rows], np.dtype(np.int64)
    )
    found = [values[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == rows


@given(ROWS, st.integers(-3, 3), st.integers(0, 3))
def test_padding_fills_behind_each_row(rows, fill, more):
    values, offsets = collate.concatenate(
        [np.array(row, np.int64) for row in rows], np.dtype(np.int64)
    )
    width = max(map(len, rows)) + more
    expected = [row + [fill] * (width - len(row)) for row in rows]
    assert collate.pad_rows(values, offsets, width, fill).tolist() == expected


def test_padding_that_the_values_cannot_hold_widens_them():
    values = np.array([200, 1, 2], np.uint8)
    padded = collate.pad_rows(values, np.array([0, 1, 3]), 2, 50256)
    assert padded.tolist() == [[200, 50256], [1, 2]]
    assert collate.pad_rows(values > 1, np.array([0, 1, 3]), 2, 0).dtype == bool
    wide = collate.pad_rows(np.array([2**62 + 1]), np.array([0, 1]), 2, 2**62)
    assert wide.tolist() == [[2**62 + 1, 2**62]]


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


def test_tails_are_numbered_from_zero_and_go_on_from_padding_that_is_there():
    positions = np.array([[0, 1, 2, 3], [0, 1, 9, 9], [0, 5, 9, 9]], np.int32)
    positions = collate.number_tails(positions, np.array([0, 2, 3]), np.array([0, 2, 2]))
    assert positions.tolist() == [[0, 1, 2, 3], [0, 1, 0, 1], [0, 5, 1, 2]]
    assert positions.dtype == np.int64
    small = collate.number_tails(np.zeros((1, 300), np.uint8), np.array([300]), np.array([299]))
    assert small[0].tolist() == list(range(300))  # a byte has no room for these


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
    numbers = collate.number_columns(2, 3)
    numbers[0, 0] = 9
    assert numbers.tolist() == [[9, 1, 2], [0, 1, 2]]


@st.composite
def segments(draw):
    """Rows of one width as lists of pieces, some of no tokens, and the padding behind them."""
    width = draw(st.integers(1, 7))
    rows, padding = [], []
    for _ in range(draw(st.integers(1, 4))):
        cuts = draw(st.lists(st.integers(0, width), max_size=4).map(sorted))
        *pieces, pad = [b - a for a, b in pairwise([0, *cuts, width])]
        rows.append(pieces)
        padding.append(pad)
    return width, rows, padding


def walk(pieces, pad):
    """Give the number and the place in its segment of each token; the padding is number -1."""
    kept = [n for n in pieces if n]
    numbers = [number for number, n in enumerate(kept) for _ in range(n)] + [-1] * pad
    return numbers, [at for n in (*kept, pad) for at in range(n)]


def arrays(width, rows, padding):
    lengths = np.array([n for row in rows for n in row], np.int64)
    splits, trailing = np.cumsum([0, *map(len, rows)]), np.array(padding)
    return collate.piece_starts(lengths, splits, trailing), width - trailing


@given(segments())
def test_starts_bounds_and_numbers_equal_a_walk_over_tokens(made):
    width, rows, padding = made
    starts, content = arrays(width, rows, padding)
    walked = [walk(row, pad) for row, pad in zip(rows, padding, strict=True)]
    numbers, positions = (list(column) for column in zip(*walked, strict=True))
    assert starts.tolist() == [
        r * width + i for r, row in enumerate(positions) for i, at in enumerate(row) if at == 0
    ]
    assert collate.zeros(np.array(positions)).tolist() == starts.tolist()
    assert collate.count_from(starts, len(rows), width).tolist() == positions

    expected = [[i for i, at in enumerate(row) if at == 0] + [width] for row in positions]
    most = max(map(len, expected))
    bounds, longest = collate.row_bounds(starts, len(rows), width)
    assert bounds.tolist() == [row + [width] * (most - len(row)) for row in expected]
    assert longest.tolist() == [max(b - a for a, b in pairwise(row)) for row in expected]
    flat, top = collate.batch_bounds(starts, len(rows) * width)
    assert flat.tolist() == [*starts.tolist(), len(rows) * width]
    assert top == max(longest)

    each = collate.number_segments(starts, len(rows), width, content, running=False)
    assert each.tolist() == numbers
    running, before = [], 0
    for row in numbers:
        running.append([before + n if n >= 0 else -1 for n in row])
        before += max(row) + 1
    counted = collate.number_segments(starts, len(rows), width, content, running=True)
    assert counted.tolist() == running
    assert {array.dtype for array in (bounds, longest, flat, each)} == {np.dtype(np.int32)}


@given(segments())
def test_the_shift_takes_the_last_column_and_every_first_label(made):
    width, rows, padding = made
    starts, _ = arrays(width, rows, padding)
    places = [divmod(int(start), width) for start in starts]
    inputs = [r * (width - 1) + c for r, c in places if c < width - 1]
    assert collate.starts_of_inputs(starts, width).tolist() == inputs
    labels = [r * (width - 1) + c - 1 for r, c in places if c]
    assert collate.labels_of_starts(starts, width).tolist() == labels


def test_without_padding_no_row_has_a_segment_more():
    starts = collate.piece_starts(np.array([2, 0, 1, 3]), np.array([0, 3, 4]), None)
    assert starts.tolist() == [0, 2, 3]
    numbers = collate.number_segments(starts, 2, 3, None, running=False)
    assert numbers.tolist() == [[0, 0, 1], [0, 0, 0]]


def test_bounds_of_rows_without_columns():
    none = np.zeros(0, np.int64)
    bounds, longest = collate.row_bounds(none, 2, 0)
    assert (bounds.tolist(), longest.tolist()) == ([[0], [0]], [0, 0])
    flat, top = collate.batch_bounds(none, 0)
    assert (flat.tolist(), top) == ([0], 0)
    assert collate.number_segments(none, 2, 0, None, running=False).shape == (2, 0)
    assert collate.count_from(none, 2, 0).shape == (2, 0)
    assert collate.starts_of_inputs(none, 0).tolist() == []


def test_long_rows_with_many_documents_have_a_bound_each():
    starts = collate.zeros(np.arange(131_072)[None] % 32)
    bounds, longest = collate.row_bounds(starts, 1, 131_072)
    assert bounds.shape == (1, 4097)
    assert longest.tolist() == [32]


def test_flatten_leaves_a_value_a_row_alone():
    assert collate.flatten(np.arange(3)).shape == (3,)
    assert collate.flatten(np.zeros((2, 3))).shape == (6,)
    assert collate.flatten(np.zeros((2, 3, 4))).shape == (6, 4)
    assert collate.flatten(np.zeros((2, 0))).shape == (0,)
