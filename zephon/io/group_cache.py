"""Decoded row groups, shared by all threads and bounded by bytes.

The least recently used group goes first; a spill, where there is one, takes it and may give it
back. Each group is decoded by one thread while the others that want it wait: without that, two
workers decode nearly every group twice. The bound is the limit, or one group if that is larger:
neighbouring rows are mostly asked for one after another, and a group that is too large to keep
would be decoded again for each of them. Threads that read two such groups in turn still decode
them again and again. What a new group pushes out is answered from memory until it lies in the
spill, and held beside the limit for so long.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa

RELEASE_BYTES = 24 << 20

T = TypeVar("T")


class Lower(Protocol):
    """What stands below memory: takes what leaves it, and may have what is wanted."""

    def load(self, key: Any, /) -> Any | None:
        """Give the value of a key, or None; never raises for a value that is lost."""
        ...

    def store(self, key: Any, value: Any, /) -> None:
        """Take a value, or not."""
        ...


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What a cache did so far.

    hits: answers that were there, or on their way in another thread.
    misses: answers that had to be decoded.
    bytes: held now.
    groups: held now.
    returned: answers that came back from the spill.
    """

    hits: int
    misses: int
    bytes: int
    groups: int
    returned: int = 0


class GroupCache:
    """Keeps what ``get`` loaded until its bytes are needed for something newer.

    A value larger than the limit is kept, alone, until the next one is loaded.

    >>> cache = GroupCache(limit_bytes=10)
    >>> cache.get("a", lambda: b"12345678", len), cache.get("a", lambda: b"", len)
    (b'12345678', b'12345678')
    >>> cache.counts()
    CacheCounts(hits=1, misses=1, bytes=8, groups=1, returned=0)
    """

    def __init__(self, limit_bytes: int, lower: Lower | None = None) -> None:
        if limit_bytes < 0:
            raise ValueError(f"GroupCache: limit_bytes must be at least 0, got {limit_bytes}")
        self._limit = limit_bytes
        self._lower = lower
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._leaving: dict[Hashable, Any] = {}
        self._loading: dict[Hashable, _Loading] = {}
        self._bytes = self._hits = self._misses = self._returned = self._unreleased = 0

    def get(self, key: Hashable, load: Callable[[], T], size: Callable[[T], int]) -> T:
        """Give the value of a key, loading it if nobody has.

        Args:
            key: equal keys mean equal values.
            load: makes the value; may raise, then nothing is kept and another thread that
                waited tries for itself.
            size: bytes that the value holds.
        """
        mine: _Loading | None = None
        try:
            while True:
                with self._lock:
                    if key in self._held:
                        self._held.move_to_end(key)
                        self._hits += 1
                        return self._held[key][0]
                    if key in self._leaving:
                        self._hits += 1
                        return self._leaving[key]
                    other = self._loading.get(key)
                    if other is None:
                        mine = _Loading()
                        self._loading[key] = mine
                        break
                with other.done:
                    pass
                with self._lock:
                    if self._loading.get(key) is other:  # an interrupt kept its owner from it
                        del self._loading[key]
                    if other.loaded:
                        self._hits += 1
                        return other.value
            value, leaving = self._load(key, mine, load, size)
        finally:
            # An error or an interrupt too, wherever it strikes: those who wait must wake up. This
            # one call is all that must happen; whoever comes next tidies up.
            if mine is not None:
                mine.done.release()
        self._let_go(leaving)
        return value

    def held(self, keys: Sequence[Hashable]) -> list[bool]:
        """Say of each key whether its value is in memory now; another thread may change that."""
        with self._lock:
            return [key in self._held or key in self._leaving for key in keys]

    def counts(self) -> CacheCounts:
        """Report hits, misses and what is held, at one moment."""
        with self._lock:
            return CacheCounts(
                self._hits, self._misses, self._bytes, len(self._held), self._returned
            )

    @property
    def lower(self) -> Lower | None:
        """What stands below memory."""
        return self._lower

    def clear(self) -> None:
        """Let go of everything held; counts of hits and misses stay."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def _load(
        self, key: Hashable, mine: _Loading, load: Callable[[], T], size: Callable[[T], int]
    ) -> tuple[T, list[tuple[Hashable, Any]]]:
        """Load a value and hold it; return it, and those that have to leave for it."""
        try:
            value = None if self._lower is None else self._lower.load(key)
            returned = value is not None
            if value is None:
                with self._lock:
                    self._misses += 1
                value = load()
            weight = size(value)
            mine.value, mine.loaded = value, True
            return value, self._keep(key, value, weight, returned=returned)
        finally:
            with self._lock:
                del self._loading[key]

    def _keep(
        self, key: Hashable, value: object, weight: int, *, returned: bool
    ) -> list[tuple[Hashable, Any]]:
        """Hold a value; return those that have to leave for it."""
        leaving: list[tuple[Hashable, Any]] = []
        with self._lock:
            self._held[key] = (value, weight)
            self._bytes += weight
            while self._bytes > self._limit and len(self._held) > 1:
                oldest, (gone, freed) = self._held.popitem(last=False)
                self._bytes -= freed
                if self._lower is not None:
                    self._leaving[oldest] = gone
                    leaving.append((oldest, gone))
            self._returned += returned
            self._unreleased += 0 if returned else weight
            release = self._unreleased >= RELEASE_BYTES
            if release:
                self._unreleased = 0
        if release:
            # Arrow keeps what decoding needed for a moment: 50 to 75 MB after 200 MB of text.
            pa.default_memory_pool().release_unused()
        return leaving

    def _let_go(self, leaving: list[tuple[Hashable, Any]]) -> None:
        """Hand values to the spill, one after another; each is let go of as soon as it is there."""
        names = [key for key, _ in leaving]
        leaving.reverse()
        try:
            while leaving and self._lower is not None:
                key, value = leaving.pop()
                self._lower.store(key, value)
                del value
                with self._lock:
                    self._leaving.pop(key, None)
        finally:  # an interrupt too: nobody else takes them out
            with self._lock:
                for key in names:
                    self._leaving.pop(key, None)


class _Loading:
    """A value on its way: a lock until it is there, and what came of it."""

    __slots__ = ("done", "loaded", "value")

    def __init__(self) -> None:
        self.done = threading.Lock()  # an event costs 4 µs
        self.done.acquire()
        self.loaded = False
        self.value: Any = None
