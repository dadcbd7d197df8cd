"""Rows picked out of many columns and put into one, whatever the columns hold, as bytes.

Arrow copies lists value by value, at a fifth of the speed at which it copies texts; so lists of
numbers are gathered as if they were texts, of four bytes a token. Rows at random cost 6 µs a column
and group, one copy when they are picked, one when they are joined, one when they are put in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.fields import TEXT
from zephon.io.formats.arrow_columns import number_lists
from zephon.io.frames import SLICE_SHARE, joined_values
from zephon.io.offsets import are_neighbours

BYTES = pa.large_binary()
_FEW_ROWS = 8192


def picked(
    columns: Sequence[pa.Array], rows: NDArray[np.int64], indices: pa.Array
) -> list[pa.Array]:
    """Give some rows of columns as bytes: slices where they are neighbours and many, else copies.

    Args:
        columns: of types that plans read (``Column.type``), of one length, without nulls.
        rows: at least one, in any order, repeats allowed, shape [n].
        indices: the same as an Arrow array.
    """
    if not are_neighbours(rows):
        return [_taken(column, indices) for column in columns]
    pieces = [as_bytes(column.slice(int(rows[0]), len(rows))) for column in columns]
    if not columns or len(rows) >= SLICE_SHARE * len(columns[0]):
        return pieces
    return [pa.concat_arrays([piece]) for piece in pieces]  # copies, even one array


def joined(
    pieces: Sequence[pa.Array], back: NDArray[np.int64] | None, dtype: pa.DataType
) -> pa.Array:
    """Join bytes to one column of a plan's type; row i of it is row back[i] of the pieces."""
    if not pieces:
        return pa.array([], dtype)
    return of_bytes(joined_values(pieces, back, dtype), dtype)


def as_bytes(column: pa.Array) -> pa.Array:
    """View a column of texts or lists of numbers as bytes; copies offsets at most."""
    if column.type == TEXT:
        return column.view(BYTES)
    values = column.values
    width = values.type.bit_width // 8
    offsets = column.offsets.to_numpy() * width
    data = pa.py_buffer(b"")
    if len(values):  # else its buffer may be none, or one without an address, as a mapped one is
        data = values.buffers()[1].slice(values.offset * width, len(values) * width)
    return pa.Array.from_buffers(BYTES, len(column), [None, pa.py_buffer(offsets), data])


def of_bytes(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """View bytes as what they were."""
    if dtype == TEXT:
        return column.view(TEXT)
    item = dtype.value_type
    _, offsets, data = column.buffers()
    width = item.bit_width // 8
    begins = np.frombuffer(offsets, np.int64, len(column) + 1, 8 * column.offset) // width
    values = pa.Array.from_buffers(item, int(begins[-1]), [None, data])
    return number_lists(begins, values)


def _taken(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Copy rows; a list of few rows is copied as a list where all offsets would cost more."""
    if column.type != TEXT and len(column) > max(_FEW_ROWS, 16 * len(indices)):
        return as_bytes(column.take(indices))
    return as_bytes(column).take(indices)
