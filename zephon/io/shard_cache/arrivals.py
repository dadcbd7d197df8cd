"""How shards come, for a whole process: each once, however many threads wait for it."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass

from zephon.io.shard_cache.election import Claim
from zephon.io.shard_cache.fetching import Fetch, Source, Unwelcome
from zephon.io.shard_cache.flights import Flight
from zephon.io.shard_cache.holds import Holds
from zephon.io.shard_cache.local_shard import LocalShard
from zephon.io.shard_cache.names import part_name
from zephon.io.shard_cache.owners import this_process
from zephon.io.shard_cache.progress import DownloadProgress
from zephon.io.shard_cache.room import Room
from zephon.io.shard_cache.root import dataset_folder
from zephon.io.shard_cache.settings import CacheSettings

_PATIENCE = 1.5  # places give up after the time-out itself, and say more
_numbers = itertools.count()  # of parts: two of one process never have one name


@dataclass(slots=True)
class ArrivalCounts:
    """Shards that this process fetched, and their bytes."""

    shards: int = 0
    bytes: int = 0


class Arrivals:
    """Brings shards to one root; any number of threads may call."""

    def __init__(self, settings: CacheSettings, room: Room, holds: Holds) -> None:
        self._settings = settings
        self._room = room
        self._holds = holds
        self._progress = DownloadProgress()
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self.counts = ArrivalCounts()

    def bring(self, shard: LocalShard, source: Source, *, must: bool) -> bool:
        """Fetch a shard, or wait for whoever does.

        Args:
            shard: is held, so that it stays once it has come.
            source: where it lies, and the hashes to check.
            must: somebody waits for it; else it comes only where there is room.

        Returns:
            whether it came.

        Raises:
            CacheError: the disk does not take it, or the limit is too low.
            AccessError, ShardError, StorageError: its place does not give it.
        """
        self._room.check_fits(source.label, source.file.size)
        while True:
            flight = self._flight(shard, source, must=must)
            try:
                with self._progress.waiting(must):
                    flight.wait()
            except BaseException:
                self._landed(shard, flight)
                raise
            if flight.error is None:
                return True
            if not isinstance(flight.error, Unwelcome):
                raise flight.error
            if not must:
                return False

    def _flight(self, shard: LocalShard, source: Source, *, must: bool) -> Flight:
        """Give the flight that is on its way, or one that begins now."""
        with self._lock:
            flight = self._flights.get(shard.path)
            if flight is not None:
                return flight
            flight = Flight(source.label, _PATIENCE * self._settings.timeout_s)
            self._flights[shard.path] = flight
        flight.start(
            lambda: self._fly(flight, shard, source, must=must),
            lambda: self._landed(shard, flight),
        )
        return flight

    def _landed(self, shard: LocalShard, flight: Flight) -> None:
        with self._lock:
            if self._flights.get(shard.path) is flight:
                del self._flights[shard.path]

    def _fly(self, flight: Flight, shard: LocalShard, source: Source, *, must: bool) -> None:
        settings = self._settings
        dataset_folder(settings.root, source.dataset, source.place.url)
        self._holds.renew()
        owner = f"{this_process()}.{next(_numbers):x}"
        part = part_name(shard.names, source.file.size, owner)
        claim = Claim(
            str(shard.folder / shard.names.claim),
            part,
            heard=flight.heard,
            still_s=settings.timeout_s / 2,
        )
        try:
            if not claim.wait(shard.is_there):
                return
            with self._progress.fetching(source.file.size) as moved:

                def heard(count: int) -> None:
                    flight.heard()
                    moved(count)

                def between() -> None:
                    flight.heard()
                    claim.renew()

                Fetch(
                    source,
                    str(shard.folder),
                    shard.names,
                    str(shard.folder / part),
                    room=self._room,
                    attempts=settings.attempts,
                    timeout_s=settings.timeout_s,
                    moved=heard,
                    between=between,
                ).run(must=must)
        finally:
            claim.release()
        shard.came()
        with self._lock:
            self.counts.shards += 1
            self.counts.bytes += source.file.size
