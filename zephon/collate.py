"""The arithmetic of ``to_training``: arrays in, arrays out.

Nothing here knows a record, a field's name or torch. Rows of unequal length are one array of
values and one of offsets: row r is values[offsets[r]:offsets[r + 1]]. Boundaries and padding come
from offsets, lengths and positions, never from the value of a token. A matrix of rows has its
segments as one rising array, ``starts``: where each begins when rows are laid end to end. Every
function is linear in what it takes and returns; none loops over rows, segments or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


def concatenate(rows: Sequence[Values], dtype: np.dtype[Any]) -> tuple[Values, Counts]:
    """Lay rows end to end: values, shape [tokens, ...], and offsets, shape [rows + 1]. Copies.

    dtype: of the values; that it holds all of them is for the caller to know.
    """
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return np.concatenate(rows, dtype=dtype, casting="unsafe"), offsets


def unequal_rows(lengths: Counts) -> tuple[int, int] | None:
    """Find two rows of different length, the first row and the first that differs from it."""
    differs = lengths != lengths[0]
    return (0, int(differs.argmax())) if differs.any() else None


def stack(values: Values, offsets: Counts) -> Values:
    """View rows of equal length as one matrix, shape [rows, width, ...]. Copies nothing."""
    rows = len(offsets) - 1
    width = int(offsets[1] - offsets[0])
    return values[offsets[0] : offsets[-1]].reshape(rows, width, *values.shape[1:])


def pad_rows(values: Values, offsets: Counts, width: int, fill: int) -> Values:
    """Copy rows into a matrix that is wide enough for each, ``fill`` behind the shorter ones.

    Returns:
        shape [rows, width, ...], of the type of ``values``, or of a wider one that holds ``fill``.
    """
    lengths = np.diff(offsets)
    dtype = values.dtype
    if fill and not (dtype.kind in "iu" and fill <= np.iinfo(dtype).max):
        dtype = np.result_type(dtype, np.int64)  # float64 where the values are floats
    padded = np.full((len(lengths), width, *values.shape[1:]), fill, dtype)
    padded[~tail(width, width - lengths)] = values[offsets[0] : offsets[-1]]
    return padded


def number_tails(positions: Values, trailing: Counts, missing: Counts) -> Values:
    """Number the last ``missing`` columns of each row, in a copy that has room for the numbers.

    They go on where the numbers of the last ``trailing`` columns, counted from 0, have come to.
    """
    width = positions.shape[1]
    dtype = positions.dtype
    positions = positions.astype(dtype if dtype == np.uint64 else np.result_type(dtype, np.int64))
    numbers = np.arange(width) - (width - trailing)[:, None]
    np.copyto(positions, numbers, where=tail(width, missing), casting="unsafe")
    return positions


def tail(width: int, trailing: Counts) -> Flags:
    """Mark the last ``trailing`` columns of each row: bool, shape [rows, width]."""
    return np.arange(width) >= (width - trailing)[:, None]


def token_mask(offsets: Counts, padding: Counts | None) -> Counts:
    """Build the flat mask that is 1 on tokens and 0 on the last ``padding`` tokens of each row.

    Args:
        offsets: where rows begin and end, shape [rows + 1].
        padding: pad tokens at the end of each row, shape [rows]; None: no row has any.

    Returns:
        shape [tokens], int64, to be read with the same offsets rebased to 0.
    """
    total = int(offsets[-1] - offsets[0])
    if padding is None or not padding.any():
        return np.ones(total, np.int64)
    ends = np.repeat(offsets[1:] - padding - offsets[0], np.diff(offsets))
    return (np.arange(total) < ends).astype(np.int64)


def own(matrix: Values, dtype: np.dtype[Any]) -> Values:
    """Copy into new, contiguous, writable memory of the given type."""
    return np.array(matrix, dtype=dtype, order="C", copy=True)


def shift(tokens: Values, dtype: np.dtype[Any]) -> tuple[Values, Values]:
    """Split rows into inputs and the labels one token ahead.

    Args:
        tokens: shape [rows, width]; only read.
        dtype: of both results.

    Returns:
        inputs and labels, each [rows, width - 1] ([rows, 0] for width 0), contiguous, sharing no
        memory with ``tokens`` or each other: one strided copy each.
    """
    return own(tokens[:, :-1], dtype), own(tokens[:, 1:], dtype)


def number_columns(rows: int, width: int) -> Counts:
    """Number the columns 0 to width - 1 in every row: new memory, int64, shape [rows, width]."""
    return np.tile(np.arange(width), (rows, 1))


def zeros(positions: Values) -> Counts:
    """Find where segments begin: where positions are 0, counted over rows laid end to end."""
    return np.flatnonzero(positions == 0)


def piece_starts(lengths: Counts, splits: Counts, trailing: Counts | None) -> Counts:
    """Find where segments begin: the pieces of each row, and the padding behind them.

    Args:
        lengths: tokens of each piece, shape [pieces]; a piece without tokens is no segment.
        splits: row r is pieces splits[r] to splits[r + 1], shape [rows + 1].
        trailing: columns of padding at the end of each row, shape [rows]; None: no row has any.

    Returns:
        shape [segments], rising, counted over rows laid end to end with their padding.

    >>> piece_starts(np.array([2, 1, 3]), np.array([0, 2, 3]), np.array([1, 1])).tolist()
    [0, 2, 3, 4, 7]
    """
    if trailing is not None:
        lengths = np.insert(lengths, splits[1:], trailing)
    return (np.cumsum(lengths) - lengths)[lengths > 0]


def starts_of_inputs(starts: Counts, width: int) -> Counts:
    """Give the starts that are left when each row loses its last column, counted anew."""
    row, column = np.divmod(starts, max(width, 1))
    return (starts - row)[column < width - 1]


def labels_of_starts(starts: Counts, width: int) -> Counts:
    """Find the labels that are first in their segment, counted over rows of width - 1 labels.

    A segment that begins its row has no such label: the shift took it away.
    """
    row, column = np.divmod(starts, max(width, 1))
    return (starts - row - 1)[column > 0]


def row_bounds(
    starts: Counts, rows: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give each row's segment bounds, as variable-length attention wants them row by row.

    Args:
        starts: where segments begin, counted over rows laid end to end; column 0 is always one.
        rows, width: of the matrix.

    Returns:
        bounds, int32 [rows, most segments + 1]: the starts of a row, then the width to the end;
        and the longest segment of each row, int32 [rows].

    >>> bounds, longest = row_bounds(np.array([0, 2, 3]), 2, 3)
    >>> bounds.tolist(), longest.tolist()
    ([[0, 2, 3], [0, 3, 3]], [2, 3])
    """
    row, column = np.divmod(starts, max(width, 1))
    counts = np.bincount(row, minlength=rows)
    first = np.cumsum(counts) - counts
    bounds = np.full((rows, int(counts.max()) + 1), width, np.int32)
    bounds[row, np.arange(len(row)) - first[row]] = column
    return bounds, np.diff(bounds, axis=1).max(axis=1, initial=0)


def batch_bounds(starts: Counts, total: int) -> tuple[NDArray[np.int32], int]:
    """Give the segment bounds of all rows laid end to end, and the longest segment.

    >>> bounds, longest = batch_bounds(np.array([0, 2, 3]), 6)
    >>> bounds.tolist(), longest
    ([0, 2, 3, 6], 3)
    """
    bounds = np.append(starts, total) if total else np.zeros(1, np.int64)
    return bounds.astype(np.int32), int(np.diff(bounds).max(initial=0))


def number_segments(
    starts: Counts, rows: int, width: int, content: Counts | None, *, running: bool
) -> NDArray[np.int32]:
    """Give every token the number of its segment, and padding -1.

    Args:
        starts: where segments begin, counted over rows laid end to end; column 0 is always one.
        rows, width: of the matrix.
        content: the column where each row's padding begins, shape [rows]; None: none does.
        running: number on over all rows, where otherwise every row begins with 0.

    Returns:
        new memory, int32, shape [rows, width].

    >>> starts, content = np.array([0, 2, 3, 5]), np.array([3, 2])
    >>> number_segments(starts, 2, 3, content, running=False).tolist()
    [[0, 0, 1], [0, 0, -1]]
    >>> number_segments(starts, 2, 3, content, running=True).tolist()
    [[0, 0, 1], [2, 2, -1]]
    """
    row, column = np.divmod(starts, max(width, 1))
    real = np.ones(len(starts), np.int64) if content is None else column < content[row]
    numbers = np.cumsum(real) - 1
    if not running:
        before = (numbers + 1 - real)[column == 0]
        numbers -= before[row]
    sizes = np.append(starts[1:], rows * width) - starts
    numbered = np.repeat(numbers.astype(np.int32), sizes).reshape(rows, width)
    if content is not None:
        numbered[np.arange(width) >= content[:, None]] = -1
    return numbered


def count_from(starts: Counts, rows: int, width: int) -> Counts:
    """Number the tokens of each segment from 0: new memory, int64, shape [rows, width]."""
    sizes = np.append(starts[1:], rows * width) - starts
    return (np.arange(rows * width) - np.repeat(starts, sizes)).reshape(rows, width)


def flatten(matrix: Values) -> Values:
    """Lay the rows of a matrix end to end; a value a row stays as it is. Copies nothing."""
    if matrix.ndim < 2:
        return matrix
    rows, width, *rest = matrix.shape
    return matrix.reshape(rows * width, *rest)
