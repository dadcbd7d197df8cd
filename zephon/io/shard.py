"""One shard of a dataset: its name, its size, and where its row groups begin."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ShardError
from zephon.io.in_memory import InMemoryShard


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What is known of one shard once it has been counted.

    name: relative to the dataset's directory; for rows in memory, the user's key.
    path: the file, or "" for rows in memory.
    rows: rows that count; blank lines do not.
    bytes: size of the file; for rows in memory, an estimate.
    decoded_bytes: bytes of all rows once decompressed, estimated where unknown.
    group_rows: rows of each row group (the unit of decoding), shape [groups], int64.
    mtime_ns: when the file was last written; guards a running job against a changed file.
    layout: what the format needs to find a row group; opaque to everyone else.
    memory: the rows themselves, for rows in memory.
    """

    name: str
    path: str
    rows: int
    bytes: int
    decoded_bytes: int = field(compare=False)
    group_rows: NDArray[np.int64] = field(compare=False, repr=False)
    mtime_ns: int = 0
    layout: object = field(default=None, compare=False, repr=False)
    memory: InMemoryShard | None = None

    @property
    def identity(self) -> Hashable:
        """Equal for the same data, different for any other; keys decoded row groups."""
        if self.memory is not None:
            return self.memory
        return (self.path, self.bytes, self.mtime_ns)

    def check_unchanged(self, dataset: str, status: os.stat_result) -> None:
        """Refuse a file that was written to after its rows were counted.

        Raises:
            ShardError: size or modification time differ from those seen at counting.
        """
        if (status.st_size, status.st_mtime_ns) != (self.bytes, self.mtime_ns):
            raise ShardError(
                f"dataset {dataset!r}, shard {self.name!r}: the file must stay as it was when its "
                f"rows were counted, but it was written to since ({self.bytes} bytes then, "
                f"{status.st_size} now); open the dataset again with Dataset.from_path"
            )
