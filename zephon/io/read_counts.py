"""How many row groups a reader decoded, or had no need to."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What a reader did so far; a row group that left the cache and came again counts again.

    read: row groups that were decoded, whole or as far as a filter needed. skipped: row groups of
    which nothing was read, since the file's statistics prove that no row passes; each once, as
    long as that is remembered. emptied: of those read, the ones of which no row passed. bytes: of
    all that was decoded.
    """

    read: int = 0
    skipped: int = 0
    emptied: int = 0
    bytes: int = 0


class ReadCounter:
    """Adds up counts; any number of threads may add at once.

    >>> counter = ReadCounter()
    >>> counter.add(read=1, bytes=10)
    >>> counter.add(skipped=1)
    >>> counter.counts()
    ReadCounts(read=1, skipped=1, emptied=0, bytes=10)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = ReadCounts()

    def add(self, *, read: int = 0, skipped: int = 0, emptied: int = 0, bytes: int = 0) -> None:  # noqa: A002
        """Add to the counts."""
        with self._lock:
            old = self._counts
            self._counts = ReadCounts(
                old.read + read, old.skipped + skipped, old.emptied + emptied, old.bytes + bytes
            )

    def counts(self) -> ReadCounts:
        """Report what was done, at one moment."""
        return self._counts
