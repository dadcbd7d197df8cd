"""References to rows as columns: what work sources hand out and what state is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Refs:
    """References to rows, or to splits of rows; all columns have shape [refs].

    component: position of the component in its source, int32.
    shard: position in the dataset's shards, int64.
    row: row of the shard, int64.
    pass_index: which pass over the dataset this is, from 0, int32.
    ordinal: which draw of the lane this is, from 0, int64.
    child: which split of the row, int32; 0 for a row that is not split.
    last_child: no further split of the row follows, bool.
    lane: which lane drew it, int32.
    """

    component: NDArray[np.int32]
    shard: NDArray[np.int64]
    row: NDArray[np.int64]
    pass_index: NDArray[np.int32]
    ordinal: NDArray[np.int64]
    child: NDArray[np.int32]
    last_child: NDArray[np.bool_]
    lane: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        component: NDArray[np.int32],
        shard: NDArray[np.int64],
        row: NDArray[np.int64],
        pass_index: NDArray[np.int32],
        ordinal: NDArray[np.int64],
        lane: int = 0,
    ) -> Refs:
        """Make references to whole rows; the arrays are kept, not copied."""
        count = len(row)
        child, last_child = np.zeros(count, dtype=np.int32), np.ones(count, dtype=np.bool_)
        lanes = np.full(count, lane, dtype=np.int32)
        return cls(component, shard, row, pass_index, ordinal, child, last_child, lanes)

    @classmethod
    def empty(cls) -> Refs:
        """Make a table without references."""
        narrow, wide = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
        return cls.of(narrow, wide, wide, narrow, wide)

    @classmethod
    def concat(cls, tables: Sequence[Refs]) -> Refs:
        """Put tables one after another. New memory, but for a single table."""
        if not tables:
            return cls.empty()
        if len(tables) == 1:
            return tables[0]
        return cls(*(np.concatenate([getattr(t, name) for t in tables]) for name in _COLUMNS))

    def __len__(self) -> int:
        return len(self.row)

    def whole_rows(self) -> Refs:
        """Give references to the rows themselves, without their splits; shares memory."""
        return Refs.of(
            self.component,
            self.shard,
            self.row,
            self.pass_index,
            self.ordinal,
            int(self.lane[0]) if len(self) else 0,
        )

    def take(self, indices: NDArray[np.integer] | NDArray[np.bool_]) -> Refs:
        """Choose references by position, or by a mask. New memory."""
        return Refs(*(getattr(self, name)[indices] for name in _COLUMNS))

    def slice(self, start: int, stop: int) -> Refs:
        """Give the references from ``start`` up to ``stop``; they share this table's memory."""
        return Refs(*(getattr(self, name)[start:stop] for name in _COLUMNS))


_COLUMNS = tuple(field.name for field in fields(Refs))
