"""Who of this process holds which shard, and the word of it that other processes read."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from zephon.errors import CacheError, CacheInUseError
from zephon.io.shard_cache.local_shard import LocalShard
from zephon.io.shard_cache.root import USERS
from zephon.io.shard_cache.users import UserFile


class Holds:
    """The holds of one process on one root; for all threads.

    Args:
        root: of the cache.
        shared: the options that all of its users must agree on.
    """

    def __init__(self, root: Path, shared: str) -> None:
        self._root = root
        self._shared = shared
        self._lock = threading.Lock()
        self._shards: set[LocalShard] = set()
        self._user: UserFile | None = None

    def open(self) -> None:
        """Say that this process uses the cache; the first ``take`` does so too.

        Raises:
            CacheInUseError: another process uses the cache with other options.
            CacheError: the root cannot be written.
        """
        with self._lock:
            self._user = self._user or self._made()

    def take(self, shard: LocalShard) -> None:
        """Count a hold, and tell other processes of the first one.

        Raises:
            CacheError: as ``open``.
        """
        with self._lock:
            if shard.holds:
                shard.holds += 1
                return
            if self._user is None:
                self._user = self._made()
            shard.slot = self._user.hold(shard.names.key)
            shard.holds = 1
            self._shards.add(shard)

    def release(self, shard: LocalShard) -> None:
        """Take back one ``take``."""
        with self._lock:
            if shard not in self._shards:
                return  # it was taken before a fork
            shard.holds -= 1
            if not shard.holds:
                self._shards.remove(shard)
                if self._user is not None:
                    self._user.release(shard.slot)

    def renew(self) -> None:
        """Say all of it anew if somebody removed this process's word, with the whole root or not.

        Raises:
            CacheError: the root cannot be written.
        """
        with self._lock:
            if self._user is None or self._user.path.exists():
                return
            self._user.close()
            self._user = self._made()
            for shard in self._shards:
                shard.slot = self._user.hold(shard.names.key)

    def close(self) -> None:
        """Say that this process uses the cache no more, until it holds a shard again."""
        with self._lock:
            if self._user is not None:
                self._user.close()
            self._user = None

    def forget(self) -> None:
        """Leave all holds to the process from which this one was forked."""
        self._lock = threading.Lock()
        self._shards = set()
        self.close()

    def _made(self) -> UserFile:
        try:
            return UserFile(self._root / USERS, self._shared)
        except CacheInUseError:
            raise
        except OSError as exc:
            raise CacheError(
                f"shard cache: {str(self._root)!r} must be a directory that this process can "
                f"write, but {exc.strerror or exc}; name another io_options.cache.root"
            ) from exc


class Hold:
    """A shard that stays where it is until this is closed; a context manager.

    path: of the whole shard, which nobody may write to. mtime_ns: the file's time there, the same
    on every machine.
    """

    __slots__ = ("_holds", "mtime_ns", "path", "shard")

    def __init__(self, holds: Holds, shard: LocalShard) -> None:
        """Take over a hold that was taken."""
        self._holds: Holds | None = holds
        self.shard = shard
        self.path = shard.path
        self.mtime_ns = shard.names.mtime_ns

    def close(self) -> None:
        """Let the shard go; again does nothing."""
        holds, self._holds = self._holds, None
        if holds is not None:
            holds.release(self.shard)

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
