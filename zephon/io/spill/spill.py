"""Decoded row groups that left memory: written as files, and mapped when they are wanted again.

A row group costs milliseconds to decode and 45 µs to map. Random order, and many lanes in any
order, want more groups at a time than memory holds; without the spill each of them is decoded for
a few rows, again and again. It holds whatever format was decoded but rows in memory, under the
options that are documented for Parquet.

Nothing depends on it: a file that is missing, damaged or of another version is decoded again, and
where nothing can be written the run goes on without, after one warning. Files stay after the run,
readable by their user alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from zephon.io.formats.format import DecodedGroup
from zephon.io.own_directory import ForeignRootError, own_row_group_root
from zephon.io.spill.file import (
    DamagedError,
    Layout,
    MappedGroup,
    check,
    layout_of,
    mapped,
    packed,
    unpacked,
    write,
)
from zephon.io.spill.key import GroupKey
from zephon.io.spill.room import SpillRoom

_TOUCH_NS = 20 * 10**9  # who used a file so recently need not say so again
_MOST_SEEN = 1 << 14
_FOOTER_BYTES = 4096

_Identity = tuple[int, int, int]


class ResolvedOptions(Protocol):
    """The options of the spill, with a root and a limit."""

    @property
    def root(self) -> str | os.PathLike[str] | None:
        """A directory of the spill's own."""
        ...

    @property
    def limit_bytes(self) -> int | None:
        """Of all its files."""
        ...

    @property
    def min_free_bytes(self) -> int:
        """What it leaves free on the disk."""
        ...


@dataclass(frozen=True, slots=True)
class SpillSettings:
    """Where the spill lies, and its bounds; see ``ParquetRGCacheOptions``."""

    root: Path
    limit_bytes: int
    min_free_bytes: int

    @classmethod
    def of(cls, resolved: ResolvedOptions) -> SpillSettings:
        """Take up what ``StoreOptions.resolved_parquet_rg_cache`` gave."""
        return cls(
            root=Path(resolved.root or own_row_group_root()),
            limit_bytes=resolved.limit_bytes or 0,
            min_free_bytes=resolved.min_free_bytes,
        )


@dataclass(slots=True)
class SpillCounts:
    """What a spill did so far: groups written, groups mapped, files found damaged."""

    written: int = 0
    mapped: int = 0
    damaged: int = 0


@dataclass(slots=True)
class _Seen:
    """A file whose digest was right.

    identity: which inode, of which size, written when. touched_ns: when its use was last written
    down. layout: where its columns lie, once it was mapped.
    """

    identity: _Identity
    touched_ns: int
    layout: Layout | None = None


class Spill:
    """Takes groups that memory lets go of, and gives them back; any number of threads may call."""

    def __init__(self, settings: SpillSettings) -> None:
        self._settings = settings
        self._room = SpillRoom(
            settings.root,
            limit_bytes=settings.limit_bytes,
            min_free_bytes=settings.min_free_bytes,
            ours=settings.root == own_row_group_root(),
        )
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._counts = SpillCounts()
        self._reads = self._writes = True
        self._warned = False

    def load(self, key: GroupKey) -> DecodedGroup | None:
        """Map a group; None if it is not there, or not as it was written."""
        if not key.lasts or not self._reads:
            return None
        path = self._room.path(key.digest)
        try:
            self._room.check()
            status = os.stat(path)
            seen = self._seen.get(path)
            if seen is None or seen.identity != _identity(status):
                status = check(path)
                seen = self._note(path, _identity(status), status.st_atime_ns)
            buffer = mapped(path, status.st_size)
            if seen.layout is None:
                group = unpacked(key, buffer)
                seen.layout = layout_of(key, group, buffer)
            else:
                group = seen.layout.over(buffer)
            if _identity(os.stat(path)) != seen.identity:
                return None  # another process put its own in place just now
        except (DamagedError, pa.ArrowException):
            self._forget(path)
            return None
        except ForeignRootError as exc:
            self._refuse(exc)
            return None
        except OSError:  # most often: there is no such file
            return None
        self._touch(path, seen, status)
        with self._lock:
            self._counts.mapped += 1
        return group

    def store(self, key: GroupKey, group: DecodedGroup) -> None:
        """Write a group that leaves memory, unless it is there or there is no room."""
        if not self._writes or not key.lasts or isinstance(group, MappedGroup):
            return
        path = self._room.path(key.digest)
        try:
            self._room.check()
            if os.path.exists(path):
                return
            self._write(key, group, path)
        except pa.ArrowException:  # a type that Arrow reads and cannot write
            return
        except ForeignRootError as exc:
            self._refuse(exc)
        except OSError as exc:
            self._writes = False
            self._warn(
                f"{self._settings.root} must be a directory with room that this process can "
                f"write, but {exc}"
            )

    def counts(self) -> SpillCounts:
        """Report what was done, at one moment."""
        with self._lock:
            return SpillCounts(self._counts.written, self._counts.mapped, self._counts.damaged)

    def _write(self, key: GroupKey, group: DecodedGroup, path: str) -> None:
        batch = packed(key, group)
        if batch is None:
            return
        size = pa.ipc.get_record_batch_size(batch) + _FOOTER_BYTES
        size += sum(map(len, batch.schema.metadata.values()))
        if not self._room.admit(size):
            self._warn(
                f"{self._settings.root} has no room left: its limit is "
                f"{self._settings.limit_bytes:,} bytes, and {self._settings.min_free_bytes:,} "
                "bytes of the disk stay free"
            )
            return
        try:
            with self._room.writing(key.digest) as part:
                write(part, batch)
                status = os.stat(part)
        except FileNotFoundError:  # someone removed the part, or the whole directory
            return
        self._note(path, _identity(status), time.time_ns())
        with self._lock:
            self._counts.written += 1

    def _note(self, path: str, identity: _Identity, touched_ns: int) -> _Seen:
        seen = _Seen(identity, touched_ns)
        with self._lock:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()  # they are only checked again
            self._seen[path] = seen
        return seen

    def _forget(self, path: str) -> None:
        """Remove a file that is not what it should be, so that it is written anew."""
        with self._lock:
            self._counts.damaged += 1
            self._seen.pop(path, None)
        with contextlib.suppress(OSError):
            os.unlink(path)

    def _refuse(self, exc: ForeignRootError) -> None:
        """Neither read nor write any more: what lies there may be a stranger's."""
        self._reads = self._writes = False
        self._warn(
            f"{self._settings.root} must be a directory of this user, in one of this user, and "
            f"no one else may write there, but {exc}"
        )

    def _touch(self, path: str, seen: _Seen, status: os.stat_result) -> None:
        """Write down that a file is used; its time of writing stays."""
        now = time.time_ns()
        if now - seen.touched_ns < _TOUCH_NS:
            return
        seen.touched_ns = now
        with contextlib.suppress(OSError):  # someone else's file, or gone
            os.utime(path, ns=(now, status.st_mtime_ns))

    def _warn(self, problem: str) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(
            f"spill: {problem}; row groups that leave memory are decoded again: name another "
            "io_options.parquet.rg_cache.root, raise its limit_bytes, or set enabled=False",
            RuntimeWarning,
            stacklevel=2,
        )


def _identity(status: os.stat_result) -> _Identity:
    return status.st_ino, status.st_size, status.st_mtime_ns
