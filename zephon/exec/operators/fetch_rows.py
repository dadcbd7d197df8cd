"""Read the rows that references name, component by component, in the order of the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import no_columns
from zephon.exec.block import FILTERED, Lost
from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator
from zephon.io.offsets import is_ascending
from zephon.io.payload import Payload
from zephon.io.reader import RowReader, TakenRows
from zephon.work.refs import Refs


class FetchRowsOp(Operator):
    """Reads columns, and whole rows where asked; drops rows that do not pass the readers' filter.

    Args:
        readers: one a component that is ever drawn; two components may share one.
        late_faults: a bad row is no error yet; what is wrong with it goes on with the rows.
    """

    label = "fetch"

    def __init__(self, readers: Mapping[int, RowReader], *, late_faults: bool = False) -> None:
        self._readers = dict(readers)
        self._late = late_faults

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows with columns; raises what the first bad row raises."""
        refs = rows.refs
        if not len(refs):
            taken = self._take(next(iter(self._readers)), refs)
            return _filled(rows, taken)
        wanted = np.flatnonzero(np.bincount(refs.component)).tolist()
        if len(wanted) == 1:
            return _filled(rows, self._take(wanted[0], refs))
        places, found = [], []
        for component in wanted:
            at = np.flatnonzero(refs.component == component)
            taken = self._take(component, refs, at)
            places.append(at[taken.kept])
            found.append(taken)
        return _filled(rows, _joined(found, places))

    def _take(self, component: int, refs: Refs, at: NDArray[np.int64] | None = None) -> TakenRows:
        shards, rows = (refs.shard, refs.row) if at is None else (refs.shard[at], refs.row[at])
        return self._readers[component].take(shards, rows, late_faults=self._late)


def _filled(rows: Morsel, taken: TakenRows) -> Morsel:
    """Put what was taken beside its references; the others are lost, each a whole draw."""
    refs, lost, kept = rows.refs, rows.lost, taken.kept
    if len(kept) < len(refs):
        left_out = refs
        if len(kept):
            gone = np.ones(len(refs), np.bool_)
            gone[kept] = False
            left_out = refs.take(gone)
        lost = lost.joined(Lost(left_out, np.full(len(left_out), FILTERED, np.int8)))
        refs = refs.take(kept)
    return Morsel(
        refs, taken.columns, taken.payload, frame=taken.frame, lost=lost, faults=taken.faults
    )


def _joined(found: Sequence[TakenRows], places: Sequence[NDArray[np.int64]]) -> TakenRows:
    """Put rows of several components in the order of their references.

    Args:
        found: rows of each component, one type a column.
        places: which reference each of them is for, ascending, one array a component.
    """
    payloads = [taken.payload for taken in found if taken.payload is not None]
    payload = Payload.concat(payloads) if payloads else None
    frames = [taken.frame for taken in found if taken.frame is not None]
    kept, back = np.concatenate(places), None
    if not is_ascending(kept):  # else components came one after the other
        back = np.argsort(kept)
        kept = kept[back]
        payload = None if payload is None else payload.take(back)
    return TakenRows(
        columns=_merged([taken.columns for taken in found], back, len(kept)),
        frame=_merged(frames, back, len(kept)) if frames else None,
        payload=payload,
        kept=kept,
        faults={
            int(np.searchsorted(kept, at[place])): problem
            for taken, at in zip(found, places, strict=True)
            for place, problem in taken.faults.items()
        },
    )


def _merged(
    batches: Sequence[pa.RecordBatch], back: NDArray[np.int64] | None, rows: int
) -> pa.RecordBatch:
    names = batches[0].schema.names
    if not names:
        return no_columns(rows)
    arrays = [
        pa.concat_arrays([batch.column(index) for batch in batches]) for index in range(len(names))
    ]
    if back is not None:
        indices = pa.array(back)
        arrays = [array.take(indices) for array in arrays]
    return pa.RecordBatch.from_arrays(arrays, names=names)
