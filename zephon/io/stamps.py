"""What tells one version of a file from the next without reading it: stamps of many files at once.

A stamp is a size, a time, and two numbers more: of a local file the time when anything of it was
changed, which no program can set, and its inode; of a stored object two halves of a hash of its
version. So a file that was written over, moved or copied to a name has another stamp, even if it
has the same size and a modification time that was preserved.

A file that was changed a moment ago may be changed again within one tick of its clock, so its stamp
says nothing yet: such a stamp is not settled. That clock must not be seconds behind ours.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from zephon.io.storage.place import StoredFile

SETTLED_NS = 2_000_000_000
"""Ticks of the clocks of file systems are two seconds at most."""

_TOGETHER = 512  # files a task
_SLOW_SECONDS = 50e-6  # a file; a local one takes 2e-6
_THREADS = 16  # each waits for a file server


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """The stamps of some files; arrays of shape [files].

    bytes: int64; -1 for what is no file.
    mtimes_ns: when it was last written, int64.
    changed, which: uint64; see the module.
    settled: whether the same stamp later means the same content, bool.
    """

    bytes: NDArray[np.int64]
    mtimes_ns: NDArray[np.int64]
    changed: NDArray[np.uint64]
    which: NDArray[np.uint64]
    settled: NDArray[np.bool_]

    def at(self, places: NDArray[np.int64]) -> Stamps:
        """Give the stamps of the files at some positions."""
        return Stamps(
            self.bytes[places],
            self.mtimes_ns[places],
            self.changed[places],
            self.which[places],
            self.settled[places],
        )

    def same(self, other: Stamps) -> NDArray[np.bool_]:
        """Tell which of as many files have the stamps of the other ones, shape [files]."""
        return (
            (self.bytes == other.bytes)
            & (self.mtimes_ns == other.mtimes_ns)
            & (self.changed == other.changed)
            & (self.which == other.which)
            & (self.bytes >= 0)
        )


def file_stamps(directory: str, files: Sequence[str]) -> Stamps:
    """Look at local files; 2 µs each, or many at a time where that waits for a server.

    Args:
        directory: where they are.
        files: their names in it; what is not there or is no file gets -1 bytes.
    """
    now = time.time_ns()
    prefix = os.path.join(directory, "")
    found = list(chain.from_iterable(_looks(prefix, files)))
    count = len(found)
    mtimes = np.fromiter((each.st_mtime_ns if each else 0 for each in found), np.int64, count)
    changed = np.fromiter((each.st_ctime_ns if each else 0 for each in found), np.int64, count)
    return Stamps(
        bytes=np.fromiter((each.st_size if each else -1 for each in found), np.int64, count),
        mtimes_ns=mtimes,
        changed=changed.astype(np.uint64),
        which=np.fromiter((each.st_ino if each else 0 for each in found), np.uint64, count),
        settled=np.maximum(mtimes, changed) < now - SETTLED_NS,
    )


def stored_stamps(files: Sequence[StoredFile]) -> Stamps:
    """Take the stamps of stored files from a listing: a version says all."""
    hashes = [hashlib.sha256(file.version.encode()).digest()[:16] for file in files]
    halves = np.frombuffer(b"".join(hashes), np.dtype("<u8")).reshape(-1, 2)
    return Stamps(
        bytes=np.array([file.size for file in files], np.int64),
        mtimes_ns=np.array([file.modified_ns for file in files], np.int64),
        changed=halves[:, 0].astype(np.uint64),
        which=halves[:, 1].astype(np.uint64),
        settled=np.ones(len(files), bool),
    )


def _looks(prefix: str, files: Sequence[str]) -> Iterator[list[os.stat_result | None]]:
    def look(start: int) -> list[os.stat_result | None]:
        return [_status(prefix + file) for file in files[start : start + _TOGETHER]]

    starts = iter(range(0, len(files), _TOGETHER))
    for start in starts:
        began = time.perf_counter()
        yield look(start)
        if time.perf_counter() - began > _SLOW_SECONDS * _TOGETHER:
            break
    rest = list(starts)
    if rest:
        with ThreadPoolExecutor(min(_THREADS, len(rest)), "zephon-stamp") as pool:
            yield from pool.map(look, rest)


def _status(path: str) -> os.stat_result | None:
    try:
        status = os.stat(path)
    except OSError:  # whoever opens it says what is wrong
        return None
    return status if stat.S_ISREG(status.st_mode) else None
