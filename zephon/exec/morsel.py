"""The unit between operators: references to rows, and the columns read or made for them so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
    measures: what functions of the user made of each row, by name, each of shape [rows], int64.
    """

    refs: Refs
    columns: pa.RecordBatch
    payload: Payload | None = None
    measures: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token column, or one aligned with it, as two arrays that share its memory, read-only.

    values: shape [tokens]; int32 of a token column, else also int64, float32, float64 or bool.
    offsets: shape [docs + 1], int64; document d is values[offsets[d]:offsets[d + 1]].
    """

    values: NDArray[Any]
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
    if column.type != TOKENS:
        raise ExecutionError(f"token column: expected type {TOKENS}, got {column.type}")
    return number_view(column)


def number_view(column: pa.Array) -> TokenView:
    """View a column of lists of numbers as two NumPy arrays. Copies nothing.

    Args:
        column: one list a row, of a type that plans read (``zephon.io.fields``); bytes are
            booleans. A slice is fine: its offsets do not start at 0.

    Returns:
        A view that shares the column's memory and is read-only.

    Raises:
        ExecutionError: a list or a value is null, or the column has another type.
    """
    if not isinstance(column, pa.LargeListArray):
        raise ExecutionError(f"token column: expected a large list, got {column.type}")
    if column.null_count or column.values.null_count:
        raise ExecutionError(f"token column: {column.null_count} documents are null, expected none")
    values = column.values.to_numpy(zero_copy_only=True)
    return TokenView(
        values=values.view(np.bool_) if values.dtype == np.uint8 else values,
        offsets=column.offsets.to_numpy(zero_copy_only=True),
    )
