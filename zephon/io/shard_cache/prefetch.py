"""Fetches shards before their turn, in the order in which they are going to be read.

It stays at most so many shards ahead of the reader, holds them until their turn, so that nothing
removes them, and takes only room that no held shard has. It decides nothing about rows: without it
the same shards are read, later. What goes wrong ahead of its turn is forgotten: the reader asks
again when the shard's turn comes, and hears of it then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from zephon.errors import ZephonError
from zephon.io.shard_cache.cache import Hold, ShardCache
from zephon.io.storage.place import Place, StoredFile

_ROOM_SECONDS = 1.0  # before looking for room again; another process may have let a shard go


@dataclass(frozen=True, slots=True)
class Wanted:
    """A shard that is going to be read: what ``ShardCache.hold`` takes."""

    dataset: str
    place: Place
    file: StoredFile
    hashes: Mapping[str, str] = field(default_factory=dict)


class Prefetcher:
    """Holds shards ahead of their turn; a context manager, whose end lets all of them go.

    Args:
        cache: where they come to.
        order: of all that is read; may be endless, and is asked for no more than is needed.
        buffer_size: shards ahead of the reader, at most.
        parallelism: shards under way at a time, at most.
    """

    def __init__(
        self, cache: ShardCache, order: Iterable[Wanted], *, buffer_size: int, parallelism: int
    ) -> None:
        self._cache = cache
        self._order = iter(order)
        self._buffer_size = buffer_size
        self._behind = parallelism  # turns may come a little out of order
        self._changed = threading.Condition()
        self._asking = threading.Lock()  # whoever asks the order, which may take its time
        self._next = 0  # position of the next shard to begin with
        self._reached = -1
        self._held: dict[int, Hold] = {}
        self._closed = self._ended = False
        self.failures = 0
        for number in range(max(min(parallelism, buffer_size), 1)):
            name = f"zephon-ahead-{number}"
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def reached(self, position: int) -> None:
        """Note that a shard's turn has come; its reader holds it by itself from here on.

        Turns may come in another order, and some not at all: what lies ``parallelism`` shards
        behind the furthest one is let go.

        Args:
            position: of the shard in the order.
        """
        with self._changed:
            self._reached = max(self._reached, position)
            past = [each for each in self._held if self._is_past(each)]
            left = [self._held.pop(each) for each in past]
            self._changed.notify_all()
        for hold in left:
            hold.close()

    def close(self) -> None:
        """Begin with no other shard, and let all go; what is under way ends by itself."""
        with self._changed:
            self._closed = True
            left = list(self._held.values())
            self._held.clear()
            self._changed.notify_all()
        for hold in left:
            hold.close()

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            found = self._ask()
            if found is None:
                return
            position, wanted = found
            try:
                hold = self._bring(position, wanted)
            except ZephonError:
                hold = None
                with self._changed:
                    self.failures += 1
            if hold is not None:
                self._keep(position, hold)

    def _ask(self) -> tuple[int, Wanted] | None:
        """Give the next shard as soon as it is near enough; None at the end."""
        with self._asking:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._is_near())
                if self._closed or self._ended:
                    return None
                position = self._next
                self._next += 1
            wanted = next(self._order, None)
            if wanted is None:
                self._ended = True
                return None
            return position, wanted

    def _bring(self, position: int, wanted: Wanted) -> Hold | None:
        """Hold a shard as soon as there is room; None if its turn has passed before."""
        while True:
            with self._changed:
                if self._closed or self._is_past(position):
                    return None
            hold = self._cache.hold_ahead(wanted.dataset, wanted.place, wanted.file, wanted.hashes)
            if hold is not None:
                return hold
            with self._changed:
                self._changed.wait(_ROOM_SECONDS)

    def _keep(self, position: int, hold: Hold) -> None:
        with self._changed:
            if not self._closed and not self._is_past(position):
                self._held[position] = hold
                return
        hold.close()

    def _is_near(self) -> bool:
        return self._next <= self._reached + self._buffer_size

    def _is_past(self, position: int) -> bool:
        return position <= self._reached - self._behind
