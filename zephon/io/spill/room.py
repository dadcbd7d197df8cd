"""The directory of the spill: how much room it may take, and who has to leave.

Any number of processes and jobs may share one directory, and each may end at any moment: nothing
is held but files, each of which appears whole by a rename and may vanish at any time. So each
process counts what lies there for itself, from time to time, and all of them together may pass the
limit by a part of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from zephon.io.own_directory import PRIVATE_FILE, check_ours, make_directory, mark

MARKER = ".zephon-spill"
SUFFIX = ".zephon-group"
PARTIAL = ".zephon-part"

_OURS = re.compile(rf"[0-9a-f]{{40}}{re.escape(SUFFIX)}")
_PARTIAL = re.compile(rf"[0-9a-f]{{40}}\.\d+-\d+{re.escape(PARTIAL)}")
_MARKER_TEXT = (
    f"Zephon keeps decoded row groups here, in files that end in {SUFFIX}. It removes them by "
    "itself; anyone may remove them at any time.\n"
)
_FREED_SHARE = 10  # one part in so many of the limit is freed at a time, so that looking pays
_UNSEEN_SHARE = 16  # what may be written before looking again, likewise
_LEAST_UNSEEN = 64 << 20
_STALE_SECONDS = 3600  # a part of which no lock tells whether its writer lives
_PAUSE_SECONDS = 10  # before looking for room again where there was none


class _File(NamedTuple):
    """A file that lies in the directory; the least recently used sorts first."""

    used_ns: int
    bytes: int
    path: str


class SpillRoom:
    """Keeps a directory below its limit, and the disk from running full; for all threads.

    Args:
        root: made when the first file is written.
        limit_bytes: of all files of the spill.
        min_free_bytes: stays free on the disk.
        ours: nobody named the root, so it must be this user's alone.
    """

    def __init__(
        self, root: Path, *, limit_bytes: int, min_free_bytes: int, ours: bool = False
    ) -> None:
        self._root = root
        self._prefix = os.path.join(root, "")
        self._limit = limit_bytes
        self._min_free = min_free_bytes
        self._ours = ours
        self._lock = threading.Lock()
        self._opened = False
        self._used = 0  # as last counted, and what was written since
        self._unseen = 0  # written since
        self._closed_until = 0.0
        self._parts = 0

    def path(self, digest: str) -> str:
        """Name the file of a group."""
        return f"{self._prefix}{digest}{SUFFIX}"

    def check(self) -> None:
        """Refuse a root of our own choosing that others made or could change; costs 7 µs.

        Raises:
            ForeignRootError: it is not this user's alone.
            OSError: it cannot be looked at.
        """
        if self._ours:
            check_ours(self._root)

    def admit(self, size: int) -> bool:
        """Make room for a file, if need be by removing those that were used least recently.

        Raises:
            ForeignRootError: see ``check``.
            OSError: the directory cannot be made, written or listed.
        """
        with self._lock:
            if not self._opened or not self._root.exists():
                self._open()
            if size > self._limit or time.monotonic() < self._closed_until:
                return False
            free = self._free()
            stale = self._unseen > max(self._limit // _UNSEEN_SHARE, _LEAST_UNSEEN)
            if stale or self._missing(size, free):
                free += self._make_room(size, free)
            if self._missing(size, free):
                self._closed_until = time.monotonic() + _PAUSE_SECONDS
                return False
            self._used += size
            self._unseen += size
            return True

    @contextmanager
    def writing(self, digest: str) -> Iterator[str]:
        """Give the path of a part, which becomes the file of a group when the block ends well.

        The part is locked while it is written, so that another process can tell one that is being
        written from one whose writer was killed.

        Raises:
            OSError: whatever the disk says.
        """
        with self._lock:
            self._parts += 1
            name = f"{digest}.{os.getpid()}-{self._parts}{PARTIAL}"
        part = self._prefix + name
        descriptor = os.open(
            part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_FILE
        )
        try:
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield part
            os.rename(part, self.path(digest))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        finally:
            os.close(descriptor)

    def _open(self) -> None:
        """Make the directory, mark it as ours, and see what lies there."""
        self.check()  # before, so that nothing is made behind a stranger's link
        make_directory(self._root)
        self.check()
        mark(self._root, MARKER, _MARKER_TEXT)
        self._used = sum(file.bytes for file in self._look())
        self._opened = True

    def _free(self) -> int:
        status = os.statvfs(self._root)
        return status.f_bavail * status.f_frsize

    def _missing(self, size: int, free: int) -> int:
        """Bytes that have to go before a file of this size fits; 0 if it does."""
        return max(self._used + size - self._limit, self._min_free + size - free, 0)

    def _make_room(self, size: int, free: int) -> int:
        """Count again, and remove files until a new one fits; return the bytes freed."""
        files = sorted(self._look())
        self._used = sum(file.bytes for file in files)
        self._unseen = 0
        missing = self._missing(size, free)
        if missing and self._used + size > self._limit:
            missing = max(missing, self._limit // _FREED_SHARE)
        freed = 0
        for file in files:
            if freed >= missing:
                break
            try:
                os.unlink(file.path)
            except FileNotFoundError:  # another process was faster
                pass
            except OSError:  # someone else's, in a shared directory; the next one may go
                continue
            freed += file.bytes
        self._used -= freed
        return freed

    def _look(self) -> list[_File]:
        """List the files of the spill; remove parts that dead processes left."""
        found = []
        with os.scandir(self._root) as entries:
            for entry in entries:
                if _OURS.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        found.append(_File(status.st_atime_ns, status.st_size, entry.path))
                elif _PARTIAL.fullmatch(entry.name):
                    _remove_abandoned(entry.path)
        return found


def _remove_abandoned(part: str) -> None:
    """Remove a part if nobody is writing it; who cannot tell waits an hour."""
    with contextlib.suppress(OSError):
        descriptor = os.open(part, os.O_WRONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            if time.time() - os.fstat(descriptor).st_mtime < _STALE_SECONDS:
                return
        finally:
            os.close(descriptor)
        os.unlink(part)
