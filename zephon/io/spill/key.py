"""What tells one decoded row group from every other: the key of caches, in memory and on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable

from zephon.expressions import RowFilter
from zephon.io.fields import Column

CONTENT_VERSION = 5
"""Raised whenever the same file would decode to other columns, faults or messages."""


class GroupKey:
    """Equal keys mean equal decoded groups, in this process and in any other.

    Args:
        identity: of the shard: (path, bytes, mtime_ns), or the rows themselves in memory.
        group: position among the shard's row groups.
        first_row: of the group, counted in its shard.
        rows: of the group.
        columns: what is decoded of each row.
        dataset: its name where whole rows are kept, since their errors say it; else None.
        keep: the filter of which only the rows that pass are kept; None: all rows are.
        beside: how the file is read, and what rows hold that it does not, as numbers and text.
    """

    __slots__ = ("_digest", "_fields", "_hash", "_text")

    def __init__(
        self,
        identity: Hashable,
        group: int,
        first_row: int,
        rows: int,
        columns: tuple[Column, ...],
        dataset: str | None,
        keep: RowFilter | None = None,
        beside: Hashable = (),
    ) -> None:
        self._fields = (identity, group, first_row, rows, columns, dataset, keep, beside)
        self._hash = hash(self._fields)  # once: hashing columns costs more than a look-up
        self._text: bytes | None = None
        self._digest: str | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, GroupKey) and self._fields == other._fields)

    def __repr__(self) -> str:
        return f"GroupKey{self._fields}"

    @property
    def lasts(self) -> bool:
        """Whether another process would give the same group the same key.

        It would not for rows in memory, nor for a file that could not be looked at. What a filter
        left is not worth the disk: other filters leave other rows.
        """
        identity, keep = self._fields[0], self._fields[6]
        return keep is None and isinstance(identity, tuple) and all(identity)

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return self._fields[3]

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is decoded of each row."""
        return self._fields[4]

    @property
    def whole_rows(self) -> bool:
        """Whether the group is kept whole beside its columns."""
        return self._fields[5] is not None

    @property
    def text(self) -> bytes:
        """All of the key in one line, as it stands in a file of the spill.

        It names the file's inode and the time of its last change too, which tell a file from
        another of its size and modification time that was put in its place.
        """
        if self._text is None:
            identity, group, first_row, rows, columns, dataset, _, beside = self._fields
            named = [
                [c.path, c.kind, c.missing, c.null, c.without, c.named, *_values(c)]
                for c in columns
            ]
            parts = [CONTENT_VERSION, identity, _stamp(identity), group, first_row, rows, named]
            parts += [dataset, beside]
            self._text = json.dumps(parts, default=int).encode()
        return self._text

    @property
    def digest(self) -> str:
        """The name of a file for this group: 40 hexadecimal digits."""
        if self._digest is None:
            self._digest = hashlib.blake2b(self.text, digest_size=20).hexdigest()
        return self._digest


def _values(column: Column) -> list[str]:
    return [] if column.values is None else [str(column.values)]


def _stamp(identity: Hashable) -> list[int]:
    if not isinstance(identity, tuple):
        return []
    try:
        status = os.stat(identity[0])
    except OSError:  # it is gone: reading it will say so
        return []
    return [status.st_ino, status.st_ctime_ns]
