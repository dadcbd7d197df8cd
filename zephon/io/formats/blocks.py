"""Blocks of rows, what is decoded of one, and what goes wrong while a file of them is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from zephon.errors import DatasetError, ShardError, told

BLOCK_BYTES = 1 << 20


class Block(NamedTuple):
    """Some neighbouring rows of a file: where they begin, in bytes of its decoded text.

    It reaches to where the next one begins; the last one, to the end of the file.
    """

    start: int
    rows: int


class Problem(NamedTuple):
    """What is wrong with a row, as the end of a sentence; and where in its block it begins."""

    why: str
    byte: int = 0
    excerpt: bytes = b""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of a block.

    rows: Python values; left out where there is a table.
    bad: rows that are none, by their number in the block; something stands in their places.
    table: the rows as columns.
    """

    rows: Sequence[Any] = ()
    bad: Mapping[int, Problem] = field(default_factory=dict)
    table: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.rows) if self.table is None else self.table.num_rows


@contextmanager
def located(dataset: str, shard: str, kind: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is read."""
    try:
        yield
    except (ShardError, DatasetError):
        raise
    except Exception as exc:  # a format may be of the user's, and so is what its code raises
        told_by = str(exc) if isinstance(exc, ValueError | OSError) else told(exc)
        raise ShardError(
            f"dataset {dataset!r}, shard {shard!r}: the file must be whole and of format {kind!r}, "
            f"but it cannot be read: {told_by}; write the file again, or move it out of the "
            f"directory"
        ) from exc
