"""Rows picked out of columns of any type and put into one; nulls stay.

Columns of texts and lists of numbers without nulls go through ``gather``, which is faster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.offsets import are_neighbours, indices_of

SLICE_SHARE = 0.25  # of a group: fewer rows are copied, so that they do not keep all of it


def picked_values(columns: Sequence[pa.Array], rows: NDArray[np.int64]) -> list[pa.Array]:
    """Give some rows of columns: slices where they are neighbours and many, else copies.

    Args:
        columns: of one length.
        rows: at least one, in any order, repeats allowed, shape [n].
    """
    if not columns:
        return []
    if len(rows) >= SLICE_SHARE * len(columns[0]) and are_neighbours(rows):
        return [column.slice(int(rows[0]), len(rows)) for column in columns]
    indices = indices_of(rows)
    return [column.take(indices) for column in columns]


def joined_values(
    pieces: Sequence[pa.Array], back: NDArray[np.int64] | None, dtype: pa.DataType
) -> pa.Array:
    """Join columns of one type; row i of the result is row back[i] of the pieces."""
    if not pieces:
        return pa.array([], dtype)
    column = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    return column if back is None else column.take(indices_of(back))
