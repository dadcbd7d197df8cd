"""A pool of pieces that wait for a row: by size, and by the order in which they came.

A candidate is known by its arrival, a number that rises with every document that comes. The pool
is sorted by size and, within one, the oldest last: the last entry that fits is the longest that
does, and the oldest of these. An order of arrival stands beside it; in it, who has left is
skipped when met.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import Units

Candidate = tuple[int, int, int, int]
"""Size, and seq, start and length of the piece."""

BITS = 44
"""Bits of an entry of ``by_size`` below the size."""

_HALF = 1 << (BITS - 1)
_BELOW = (1 << BITS) - 1


@dataclass(slots=True)
class Candidates:
    """The pool.

    by_size: (size << 44 | 2**43 - arrival) of each, sorted; arrivals count from 1.
    found: each by arrival, the oldest first.
    waiting: arrivals, the oldest first; some have left.
    arrivals: the number of the latest.
    total: the sizes of all together.
    """

    by_size: list[int] = field(default_factory=list)
    found: dict[int, Candidate] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    arrivals: int = 0
    total: int = 0

    def __len__(self) -> int:
        return len(self.by_size)

    def add(self, size: int, seq: int, start: int, length: int) -> None:
        """Take a piece, the youngest."""
        self.arrivals = arrival = self.arrivals + 1
        self.waiting.append(arrival)
        insort(self.by_size, size << BITS | _HALF - arrival)
        self.found[arrival] = size, seq, start, length
        self.total += size

    def shorten(self, at: int, size: int, seq: int, start: int, length: int) -> None:
        """Let a piece stand for a longer one at a place in ``by_size``; it is as old as that."""
        entry = self.by_size.pop(at)
        insort(self.by_size, size << BITS | entry & _BELOW)
        self.found[_HALF - (entry & _BELOW)] = size, seq, start, length
        self.total -= (entry >> BITS) - size

    def longest(self, room: int) -> int:
        """Find the longest that fits, of these the oldest: a place in ``by_size``, -1 for none."""
        return bisect_left(self.by_size, (room + 1) << BITS) - 1

    def at(self, at: int) -> Candidate:
        """Return the candidate at a place in ``by_size``."""
        return self.found[_HALF - (self.by_size[at] & _BELOW)]

    def take(self, at: int, row: list[int]) -> int:
        """Move the candidate at a place in ``by_size`` into a row; return its size."""
        candidate = self.found.pop(_HALF - (self.by_size.pop(at) & _BELOW))
        row += candidate[1:]
        self.total -= candidate[0]
        return candidate[0]

    def take_arrival(self, arrival: int, row: list[int]) -> int:
        """Move a candidate into a row; return its size."""
        entry = self.found[arrival][0] << BITS | _HALF - arrival
        return self.take(bisect_left(self.by_size, entry), row)

    def oldest(self) -> int:
        """Return the arrival of the oldest candidate; there must be one."""
        if len(self.waiting) > 2 * len(self.found) + 1024:  # behind an old one many have left
            self.waiting = deque(self.found)
        while self.waiting[0] not in self.found:
            self.waiting.popleft()
        return self.waiting[0]

    def written(self) -> tuple[Units, dict[str, NDArray[np.int64]]]:
        """Write the pool down: its pieces from the oldest on, their sizes and ages in arrivals."""
        count = len(self.found)
        numbers = chain.from_iterable(self.found.values())
        table = np.fromiter(numbers, np.int64, 4 * count).reshape(count, 4)
        sizes, seq, start, length = np.ascontiguousarray(table.T)
        units = Units.single(
            seq=seq,
            start=start,
            length=length,
            trigger=np.zeros(count, np.int64),
        )
        ages = self.arrivals - np.fromiter(self.found, np.int64, count)
        return units, {"sizes": sizes, "ages": ages}

    @classmethod
    def read(cls, units: Units, sizes: NDArray[np.int64], ages: NDArray[np.int64]) -> Candidates:
        """Rebuild the pool that was written down."""
        pool = cls()
        if not len(units):
            return pool
        latest = int(ages.max()) + 1
        pool.waiting.extend((latest - ages).tolist())
        candidates = zip(
            sizes.tolist(),
            units.seq.tolist(),
            units.start.tolist(),
            units.length.tolist(),
            strict=True,
        )
        pool.found = dict(zip(pool.waiting, candidates, strict=True))
        pool.by_size = sorted(
            one[0] << BITS | _HALF - arrival for arrival, one in pool.found.items()
        )
        pool.arrivals, pool.total = latest, int(sizes.sum())
        return pool
