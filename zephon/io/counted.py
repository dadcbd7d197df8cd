"""How much a dataset holds: rows, bytes and row groups, of each shard and of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon.io.shards import Shards


class Counted:
    """Answers from the columns of shards; whoever is one has them.

    shards: in bytewise order of their names; for rows in memory, ascending by key.
    """

    __slots__ = ()
    shards: Shards

    def counts(self) -> NDArray[np.int64]:
        """Rows of each shard, shape [shards], int64, aligned with ``ids()``; read-only."""
        return self.shards.rows

    def raw_bytes(self) -> NDArray[np.int64]:
        """Bytes of each shard, shape [shards], int64: file sizes, or an estimate in memory."""
        return self.shards.bytes

    def group_counts(self) -> NDArray[np.int64]:
        """Row groups of each shard, shape [shards], int64; the unit of decoding."""
        return self.shards.unit_counts()

    def group_sizes(self) -> NDArray[np.int64]:
        """Rows of each row group, shard after shard, shape [row groups], int64; read-only."""
        return self.shards.units[1]

    def total(self) -> int:
        """Rows of all shards."""
        return int(self.shards.rows.sum())

    def __len__(self) -> int:
        return self.total()

    def max_count(self) -> int:
        """Rows of the largest shard; 0 without shards."""
        return int(self.shards.rows.max(initial=0))

    def shard_count(self) -> int:
        """Number of shards, empty ones too."""
        return len(self.shards)

    def mean_row_bytes(self, shards: NDArray[np.int64] | None = None) -> float:
        """Mean bytes of a row once decompressed, all columns; 0.0 without rows. Sizes tasks.

        Args:
            shards: positions of those whose rows count; None: all.
        """
        which = slice(None) if shards is None else shards
        total = int(self.shards.rows[which].sum())
        return int(self.shards.decoded_bytes[which].sum()) / total if total else 0.0

    def mean_group_bytes(self) -> float:
        """Mean bytes of a decoded row group; 0.0 without rows."""
        groups = len(self.group_sizes())
        return self.mean_row_bytes() * self.total() / groups if groups else 0.0

    def manifest(self) -> tuple[tuple[str, int, int], ...]:
        """What the dataset is made of: (name, rows, bytes) of each shard."""
        return self.shards.manifest()
