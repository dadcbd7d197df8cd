"""Decoded row groups, shared by all threads and bounded by bytes.

The least recently used group goes first. Each group is decoded by one thread while the others that
want it wait: without that, two workers decode nearly every group twice. The bound is the limit, or
one group if that is larger: neighbouring rows are mostly asked for one after another, and a group
that is too large to keep would be decoded again for each of them. Threads that read two such groups
in turn still decode them again and again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

RELEASE_BYTES = 24 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What a cache did so far.

    hits: answers that were there, or being decoded by another thread.
    misses: answers that had to be decoded.
    bytes: held now.
    groups: held now.
    """

    hits: int
    misses: int
    bytes: int
    groups: int


class GroupCache:
    """Keeps what ``get`` loaded until its bytes are needed for something newer.

    A value larger than the limit is kept, alone, until the next one is loaded.

    >>> cache = GroupCache(limit_bytes=10)
    >>> cache.get("a", lambda: b"12345678", len), cache.get("a", lambda: b"", len)
    (b'12345678', b'12345678')
    >>> cache.counts()
    CacheCounts(hits=1, misses=1, bytes=8, groups=1)
    """

    def __init__(self, limit_bytes: int) -> None:
        if limit_bytes < 0:
            raise ValueError(f"GroupCache: limit_bytes must be at least 0, got {limit_bytes}")
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._loading: dict[Hashable, _Loading] = {}
        self._bytes = self._hits = self._misses = self._unreleased = 0

    def get(self, key: Hashable, load: Callable[[], T], size: Callable[[T], int]) -> T:
        """Give the value of a key, loading it if nobody has.

        Args:
            key: equal keys mean equal values.
            load: makes the value; may raise, then nothing is kept and another thread that
                waited tries for itself.
            size: bytes that the value holds.
        """
        while True:
            with self._lock:
                if key in self._held:
                    self._held.move_to_end(key)
                    self._hits += 1
                    return self._held[key][0]
                other = self._loading.get(key)
                if other is None:
                    mine = self._loading[key] = _Loading()
                    self._misses += 1
                    break
            other.done.wait()
            if other.loaded:
                with self._lock:
                    self._hits += 1
                return other.value
        return self._load(key, mine, load, size)

    def counts(self) -> CacheCounts:
        """Report hits, misses and what is held, at one moment."""
        with self._lock:
            return CacheCounts(self._hits, self._misses, self._bytes, len(self._held))

    def clear(self) -> None:
        """Let go of everything held; counts of hits and misses stay."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def _load(
        self, key: Hashable, mine: _Loading, load: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        try:
            value = load()
            weight = size(value)
            mine.value, mine.loaded = value, True
            self._keep(key, value, weight)
            return value
        finally:  # an error or an interrupt too: those who wait must wake up
            with self._lock:
                del self._loading[key]
            mine.done.set()

    def _keep(self, key: Hashable, value: object, weight: int) -> None:
        with self._lock:
            self._held[key] = (value, weight)
            self._bytes += weight
            while self._bytes > self._limit and len(self._held) > 1:
                _, (_, freed) = self._held.popitem(last=False)
                self._bytes -= freed
            self._unreleased += weight
            release = self._unreleased >= RELEASE_BYTES
            if release:
                self._unreleased = 0
        if release:
            # Arrow keeps what decoding needed for a moment: 50 to 75 MB after 200 MB of text.
            pa.default_memory_pool().release_unused()


class _Loading:
    """A value on its way: who waits for it, and what came of it."""

    __slots__ = ("done", "loaded", "value")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.loaded = False
        self.value: Any = None
