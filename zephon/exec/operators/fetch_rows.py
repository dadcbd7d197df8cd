"""Read the rows that references name, component by component, in the order of the references."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator
from zephon.io.payload import Payload
from zephon.io.reader import RowReader


class FetchRowsOp(Operator):
    """Reads columns, and whole rows where asked."""

    label = "fetch"

    def __init__(self, readers: Mapping[int, RowReader]) -> None:
        """Keep one reader a component that is ever drawn; two components may share one."""
        self._readers = dict(readers)

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows with columns; raises what the first bad row raises."""
        refs = rows.refs
        if not len(refs):
            taken = next(iter(self._readers.values())).take(refs.shard, refs.row)
            return Morsel(refs, taken.columns, taken.payload)
        wanted = np.flatnonzero(np.bincount(refs.component)).tolist()
        if len(wanted) == 1:
            taken = self._readers[wanted[0]].take(refs.shard, refs.row)
            return Morsel(refs, taken.columns, taken.payload)
        places, found = [], []
        for component in wanted:
            at = np.flatnonzero(refs.component == component)
            places.append(at)
            found.append(self._readers[component].take(refs.shard[at], refs.row[at]))
        columns = [
            pa.concat_arrays([taken.columns.column(i) for taken in found])
            for i in range(found[0].columns.num_columns)
        ]
        payloads = [taken.payload for taken in found if taken.payload is not None]
        payload = Payload.concat(payloads) if payloads else None
        order = np.concatenate(places)
        if (order[1:] < order[:-1]).any():  # else components came one after the other
            back = np.empty(len(refs), np.int64)
            back[order] = np.arange(len(refs))
            columns = [column.take(back) for column in columns]
            payload = None if payload is None else payload.take(back)
        return Morsel(
            refs, pa.RecordBatch.from_arrays(columns, names=found[0].columns.schema.names), payload
        )
