"""One version of a shard as it lies in the cache: where, and whether it is as it came."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from zephon.io.shard_cache.names import ShardNames
from zephon.io.shard_cache.told import read_told
from zephon.io.storage.place import StoredFile

_TOUCH_SECONDS = 20.0  # who said so recently that a shard is in use need not say so again
_GRAINS_NS = (100, 1000, 10**6, 10**9, 2 * 10**9)  # of times on file systems that know no finer


class LocalShard:
    """A shard, there or not, and what this process knows of it.

    holds: how many in this process hold it. slot: where other processes read that. checked: its
    hash was right, or needs not be. touched_s: when its use was last written down.
    """

    __slots__ = ("checked", "file", "folder", "holds", "names", "path", "slot", "touched_s")

    def __init__(self, folder: Path, names: ShardNames, file: StoredFile) -> None:
        self.folder = folder
        self.names = names
        self.file = file
        self.path = str(folder / names.shard)
        self.holds = 0
        self.slot = -1
        self.checked = False
        self.touched_s = 0.0

    def exists(self) -> bool:
        """Tell whether a file has its name, whatever it is."""
        return os.path.lexists(self.path)

    def is_there(self) -> bool:
        """Tell whether it lies here, of the size and the time that it came with."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return (
            stat.S_ISREG(status.st_mode)
            and status.st_size == self.file.size
            and _is_time(status.st_mtime_ns, self.names.mtime_ns)
        )

    def has_hashes(self, wanted: Mapping[str, str]) -> bool:
        """Check a shard that is there against hashes, once; one that fails is removed.

        Raises:
            OSError: it cannot be read.
        """
        if self.checked or not wanted:
            return True
        known = read_told(self.folder / self.names.told)
        if known is None or not wanted.items() <= known.hashes.items():
            with open(self.path, "rb", buffering=0) as file:
                for name, value in wanted.items():
                    file.seek(0)
                    if hashlib.file_digest(file, name).hexdigest() != value:
                        break
                else:
                    self.checked = True
                    return True
            with contextlib.suppress(OSError):
                os.unlink(self.path)  # its size and time are right: it must not be taken again
            return False
        self.checked = True
        return True

    def touch(self) -> None:
        """Write down that it is used, now and then."""
        now = time.monotonic()
        if self.touched_s and now - self.touched_s < _TOUCH_SECONDS:
            return
        self.touched_s = now
        with contextlib.suppress(OSError):  # nothing is told of it: it will leave early
            wall = time.time_ns()  # finer than what the system would take
            os.utime(self.folder / self.names.told, ns=(wall, wall))

    def came(self) -> None:
        """Note that it was fetched and checked right now."""
        self.checked, self.touched_s = True, time.monotonic()


def _is_time(found: int, wanted: int) -> bool:
    """Tell whether a file has the time that it was given, on a disk that may round it down."""
    return found == wanted or any(found == wanted - wanted % grain for grain in _GRAINS_NS)
