"""The arithmetic of ``to_training``: arrays in, arrays out.

Nothing here knows a record, a field's name or torch. Rows of unequal length are one array of
values and one of offsets: row r is values[offsets[r]:offsets[r + 1]]. Boundaries and padding come
from offsets, lengths and positions, never from the value of a token. Every function is linear in
what it returns; none loops over rows or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


def concatenate(rows: Sequence[Values]) -> tuple[Values, Counts]:
    """Lay rows end to end: values, shape [tokens, ...], and offsets, shape [rows + 1]. Copies."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return np.concatenate(rows), offsets


def unequal_rows(lengths: Counts) -> tuple[int, int] | None:
    """Find two rows of different length, the first row and the first that differs from it."""
    differs = lengths != lengths[0]
    return (0, int(differs.argmax())) if differs.any() else None


def stack(values: Values, offsets: Counts) -> Values:
    """View rows of equal length as one matrix, shape [rows, width, ...]. Copies nothing."""
    rows = len(offsets) - 1
    width = int(offsets[1] - offsets[0])
    return values[offsets[0] : offsets[-1]].reshape(rows, width, *values.shape[1:])


def pad_rows(values: Values, offsets: Counts, fill: int) -> Values:
    """Copy rows into a matrix as wide as the longest, ``fill`` behind the shorter ones.

    Returns:
        shape [rows, longest, ...], the type of ``values``.
    """
    lengths = np.diff(offsets)
    width = int(lengths.max())
    padded = np.full((len(lengths), width, *values.shape[1:]), fill, values.dtype)
    padded[~tail(width, width - lengths)] = values[offsets[0] : offsets[-1]]
    return padded


def number_tails(positions: Values, trailing: Counts) -> Values:
    """Number the last ``trailing`` columns of each row 0, 1, 2, ... in place; give it back."""
    width = positions.shape[1]
    numbers = np.arange(width) - (width - trailing)[:, None]
    np.copyto(positions, numbers, where=numbers >= 0, casting="unsafe")
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


def number_columns(rows: int, width: int, dtype: np.dtype[Any]) -> Values:
    """Number the columns 0 to width - 1 in every row: new memory, shape [rows, width]."""
    return np.tile(np.arange(width, dtype=dtype), (rows, 1))


def segment_starts(positions: Values) -> Flags:
    """Mark where a segment begins, which is where its positions begin at 0."""
    return positions == 0


def row_bounds(starts: Flags) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give each row's segment bounds, as variable-length attention wants them row by row.

    Args:
        starts: where segments begin, shape [rows, width]; column 0 is always one.

    Returns:
        bounds, int32 [rows, most segments + 1]: the starts of a row, then the width to the end;
        and the longest segment of each row, int32 [rows].

    >>> bounds, longest = row_bounds(np.array([[True, False, True], [True, False, False]]))
    >>> bounds.tolist(), longest.tolist()
    ([[0, 2, 3], [0, 3, 3]], [2, 3])
    """
    rows, width = starts.shape
    counts = starts.sum(axis=1)
    row, column = np.nonzero(starts)
    first = np.cumsum(counts) - counts
    bounds = np.full((rows, int(counts.max()) + 1), width, np.int32)
    bounds[row, np.arange(len(row)) - first[row]] = column
    return bounds, np.diff(bounds, axis=1).max(axis=1, initial=0)


def batch_bounds(starts: Flags) -> tuple[NDArray[np.int32], int]:
    """Give the segment bounds of all rows laid end to end, and the longest segment.

    >>> bounds, longest = batch_bounds(np.array([[True, False, True], [True, False, False]]))
    >>> bounds.tolist(), longest
    ([0, 2, 3, 6], 3)
    """
    begins = np.flatnonzero(starts)
    bounds = np.append(begins, starts.size) if starts.size else np.zeros(1, np.int64)
    return bounds.astype(np.int32), int(np.diff(bounds).max(initial=0))


def flatten(matrix: Values) -> Values:
    """Lay the rows of a matrix end to end; a value a row stays as it is. Copies nothing."""
    if matrix.ndim < 2:
        return matrix
    rows, width, *rest = matrix.shape
    return matrix.reshape(rows * width, *rest)
