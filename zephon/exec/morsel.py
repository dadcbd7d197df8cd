"""The unit between operators: references to rows, and the columns read or made for them so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import no_columns
from zephon.errors import ExecutionError
from zephon.exec.block import Lost
from zephon.io.fields import TOKENS
from zephon.io.made_rows import inherited_records
from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.faults import RowFault
    from zephon.io.payload import Payload


@dataclass(frozen=True, slots=True)
class Morsel:
    """Rows on their way through a segment; never visible in the data.

    refs: which rows these are, shape [rows].
    columns: what was read or made for them, one entry a reference, no nulls.
    payload: the whole rows, where a step keeps them.
    measures: what functions of the user made of each row, by name, each of shape [rows], int64.
    frame: columns of any type that expressions work on, with nulls; None: there are none.
    lost: draws of which no row is left.
    faults: rows that are bad, and what is wrong with each, where that is no error before they have
        passed all filters; by position.
    """

    refs: Refs
    columns: pa.RecordBatch
    payload: Payload | None = None
    measures: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    frame: pa.RecordBatch | None = None
    lost: Lost = field(default_factory=Lost.none)
    faults: Mapping[int, RowFault] = field(default_factory=dict)

    def part(self, first: int, stop: int) -> Morsel:
        """Return rows [first, stop) as they are."""
        return Morsel(
            refs=self.refs.slice(first, stop),
            columns=self.columns.slice(first, stop - first),
            payload=None if self.payload is None else self.payload.take(np.arange(first, stop)),
            measures={name: values[first:stop] for name, values in self.measures.items()},
            frame=None if self.frame is None else self.frame.slice(first, stop - first),
            lost=self.lost,
            faults={row - first: why for row, why in self.faults.items() if first <= row < stop},
        )

    def keep(self, kept: NDArray[np.int64], reason: int) -> Morsel:
        """Return some of the rows, in order.

        The children of a draw are numbered anew, so that they stay 0, 1, 2, ..., the last marked.

        Args:
            kept: positions, ascending, shape [kept], int64.
            reason: why the others go: ``FILTERED`` or ``DROPPED``.
        """
        refs = self.refs
        if len(kept) == len(refs):
            return self
        stays = np.zeros(len(refs), bool)
        stays[kept] = True
        begins = np.concatenate([[True], refs.last_child[:-1]]) if len(refs) else stays
        draw = np.cumsum(begins) - 1
        left = np.bincount(draw[kept], minlength=int(draw[-1]) + 1)
        gone = np.flatnonzero(begins)[left == 0]
        lost = Lost(refs.take(gone), np.full(len(gone), reason, np.int8))
        found, some = refs.take(kept), left[left > 0]
        ends = np.cumsum(some)
        last = np.zeros(len(kept), bool)
        last[ends - 1] = True
        child = (np.arange(len(kept)) - np.repeat(ends - some, some)).astype(np.int32)
        faults = self.faults
        if faults:
            old = np.array([*faults])
            places = np.searchsorted(kept, old)
            faults = {
                place: why
                for place, stays, why in zip(
                    places.tolist(), stays[old].tolist(), faults.values(), strict=True
                )
                if stays
            }
        payload = None
        if self.payload is not None:
            payload = self.payload.take(kept)
            heirs = np.flatnonzero(last & ~found.last_child)
            if len(heirs) and payload.has_metas:
                ended = np.flatnonzero(refs.last_child)
                was = ended[np.searchsorted(ended, kept[heirs])]
                payload = inherited_records(payload, heirs, self.payload.take(was))
        indices = pa.array(kept)
        return Morsel(
            refs=replace(found, child=child, last_child=last),
            columns=taken_rows(self.columns, indices, len(kept)),
            payload=payload,
            measures={name: values[kept] for name, values in self.measures.items()},
            frame=None if self.frame is None else taken_rows(self.frame, indices, len(kept)),
            lost=self.lost.joined(lost),
            faults=faults,
        )


def taken_rows(columns: pa.RecordBatch, indices: pa.Array, rows: int) -> pa.RecordBatch:
    """Copy some rows of a batch, which may have no columns."""
    if not columns.num_columns:
        return no_columns(rows)
    arrays = [column.take(indices) for column in columns.columns]
    return pa.RecordBatch.from_arrays(arrays, names=columns.schema.names)


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
