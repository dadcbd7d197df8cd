"""Between two floors of a lane: finished rows as records, records as rows of the floor above."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.batches.row_records import records_of
from zephon.errors import ExecutionError
from zephon.exec.assemble import Assembler, Naming
from zephon.exec.finished_rows import Placed
from zephon.exec.morsel import Morsel
from zephon.exec.rows import HoldsRows
from zephon.io.made_rows import MadeRecords
from zephon.io.payload import Payload
from zephon.types import SampleMeta, SampleRecord
from zephon.work.refs import Refs

_NO_COLUMNS = pa.RecordBatch.from_arrays([], names=[])


def records_of_rows(
    assembler: Assembler, lane: HoldsRows, placed: Sequence[Placed]
) -> list[SampleRecord]:
    """Make a record of each finished row, its payload with it: all of it the caller's own.

    Args:
        assembler: of such rows.
        lane: holds their documents, each of which is read.
        placed: the rows, in order.

    Raises:
        DataError: a row cannot be decoded.
    """
    if not sum(map(len, placed)):
        return []
    rows = assembler.batch(assembler.gather([(lane, part) for part in placed]))
    # Now, so that a row that cannot be decoded is no error of whoever looks at it.
    return [SampleRecord(record.meta, record.payload) for record in records_of(rows)]


class RowsOfRecords:
    """Makes rows of what an operator of the user gave.

    component_ids: the public ids of all components, ascending.

    Args:
        naming: how references became public ids.
        label: how messages call the operator.
    """

    def __init__(self, naming: Naming, label: str) -> None:
        self._naming = naming
        self._label = label
        self.component_ids: list[int] = np.unique(naming.component_id).tolist()
        self._components: dict[int, list[int]] = {}  # of each dataset
        for number, dataset in enumerate(naming.dataset_id.tolist()):
            self._components.setdefault(dataset, []).append(number)
        starts = np.unique(naming.first_shard)
        self._stops = dict(
            zip(starts.tolist(), [*starts[1:].tolist(), len(naming.shard_id)], strict=True)
        )
        self._sorted: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def rows(self, lane: int, group: int, records: Sequence[SampleRecord]) -> Morsel:
        """Return the records of a group, which is one draw of the floor above.

        Args:
            lane: whose.
            group: number of the group.
            records: in order; one at least.

        Returns:
            rows that say themselves who they are. Their references name the source row of the
            sample that their metas name; the pass is not known, and 0.

        Raises:
            ExecutionError: a record names a sample that no dataset has.
        """
        metas, count = [record.meta for record in records], len(records)
        for meta in metas:
            if meta.sample_id[0] not in self._components:
                raise self._stranger(meta, lane)
        found = [self.component_of(meta.sample_id[0], meta) for meta in metas]
        component = np.array(found, np.int32)
        last_child = np.zeros(count, bool)
        last_child[-1] = True
        refs = Refs(
            component=component,
            shard=self._shards(component, metas, lane),
            row=np.array([meta.sample_id[2] for meta in metas], np.int64),
            pass_index=np.zeros(count, np.int32),
            ordinal=np.full(count, group, np.int64),
            child=np.arange(count, dtype=np.int32),
            last_child=last_child,
            lane=np.full(count, lane, np.int32),
        )
        source = MadeRecords([record.payload for record in records], metas)
        payload = Payload((source,), np.zeros(count, np.int32), np.arange(count))
        return Morsel(refs, _NO_COLUMNS, payload)

    @property
    def component_id(self) -> NDArray[np.int32]:
        """The public id of each component, shape [components]."""
        return self._naming.component_id

    def component_of(self, dataset: int, meta: SampleMeta) -> int:
        """Say which component a row of a dataset counts for, among those that a record names.

        Raises:
            KeyError: there is no such dataset.
        """
        found = self._components[dataset]
        for number in found:
            if int(self._naming.component_id[number]) in meta.component_sample_counts:
                return number
        return found[0]

    def _shards(
        self, component: NDArray[np.int32], metas: Sequence[SampleMeta], lane: int
    ) -> NDArray[np.int64]:
        """Turn public ids of shards into positions."""
        wanted = np.array([meta.sample_id[1] for meta in metas], np.int64)
        shard = np.empty(len(metas), np.int64)
        for number in np.unique(component).tolist():
            mine = np.flatnonzero(component == number)
            ids, order = self._shard_ids(number)
            at = np.minimum(np.searchsorted(ids, wanted[mine]), len(ids) - 1)
            strange = np.flatnonzero(ids[at] != wanted[mine])
            if len(strange):
                raise self._stranger(metas[int(mine[strange[0]])], lane)
            shard[mine] = order[at]
        return shard

    def _shard_ids(self, component: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the public ids of a component's shards, ascending, and the position of each."""
        first = int(self._naming.first_shard[component])
        if first not in self._sorted:
            ids = self._naming.shard_id[first : self._stops[first]]
            order = np.argsort(ids, kind="stable")
            self._sorted[first] = ids[order], order
        return self._sorted[first]

    def _stranger(self, meta: SampleMeta, lane: int) -> ExecutionError:
        return ExecutionError(
            f"{self._label}: a record must name a sample of the data, got {meta.sample_id} in lane "
            f"{lane}; keep the meta of a record, or make one with spawn_child or pack_meta"
        )
