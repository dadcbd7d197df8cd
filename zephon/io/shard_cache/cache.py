"""The shard cache: gives a local path for a shard of a far place, and keeps the shard there.

A process has one cache a root, for all its threads, readers and datasets. ``hold`` costs some 20
microseconds where the shard is there: a look at its size and time, and a word to other processes
that it is in use. What is held is never removed by a cache, here or in another process of this
machine; a disk that several machines share may lose it, so whoever reads goes by ``reading``.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from zephon.errors import CacheInUseError
from zephon.io.shard_cache.arrivals import Arrivals
from zephon.io.shard_cache.fetching import Source
from zephon.io.shard_cache.holds import Hold, Holds
from zephon.io.shard_cache.local_shard import LocalShard
from zephon.io.shard_cache.names import folder_name, names_of
from zephon.io.shard_cache.room import Room
from zephon.io.shard_cache.root import open_root
from zephon.io.shard_cache.settings import CacheSettings
from zephon.io.shard_cache.wanted_hashes import WantedHashes
from zephon.io.storage.place import Place, StoredFile

_PASSING = (errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EMFILE, errno.ENFILE)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What a cache did so far in this process.

    found: holds of shards that were there. changed: shards that were there, but not as they came.
    fetched: shards that it brought. bytes: of them. removed: shards that it removed.
    """

    found: int
    changed: int
    fetched: int
    bytes: int
    removed: int


class ShardCache:
    """One root, in one process; get it by ``opened``. Any number of threads may call."""

    _open: ClassVar[dict[Path, ShardCache]] = {}
    _open_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, settings: CacheSettings) -> None:
        self.settings = settings
        open_root(settings.root, ours=settings.ours)
        self._begin()
        self._holds.open()
        _ALL.add(self)

    @classmethod
    def opened(cls, settings: CacheSettings) -> ShardCache:
        """Give this process's cache at a root, opened if need be.

        Raises:
            CacheInUseError: this process or another one has it open with other options.
            CacheError: the root cannot be used; says which path, and why.
        """
        with cls._open_lock:
            found = cls._open.get(settings.root)
            if found is not None and found.settings == settings:
                return found
            if found is not None and found.settings.shared != settings.shared:
                raise CacheInUseError(
                    f"shard cache: {str(settings.root)!r} is used by this process with "
                    f"{found.settings.shared}, and here with {settings.shared}; give both the "
                    "same options, or name another io_options.cache.root"
                )
            made = cls(settings)
            cls._open[settings.root] = made
            return made

    def hold(
        self,
        dataset: str,
        place: Place,
        file: StoredFile,
        hashes: Mapping[str, str] | None = None,
    ) -> Hold:
        """Have a shard on the local disk, whole, and keep it there until the hold is closed.

        Args:
            dataset: its name.
            place: where the shard lies.
            file: the shard there.
            hashes: what an index tells of it, by algorithm, in hexadecimal.

        Raises:
            InsufficientCacheSpaceError: it is larger than the limit, or the disk is full.
            CacheError: the root cannot be written.
            AccessError, ShardError, StorageError: its place does not give it.
        """
        found = self._hold(dataset, place, file, hashes, must=True)
        assert found is not None
        return found

    def hold_ahead(
        self,
        dataset: str,
        place: Place,
        file: StoredFile,
        hashes: Mapping[str, str] | None = None,
    ) -> Hold | None:
        """Do as ``hold``, but give None where only shards that are held could make room."""
        return self._hold(dataset, place, file, hashes, must=False)

    def path_of(self, dataset: str, place: Place, file: StoredFile) -> tuple[str, int]:
        """Say where a shard lies once it is held, and its time there; nothing is fetched."""
        known = self._known(dataset, place, file)
        return known.path, known.names.mtime_ns

    def reading(
        self,
        dataset: str,
        place: Place,
        file: StoredFile,
        read: Callable[[str], _T],
        hashes: Mapping[str, str] | None = None,
    ) -> _T:
        """Read a shard, again if it was removed or changed meanwhile, or its disk failed.

        Args:
            dataset: its name.
            place: where the shard lies.
            file: the shard there.
            read: is given its path; may be called again after an error.
            hashes: as for ``hold``.

        Raises:
            Exception: whatever ``hold`` raises, or ``read`` did of a shard as it should be.
        """
        settings = self.settings
        left, pause = settings.open_attempts, settings.open_backoff_s
        while True:
            left -= 1
            with self.hold(dataset, place, file, hashes) as held:
                try:
                    return read(held.path)
                except Exception as exc:
                    if left < 1 or (held.shard.is_there() and not _may_pass(exc)):
                        raise
            time.sleep(pause)
            pause = min(2 * pause, settings.open_most_backoff_s)

    def check_planned(self, dataset: str, place: Place, files: Sequence[StoredFile]) -> None:
        """Refuse a dataset that the cache cannot serve, before anything is fetched.

        Raises:
            InsufficientCacheSpaceError: a shard is larger than the limit; or there is no limit,
                and the disk has no room for what is not here yet.
        """
        missing = 0
        for file in files:
            self._room.check_fits(f"dataset {dataset!r}, shard {file.name!r}", file.size)
            if not self._known(dataset, place, file).is_there():
                missing += file.size
        self._room.check_planned(missing)

    def counts(self) -> CacheCounts:
        """Report what was done in this process, at one moment."""
        came = self._arrivals.counts
        with self._lock:
            return CacheCounts(
                self._found, self._changed, came.shards, came.bytes, self._room.removed
            )

    def close(self) -> None:
        """Say that this process uses the cache no more; another ``opened`` begins anew."""
        with self._open_lock:
            if self._open.get(self.settings.root) is self:
                del self._open[self.settings.root]
        self._holds.close()

    def _begin(self) -> None:
        """Begin with nothing held: also in a fork, whose parent's holds and threads are not its."""
        self._lock = threading.Lock()
        self._found = self._changed = 0
        self._shards: dict[tuple[str, str, StoredFile], LocalShard] = {}
        self._wanted = WantedHashes(self.settings.validate_hash)
        self._room = Room(self.settings)
        self._holds = Holds(self.settings.root, self.settings.shared)
        self._end = weakref.finalize(self, self._holds.close)
        self._arrivals = Arrivals(self.settings, self._room, self._holds)

    def _hold(
        self,
        dataset: str,
        place: Place,
        file: StoredFile,
        hashes: Mapping[str, str] | None,
        *,
        must: bool,
    ) -> Hold | None:
        shard = self._known(dataset, place, file)
        self._holds.take(shard)
        self._room.wait_if_going(shard.names.key)  # whoever removes may have looked before
        hold = Hold(self._holds, shard)
        try:
            wanted = self._wanted.of(dataset, file.name, hashes)
            if self._is_ready(shard, wanted):
                return hold
            if self._arrivals.bring(shard, Source(dataset, place, file, wanted), must=must):
                return hold
        except BaseException:
            hold.close()
            raise
        hold.close()
        return None

    def _known(self, dataset: str, place: Place, file: StoredFile) -> LocalShard:
        url = place.url
        found = self._shards.get((dataset, url, file))
        if found is None:
            folder = self.settings.root / folder_name(dataset, url)
            made = LocalShard(folder, names_of(folder.name, file), file)
            with self._lock:
                found = self._shards.setdefault((dataset, url, file), made)
        return found

    def _is_ready(self, shard: LocalShard, wanted: Mapping[str, str]) -> bool:
        """Tell whether a shard is there as it came, and write down that it is used."""
        ready = shard.is_there()
        changed = not ready and shard.exists()
        if ready and not shard.has_hashes(wanted):
            ready, changed = False, True
        with self._lock:
            self._found += ready
            self._changed += changed
        if ready:
            shard.touch()
        return ready


_ALL: weakref.WeakSet[ShardCache] = weakref.WeakSet()


def _may_pass(exc: BaseException | None) -> bool:
    """Tell whether a disk may do better the next time."""
    while exc is not None:
        if isinstance(exc, OSError) and exc.errno in _PASSING:
            return True
        exc = exc.__cause__
    return False


def _in_child() -> None:
    ShardCache._open_lock = threading.Lock()  # a thread of the parent may have had it
    for cache in list(_ALL):
        cache._end.detach()
        cache._holds.forget()
        cache._begin()


os.register_at_fork(after_in_child=_in_child)
