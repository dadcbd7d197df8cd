"""All shards of a dataset as columns; a ``Shard`` is made when somebody asks for one.

A million shards are some arrays of 8 bytes a shard and their names, which may lie in a mapped
file: nothing is made for each of them until it is read.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.far_files import FarFiles
from zephon.io.in_memory import InMemoryShard
from zephon.io.offsets import offsets_of
from zephon.io.shard import ListedBy, Shard

Groups = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Where each shard's groups begin among all, shape [shards + 1], and their rows, shape [groups]."""


class Layouts(ABC):
    """What a format needs to find the row groups of each shard, as columns."""

    @abstractmethod
    def of(self, shard: int) -> object:
        """Give the layout of the shard at a position; about a microsecond."""

    @abstractmethod
    def columns(self) -> Mapping[str, pa.Array]:
        """Give the columns, one value a shard, to be stored with the other columns."""

    @abstractmethod
    def about(self) -> Mapping[str, Any]:
        """Give what the columns refer to, as JSON values to be stored beside them."""

    def units(
        self, rows: NDArray[np.int64], decoded_bytes: NDArray[np.int64], groups: Groups
    ) -> Groups:
        """Say what is decoded at a time, given the row groups of the files: these, or parts."""
        return groups


class Shards(Sequence[Shard]):
    """The shards of a dataset, in order.

    Two are equal if their shards are: the same names, place, rows and bytes.

    Args:
        directory: where the files lie; "" for rows in memory.
        names: of the shards, without nulls.
        rows: of each shard, shape [shards], int64.
        bytes: of each file, shape [shards], int64.
        decoded_bytes: of each shard's rows once decompressed, shape [shards], int64.
        group_starts: where each shard's row groups begin among all; then their number, shape
            [shards + 1], int64.
        group_rows: rows of each row group, shard after shard, shape [groups], int64. What is
            decoded at a time may be less: see ``units``.
        layouts: the shards' layouts; None if the format has none.
        mtimes_ns: when each file was last written, shape [shards], int64; None if not looked at.
        memory: rows in memory, one a shard.
        listed_by: what told of the shards; None if they were read themselves.
        marks: content marks (``marks``), shape [shards], uint64; None unless all were told.
        full_hashes: the first 48 bits of each whole file's SHA-256, shape [shards], uint64; None
            unless all were told.
        kept_in: the kept catalogue that told of files which had not changed since; "" if none did.
        far: the files, if they lie in a far place; then ``directory`` is a url.

    >>> shards = Shards.of([], directory="/data")
    >>> len(shards), shards.rows.tolist(), list(shards)
    (0, [], [])
    """

    __slots__ = (
        "_digest", "_units", "bytes", "decoded_bytes", "directory", "far", "full_hashes",
        "group_rows", "group_starts", "kept_in", "layouts", "listed_by", "marks", "memory",
        "mtimes_ns", "names", "rows", "seen",
    )  # fmt: skip

    def __init__(
        self,
        *,
        directory: str,
        names: pa.LargeStringArray,
        rows: NDArray[np.int64],
        bytes: NDArray[np.int64],  # noqa: A002 - the word that Shard has for it
        decoded_bytes: NDArray[np.int64],
        group_starts: NDArray[np.int64],
        group_rows: NDArray[np.int64],
        layouts: Layouts | None = None,
        mtimes_ns: NDArray[np.int64] | None = None,
        memory: tuple[InMemoryShard, ...] | None = None,
        listed_by: ListedBy | None = None,
        marks: NDArray[np.uint64] | None = None,
        full_hashes: NDArray[np.uint64] | None = None,
        kept_in: str = "",
        far: FarFiles | None = None,
    ) -> None:
        self.directory = directory
        self.rows = _read_only(rows)
        self.bytes = _read_only(bytes)
        self.decoded_bytes = _read_only(decoded_bytes)
        self.group_starts = _read_only(group_starts)
        self.group_rows = _read_only(group_rows)
        self.names = names
        self.layouts = layouts
        self.mtimes_ns = mtimes_ns
        self.memory = memory
        self.listed_by = listed_by
        self.marks = marks
        self.full_hashes = full_hashes
        self.kept_in = kept_in
        self.far = far
        self._digest: str | None = None
        self._units: Groups | None = None
        self.seen: dict[int, tuple[int, int]] = {}  # by position: st_ctime_ns, and the mark at that

    @classmethod
    def of(
        cls,
        shards: Sequence[Shard],
        *,
        directory: str,
        layouts: Layouts | None = None,
        listed_by: ListedBy | None = None,
        far: FarFiles | None = None,
    ) -> Shards:
        """Make columns of shards that were described one by one.

        Args:
            shards: all of them files in one directory, or all of them in memory.
            directory: where the files lie; "" for rows in memory.
            layouts: the shards' layouts, in the same order.
            listed_by: what told of them.
            far: the files, if they lie in a far place.
        """
        groups = [shard.group_rows for shard in shards]
        memory = tuple(shard.memory for shard in shards if shard.memory is not None)
        return cls(
            directory=directory,
            names=pa.array([shard.name for shard in shards], pa.large_string()),
            rows=np.array([shard.rows for shard in shards], np.int64),
            bytes=np.array([shard.bytes for shard in shards], np.int64),
            decoded_bytes=np.array([shard.decoded_bytes for shard in shards], np.int64),
            group_starts=offsets_of([len(rows) for rows in groups]),
            group_rows=np.concatenate([np.empty(0, np.int64), *groups]),
            layouts=layouts,
            mtimes_ns=None
            if listed_by
            else np.array([shard.mtime_ns for shard in shards], np.int64),
            memory=memory or None,
            listed_by=listed_by,
            marks=_if_all([shard.mark for shard in shards]),
            full_hashes=_if_all([shard.full_hash for shard in shards]),
            far=far,
        )

    @property
    def units(self) -> Groups:
        """Say what is decoded at a time: row groups, or parts of those that are huge."""
        if self._units is None:
            units = (self.group_starts, self.group_rows)
            if self.layouts is not None:
                units = self.layouts.units(self.rows, self.decoded_bytes, units)
            self._units = (_read_only(units[0]), _read_only(units[1]))
        return self._units

    def unit_counts(self) -> NDArray[np.int64]:
        """Count the units of decoding of each shard; shape [shards], int64, new memory."""
        return np.diff(self.units[0])

    def huge_group_bytes(self) -> int:
        """Estimate the bytes of the largest row group that is decoded in parts; 0: none is."""
        if self.units[1].size == self.group_rows.size:
            return 0
        row_bytes = self.decoded_bytes / np.maximum(self.rows, 1)
        sizes = np.repeat(row_bytes, np.diff(self.group_starts)) * self.group_rows
        return int(sizes.max())

    def told_by(self) -> str:
        """Name the file that told of shards which were not looked at; "" if all were."""
        return self.kept_in if self.listed_by is None else self.listed_by.file

    def manifest(self) -> tuple[tuple[str, int, int], ...]:
        """Give (name, rows, bytes) of each shard."""
        told = (self.names.to_pylist(), self.rows.tolist(), self.bytes.tolist())
        return tuple(zip(*told, strict=True))

    def digest(self, count: int | None = None) -> str:
        """Return the SHA-256 of names, rows and bytes, whatever told of them.

        A million shards take about a tenth of a second, the first time.

        Args:
            count: how many of the shards, from the first on; None: all.
        """
        if count is not None and count != len(self):
            return self._digest_of(count)
        if self._digest is None:
            self._digest = self._digest_of(len(self))
        return self._digest

    def _digest_of(self, count: int) -> str:
        starts, text = _buffers(self.names)
        found = hashlib.sha256(count.to_bytes(8, "little"))
        for numbers in (np.diff(starts), self.rows, self.bytes):
            found.update(np.ascontiguousarray(numbers[:count], "<i8").data)
        found.update(text[: int(starts[count])])
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int, /) -> Shard: ...
    @overload
    def __getitem__(self, index: slice, /) -> tuple[Shard, ...]: ...

    def __getitem__(self, index: int | slice, /) -> Shard | tuple[Shard, ...]:
        if isinstance(index, slice):
            return tuple(self._shard(place) for place in range(*index.indices(len(self))))
        place = int(index)
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"shards: there are {len(self)}, got position {index}")
        return self._shard(place)

    def __iter__(self) -> Iterator[Shard]:
        return map(self._shard, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shards):
            return NotImplemented
        return (
            self.directory == other.directory
            and self.memory == other.memory
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.bytes, other.bytes)
            and self.names.equals(other.names)
        )

    def __hash__(self) -> int:
        return hash((self.directory, self.memory, len(self), int(self.rows.sum())))

    def __reduce__(self) -> tuple[Any, ...]:
        told = (name for name in self.__slots__ if name not in ("_digest", "_units", "seen"))
        return _unpickled, ({name: getattr(self, name) for name in told},)

    def __repr__(self) -> str:
        return f"Shards({len(self)} in {self.directory or 'memory'!r})"

    def _shard(self, place: int) -> Shard:
        name = self.names[place].as_py()
        starts, group_rows = self.units
        start, stop = starts[place : place + 2].tolist()
        return Shard(
            name=name,
            path=os.path.join(self.directory, name) if self.memory is None else "",
            rows=int(self.rows[place]),
            bytes=int(self.bytes[place]),
            decoded_bytes=int(self.decoded_bytes[place]),
            group_rows=group_rows[start:stop],
            mtime_ns=0 if self.mtimes_ns is None else int(self.mtimes_ns[place]),
            layout=None if self.layouts is None else self.layouts.of(place),
            memory=None if self.memory is None else self.memory[place],
            listed_by=self.listed_by,
            mark=None if self.marks is None else int(self.marks[place]),
            full_hash=None if self.full_hashes is None else int(self.full_hashes[place]),
            far=self.far,
        )


def _unpickled(parts: dict[str, Any]) -> Shards:
    return Shards(**parts)


def _buffers(names: pa.LargeStringArray) -> tuple[NDArray[np.int64], memoryview]:
    """View where names begin and their text, for an array that is no slice."""
    _, starts, text = names.buffers()
    offsets = np.frombuffer(starts, np.int64, len(names) + 1) if starts else np.zeros(1, np.int64)
    return offsets, memoryview(text or b"")[: int(offsets[-1])]


def _if_all(values: list[int | None]) -> NDArray[np.uint64] | None:
    if not values or None in values:
        return None
    return np.array(values, np.uint64)


def _read_only(values: NDArray[np.int64]) -> NDArray[np.int64]:
    view = values.view()
    view.flags.writeable = False
    return view
