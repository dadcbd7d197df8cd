"""Which processes use the cache, and which shards each of them holds right now.

Each process has a file of its own: a line that says who it is, then keys of held shards, 16 bytes
each, zeros where there is none. To hold a shard is one write of 16 bytes, and costs some two
microseconds; a killed process leaves a file that others know for a dead one's. Nobody writes to
another's file.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zephon.errors import CacheInUseError
from zephon.io.own_directory import PRIVATE_FILE
from zephon.io.shard_cache.names import KEY_BYTES
from zephon.io.shard_cache.owners import lives, this_process

_HEAD_BYTES = 512
_FIRST_SLOTS = 256
_FREE = bytes(KEY_BYTES)
_SUFFIX = ".user"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class User:
    """A living process that uses the cache, as its file tells.

    pid: its number. shared: the options that all must agree on. began_ns: when it began to use the
    cache. held: keys of shards.
    """

    name: str
    pid: int
    shared: str
    began_ns: int
    held: frozenset[bytes]


class UserFile:
    """This process's own file; its caller keeps threads from calling at the same time."""

    def __init__(self, folder: Path, shared: str) -> None:
        """Say that this process uses the cache.

        Raises:
            CacheInUseError: another one does that was told other options.
            OSError: the file cannot be written.
        """
        owner = f"{this_process()}.{next(_numbers):x}"
        self.path = folder / (owner + _SUFFIX)
        self._shared = shared
        self._pid = os.getpid()
        self._began_ns = time.time_ns()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(self.path, flags, PRIVATE_FILE)
        self._free = list(range(_FIRST_SLOTS - 1, -1, -1))
        self._slots = _FIRST_SLOTS
        head = json.dumps(
            {"pid": self._pid, "shared": self._shared, "began_ns": self._began_ns}
        ).encode()
        os.write(self._file, head.ljust(_HEAD_BYTES - 1)[: _HEAD_BYTES - 1] + b"\n")
        os.pwrite(self._file, _FREE * _FIRST_SLOTS, _HEAD_BYTES)
        try:
            self._check_agreed(folder)
        except BaseException:
            self.close()
            raise

    def hold(self, key: bytes) -> int:
        """Say that a shard is held; give what ``release`` takes."""
        if not self._free:
            self._free = list(range(2 * self._slots - 1, self._slots - 1, -1))
            self._slots *= 2
        slot = self._free.pop()
        with contextlib.suppress(OSError):  # whoever reads copes with a shard that went away
            os.pwrite(self._file, key, _HEAD_BYTES + slot * KEY_BYTES)
        return slot

    def release(self, slot: int) -> None:
        """Take back what ``hold`` said."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, _FREE, _HEAD_BYTES + slot * KEY_BYTES)
        self._free.append(slot)

    def close(self) -> None:
        """Stop to be a user; in a fork, the file stays its parent's."""
        if self._file < 0:
            return
        with contextlib.suppress(OSError):
            os.close(self._file)
        self._file = -1
        if os.getpid() == self._pid:
            self.path.unlink(missing_ok=True)

    def _check_agreed(self, folder: Path) -> None:
        """Refuse to be there beside an earlier user that was told something else."""
        mine = (self._began_ns, self.path.name)
        for user in living(folder):
            if user.shared != self._shared and (user.began_ns, user.name) < mine:
                raise CacheInUseError(
                    f"shard cache: {str(folder.parent)!r} is used by process {user.pid} with "
                    f"{user.shared}, and here with {self._shared}; give both the same options, or "
                    "name another io_options.cache.root"
                )


def living(folder: Path) -> list[User]:
    """Read the files of all living processes; remove those of dead ones."""
    found = []
    for path, content, touched_s in _files(folder):
        owner = path.name.removesuffix(_SUFFIX)
        if not lives(owner, touched_s):
            path.unlink(missing_ok=True)
            continue
        try:
            head = json.loads(content[:_HEAD_BYTES])
            pid, shared, began_ns = head["pid"], head["shared"], head["began_ns"]
        except (ValueError, KeyError, TypeError):  # it begins to be one right now
            continue
        keys = content[_HEAD_BYTES:]
        held = {keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)}
        found.append(User(path.name, pid, shared, began_ns, frozenset(held - {_FREE})))
    return found


def held_keys(folder: Path) -> set[bytes]:
    """Give the keys of shards that any living process holds, or may hold."""
    return {key for user in living(folder) for key in user.held}


def _files(folder: Path) -> Iterator[tuple[Path, bytes, float]]:
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return
    for name in names:
        path = folder / name
        try:
            with open(path, "rb", buffering=0) as file:
                touched_s = os.fstat(file.fileno()).st_mtime
                yield path, file.read(), touched_s
        except FileNotFoundError:  # it ended right now
            continue
