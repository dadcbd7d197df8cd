"""How much may lie in the cache, and which shards have to leave.

Every process counts for itself what lies there, files under way included: these stand there with
their whole size before their first byte. Shards that a living process holds stay, even where all
of them are more than the limit; of the others those go first that were held longest ago. So a
reader never waits for room: what it must have it gets, or an error at once.

Holding and removing at the same moment: who removes first says so in a file, then looks who holds;
who holds first says so, then looks for such a file. One of the two sees the other.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from zephon.errors import InsufficientCacheSpaceError
from zephon.io.own_directory import make_directory
from zephon.io.shard_cache.counting import Kept, count, leaving, remove_shard
from zephon.io.shard_cache.root import GOING, USERS, own_folder, write_new
from zephon.io.shard_cache.settings import SPACE_VARIABLE, CacheSettings, space_unchecked
from zephon.io.shard_cache.users import held_keys, living

_STALE_SECONDS = 5.0  # of the word that a shard goes: removing takes milliseconds
_MOST_WAIT_SECONDS = 2.0
_LOOKED_SECONDS = 0.25  # who removes looks anew after so long; far less than holders wait
_UNSEEN_SHARE = 8
_ROUNDS = 4
_LEAST_HEADROOM = 20  # one part in so many of the disk


class Room:
    """Keeps one root below its limit, and the disk from running full; for all threads."""

    def __init__(self, settings: CacheSettings) -> None:
        self._root = settings.root
        self._users = settings.root / USERS
        self._going = settings.root / GOING
        self._words = os.path.join(self._going, "")
        self._limit = settings.limit_bytes
        self._slack = settings.slack
        self._lock = threading.Lock()
        self._used = 0
        self._unseen_share = -1  # bytes that may come before counting again; not counted yet
        self._warned = False
        self.removed = 0

    def check_fits(self, what: str, size: int) -> None:
        """Refuse a shard that is larger than the limit.

        Raises:
            InsufficientCacheSpaceError: it is.
        """
        if self._limit is not None and size > self._limit:
            raise InsufficientCacheSpaceError(
                f"shard cache {str(self._root)!r}: {what} needs {size:,} bytes, and limit_bytes is "
                f"{self._limit:,}; raise io_options.cache.limit_bytes to hold at least a shard for "
                "each that is read at a time"
            )

    def admit(self, what: str, size: int, *, must: bool) -> bool:
        """Make room for a file that has been begun, so that counting sees it.

        Args:
            what: it is, for messages.
            size: it will have.
            must: it is being waited for: it may come although only held shards are left.

        Returns:
            whether it may come.

        Raises:
            InsufficientCacheSpaceError: the disk has no room for it.
        """
        with self._lock:
            self._check_disk(what, size)
            if self._limit is None:
                return True
            self._used += size
            self._unseen_share -= size
            if self._unseen_share < 0 or self._used > self._limit:
                counted = count(self._root)
                self._used = counted.bytes
                excess = self._used - self._limit
                if excess > 0:
                    self._used -= self._remove(counted.shards, excess + self._slack)
                self._unseen_share = self._share(max(len(living(self._users)), 1))
            if self._used <= self._limit or must:
                return True
            self._used -= size
            return False

    def free(self, size: int) -> int:
        """Remove shards that nobody holds, for the disk's sake; return the bytes freed."""
        with self._lock:
            freed = self._remove(count(self._root).shards, size)
            self._used = max(self._used - freed, 0)
            return freed

    def check_planned(self, size: int) -> None:
        """Look whether the disk has room for all that is going to come.

        Args:
            size: bytes of shards that do not lie here yet.

        Raises:
            InsufficientCacheSpaceError: it has not, and no limit says to make do with less.
        """
        if space_unchecked():
            return
        if self._limit is not None:
            size = min(size, max(self._limit - count(self._root).bytes, 0))
        free, total = self._disk()
        if size > free:
            raise InsufficientCacheSpaceError(_full(self._root, "the dataset", size, free))
        self._warn_of_headroom(free - size, total)

    def wait_if_going(self, key: bytes) -> None:
        """Let whoever is about to remove a shard see that it is held; never for long."""
        path = f"{self._words}{key.hex()}"
        end = time.monotonic() + _MOST_WAIT_SECONDS
        while time.monotonic() < end:
            try:
                said_s = os.stat(path).st_mtime
            except OSError:
                return
            if time.time() - said_s > _STALE_SECONDS:
                Path(path).unlink(missing_ok=True)
                return
            time.sleep(0.001)

    def _share(self, users: int) -> int:
        """Say how many bytes may come here before counting again, while others do likewise.

        A part of what is left to the limit: however many processes join one after another, their
        parts are less than all of it, up to some thousand. Or of the slack, where that is more.
        """
        left = max((self._limit or 0) - self._used, 0)
        return max(left // (_UNSEEN_SHARE * users), self._slack // (2 * users))

    def _remove(self, shards: Sequence[Kept], excess: int) -> int:
        """Remove shards until so many bytes are gone, or only held ones are left."""
        self._clear_words()
        freed, gone = 0, set()  # of keys that need not be looked at again
        for _ in range(_ROUNDS):
            left = [shard for shard in shards if shard.key not in gone]
            chosen = leaving(left, held_keys(self._users), excess - freed)
            if not chosen:
                break
            words: list[Path] = []
            try:
                said = []
                for shard in chosen:
                    gone.add(shard.key)  # or another process removes it, and says so
                    if write_new(self._going / shard.key.hex(), ""):
                        words.append(self._going / shard.key.hex())
                        said.append(shard)
                looked = -_LOOKED_SECONDS
                held: set[bytes] = set()
                for shard in said:
                    if time.monotonic() - looked >= _LOOKED_SECONDS:
                        looked, held = time.monotonic(), held_keys(self._users)
                    if shard.key not in held:
                        freed += remove_shard(shard)
                        self.removed += 1
            finally:
                for word in words:
                    word.unlink(missing_ok=True)
        return freed

    def _clear_words(self) -> None:
        """Remove what those said who were killed before they removed a shard."""
        own_folder(self._going)
        for name in os.listdir(self._going):
            with contextlib.suppress(FileNotFoundError):
                path = self._going / name
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()

    def _check_disk(self, what: str, size: int) -> None:
        if space_unchecked():
            return
        free, total = self._disk()
        if size > free:
            free += self._remove(count(self._root).shards, size - free)
        if size > free:
            raise InsufficientCacheSpaceError(_full(self._root, what, size, free))
        self._warn_of_headroom(free - size, total)

    def _disk(self) -> tuple[int, int]:
        """Give the free bytes of the disk, and all of them."""
        make_directory(self._root)  # somebody may have removed it
        status = os.statvfs(self._root)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize

    def _warn_of_headroom(self, left: int, total: int) -> None:
        if left * _LEAST_HEADROOM < total and not self._warned:
            self._warned = True
            warnings.warn(
                f"shard cache {str(self._root)!r}: of the disk's {total:,} bytes {left:,} stay "
                f"free, less than 5 %; set io_options.cache.limit_bytes, or {SPACE_VARIABLE}=1",
                RuntimeWarning,
                stacklevel=2,
            )


def _full(root: Path, what: str, need: int, have: int) -> str:
    return (
        f"shard cache {str(root)!r}: {what} needs {need:,} bytes, and the disk has {have:,} free; "
        "free some, set a lower io_options.cache.limit_bytes, or name a root on another disk "
        f"({SPACE_VARIABLE}=1 where the disk tells wrong)"
    )
