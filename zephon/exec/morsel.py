"""The unit between operators: references to rows, and the columns read or made for them so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import ExecutionError
from zephon.io.fields import TOKENS
from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.payload import Payload


@dataclass(frozen=True, slots=True)
class Morsel:
    """Rows on their way through a segment; never visible in the data.

    refs: which rows these are, shape [rows].
    columns: what was read or made for them, one entry a reference, no nulls.
    payload: the whole rows, where a step keeps them.
    """

    refs: Refs
    columns: pa.RecordBatch
    payload: Payload | None = None


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token column as two arrays; both share the column's memory and are read-only.

    values: shape [tokens], int32.
    offsets: shape [docs + 1], int64; document d is values[offsets[d]:offsets[d + 1]].
    """

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]


def token_view(column: pa.Array) -> TokenView:
    """View a token column as two NumPy arrays. Copies nothing.

    Args:
        column: one document a row, type ``TOKENS``; a slice is fine: its offsets do not start at 0.

    Returns:
        A view that shares the column's memory and is read-only.

    Raises:
        ExecutionError: a document or a token is null, or the column has another type.
    """
    if not isinstance(column, pa.LargeListArray) or column.type != TOKENS:
        raise ExecutionError(f"token column: expected type {TOKENS}, got {column.type}")
    if column.null_count or column.values.null_count:
        raise ExecutionError(f"token column: {column.null_count} documents are null, expected none")
    return TokenView(
        values=column.values.to_numpy(zero_copy_only=True),
        offsets=column.offsets.to_numpy(zero_copy_only=True),
    )
