"""The catalogue that is kept of a directory without an index, in the cache root.

It holds what was found out by looking at the files, with their stamps, so that whoever opens the
directory next (another process, another rank, the same job after a restart) looks only at files
that are new or have changed. It lies in ``ZEPHON_CATALOG_DIR``, or in ``.catalog`` in the cache
root; anybody may remove it at any time, and nothing is lost but time.

Any number of processes may keep catalogues in one place. Each appears whole by a rename; those that
were used least recently leave when all together are too many or too large. One process looks at the
files of a directory while others wait, for as long as it gets on with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from zephon.io.atomic import written_atomically
from zephon.io.catalog_file import Catalog, UnusableCatalog, read_shards, write_draft
from zephon.io.formats.file_format import FileFormat
from zephon.io.own_directory import (
    PRIVATE_FILE,
    check_ours,
    default_root,
    make_directory,
    mark,
)
from zephon.version import __version__

FOLDER = ".catalog"
MARKER = ".zephon-catalogs"
SUFFIX = ".zephon-catalog"
LIMIT_BYTES = 1 << 30
LIMIT_FILES = 4096
MAPPED_BYTES = 64 << 20
"""A larger catalogue is mapped, so that processes share it; it lies on a file server in few cases,
and what is mapped of one there may vanish when another machine replaces it."""

STALLED_SECONDS = 30.0
"""Nobody waits for a process that has not looked at another file for so long."""

_LOCK = ".lock"
_OURS = re.compile(rf"[0-9a-f]{{40}}{re.escape(SUFFIX)}")
_LEFT_BEHIND = re.compile(rf"\.[0-9a-f]{{40}}{re.escape(SUFFIX)}\.[0-9a-f]{{32}}\.tmp")
_LOCKS = re.compile(rf"[0-9a-f]{{40}}{re.escape(_LOCK)}")
_LEFT_SECONDS = 3600
_POLL_SECONDS = 0.02
_MARKER_TEXT = (
    f"Zephon keeps here what it found in directories of data, in files that end in {SUFFIX}. It "
    "removes them by itself; anyone may remove them at any time.\n"
)


def catalog_root() -> tuple[Path, bool]:
    """Say where catalogues are kept, and whether that is a place that nobody named."""
    named = os.environ.get("ZEPHON_CATALOG_DIR")
    if named:
        return Path(os.path.abspath(os.path.expanduser(named))), False
    return Path(default_root(), FOLDER).absolute(), True


class KeptCatalog:
    """The catalogue of one directory's files of one format.

    Args:
        directory: where the files lie: an absolute path without links, or a URL.
        known: their format, with its options.
        listing: what else decides which files are listed.
    """

    def __init__(self, directory: str, known: FileFormat, listing: Mapping[str, Any]) -> None:
        self._known = known
        self._root, self._ours = catalog_root()
        made_by = [__version__, pa.__version__, os.geteuid()]
        made_of = [directory, known.kind, known.said_options(), listing]
        self._of = json.dumps([*made_by, *made_of], sort_keys=True, default=repr)
        self._digest = hashlib.sha256(self._of.encode(errors="surrogateescape")).hexdigest()[:40]
        self.path = str(self._root / f"{self._digest}{SUFFIX}")

    def read(self, directory: str) -> Catalog | None:
        """Give what is kept; None if nothing can be used. Says that it was used."""
        try:
            if self._ours:
                check_ours(self._root)
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                    return None
                mapped = status.st_size > MAPPED_BYTES
                content = None if mapped else pa.py_buffer(file.read())
            if content is None:
                with pa.memory_map(self.path) as source:
                    found = read_shards(source, directory, {self._known.kind: self._known})
            else:
                found = read_shards(content, directory, {self._known.kind: self._known})
        except (OSError, ValueError, UnusableCatalog, pa.ArrowException):
            return None  # it is made anew
        if found is None or found.made_of != self._of or found.stamps is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path, ns=(time.time_ns(), status.st_mtime_ns))
        return found

    def write(self, catalog: Catalog) -> str | None:
        """Keep a catalogue instead of what is kept.

        Returns:
            None; or why it cannot be kept.
        """
        try:
            self._make_root()
            target = Path(self.path)
            with written_atomically(target) as draft:
                os.chmod(draft, PRIVATE_FILE)
                write_draft(draft, replace(catalog, made_of=self._of))
                size = os.path.getsize(draft)
                if size > LIMIT_BYTES // 2:
                    raise OSError(f"it has {size} bytes, and all may have {LIMIT_BYTES}")
            self._make_room()
        except OSError as exc:
            return str(exc)
        return None

    @contextmanager
    def building(self) -> Iterator[Callable[[], None]]:
        """Wait for whoever looks at the same files now; then be the one whom others wait for.

        Gives what is to be called now and then, to say that it gets on.
        """
        lock = self._locked()
        try:
            yield lambda: None if lock is None else os.utime(lock)
        finally:
            if lock is not None:
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.fstat(lock), os.stat(self._lock_path())):
                        os.unlink(self._lock_path())
                with contextlib.suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_UN)  # a child may have been forked meanwhile
                os.close(lock)

    def _lock_path(self) -> Path:
        return self._root / f"{self._digest}{_LOCK}"

    def _locked(self) -> int | None:
        """Take the lock; None where there are no locks, or its holder does not get on."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        last, since = None, time.monotonic()
        while True:
            try:
                self._make_root()
                lock = os.open(self._lock_path(), flags, PRIVATE_FILE)
            except OSError:
                return None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), os.stat(self._lock_path())):
                    return lock
            except BlockingIOError:
                beat = os.fstat(lock).st_mtime_ns
                if beat != last:
                    last, since = beat, time.monotonic()
                if time.monotonic() - since > STALLED_SECONDS:
                    os.close(lock)
                    return None
                time.sleep(_POLL_SECONDS)
            except FileNotFoundError:
                pass  # whoever held it has removed it: another one is taken
            except OSError:  # not every file system has locks
                os.close(lock)
                return None
            os.close(lock)

    def _make_root(self) -> None:
        if self._ours:
            check_ours(self._root)  # before, so that nothing is made behind a stranger's link
        if not self._root.is_dir():
            make_directory(self._root)
            if self._ours:
                check_ours(self._root)
            mark(self._root, MARKER, _MARKER_TEXT)

    def _make_room(self) -> None:
        """Remove what was used least recently beyond the limits, and what killed writers left."""
        found: list[tuple[int, int, str]] = []
        with os.scandir(self._root) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process was faster
                    if _OURS.fullmatch(entry.name):
                        status = entry.stat(follow_symlinks=False)
                        found.append((status.st_atime_ns, status.st_size, entry.path))
                    elif _LEFT_BEHIND.fullmatch(entry.name) or _LOCKS.fullmatch(entry.name):
                        written = entry.stat(follow_symlinks=False).st_mtime
                        if time.time() - written > _LEFT_SECONDS:
                            os.unlink(entry.path)
        held, count = sum(size for _, size, _ in found), len(found)
        for _, size, path in sorted(found):
            if held <= LIMIT_BYTES and count <= LIMIT_FILES:
                return
            with contextlib.suppress(OSError):  # someone else's, in a shared directory
                os.unlink(path)
                held, count = held - size, count - 1
