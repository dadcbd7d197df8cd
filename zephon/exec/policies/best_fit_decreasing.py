"""The fullest rows of whole documents: from a bounded look-ahead, the longest that fits first.

Documents wait in a pool. Once it holds ``candidate_pool_size`` of them and a row's worth, one row
is made: ever the longest document that fits, of equally long ones the oldest. Row by row these are
the rows of first fit decreasing, from which best fit decreasing differs little. Where the last one
would leave more than a thousandth of the row free and nothing else fits, two are looked for that
together leave less. At the end of the lane rows are made in the same way until the pool is empty.

A document that has waited for ``max_candidate_age`` arrivals begins the next row, the oldest
first: it waits for no more rows than there are older ones in the pool.

With documents of 275 tokens on average and rows of 2,049:

    pool    full     microseconds a document    longest wait in documents
      64    99.92 %  1.5                          330
     256    99.97 %  1.5                        1,290
    1024    99.98 %  1.8                        4,570

Without the search for two it would be 99.80 % over 1,024. Rows of 513 tokens are 99.6 % full
(98.8 % without), at 6 microseconds. Lengths spread evenly up to a row's, two to a row, fill 99.4 %,
at 8; there the search is not worth its time.

Not where the order of documents matters: half of them leave within ten arrivals, long ones first,
and short ones wait for thousands, so that the end of the data is short documents. ``best_fit``
keeps them closer together. Not with a low ``max_sequences_per_bin`` either: it leaves rows open
whatever is tried. Nothing helps if long documents have too few short ones to go with.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from zephon.exec.policies.candidates import BITS, Candidates
from zephon.exec.policies.placed_rows import PlacedRows
from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Units
from zephon.exec.policies.whole_documents import (
    Thrown,
    WholeDocuments,
    read_thrown,
    thrown_numbers,
)

_LOOK = 256  # entries looked at above half of the room: more costs time and fills no better


@dataclass(slots=True)
class Waiting(Thrown):
    """The documents that wait for a row."""

    pool: Candidates = field(default_factory=Candidates)


class BestFitDecreasing(WholeDocuments[Waiting]):
    """The longest that fits first, out of a pool; two to close a row where one does not.

    Args:
        max_length: what the documents of a row take together at most, >= 1.
        candidate_pool_size: documents that wait before a row is made of them, >= 1.
        max_candidate_age: arrivals after which a document begins the next row, >= 1; None for
            four times the pool's size: less fills better where documents are short, more where
            they are about as long as rows.
        max_sequences_per_bin: documents of a row at most, >= 1; None for any number.
        min_sequence_length: a row with less than this free is full.
        components: how many components the lane's documents come from.
        by_length: see ``WholeDocuments``.

    Source:
        First and best fit decreasing: Johnson, "Near-optimal bin packing algorithms", thesis, MIT,
        1973.
        Filling one row after another with the subset that leaves the least free: Gupta, Ho, "A new
        heuristic algorithm for the one-dimensional bin-packing problem", Production Planning &
        Control 10(6), 1999; here greedy, with the last two chosen together. For training data:
        Ding et al., "Fewer truncations improve language modeling", ICML 2024.
    """

    def __init__(
        self,
        *,
        max_length: int,
        candidate_pool_size: int = 1024,
        max_candidate_age: int | None = None,
        max_sequences_per_bin: int | None = None,
        min_sequence_length: int = 1,
        components: int,
        by_length: bool = False,
    ) -> None:
        super().__init__(max_length=max_length, components=components, by_length=by_length)
        self._pool_size = candidate_pool_size
        self._max_age = 4 * candidate_pool_size if max_candidate_age is None else max_candidate_age
        self._most = max_sequences_per_bin or 2**62
        self._smallest = min(max(1, min_sequence_length), max_length)
        self._tolerance = max_length // 1024

    def make_state(self, lane: int) -> Waiting:
        """Return an empty pool."""
        return Waiting(self._nothing_thrown(), 0)

    def push(self, state: Waiting, units: Units, documents: Documents) -> Units:
        """Let documents wait; return rows while too many do. See ``Policy.push``."""
        if not len(units):
            return NO_UNITS
        rows, pool = PlacedRows(), state.pool
        for size, (seq, start, length), trigger in self._fitting(state, units, documents):
            pool.add(size, seq, start, length)
            while len(pool.by_size) >= self._pool_size and (
                pool.total >= self._max_length or self._is_aged(pool)
            ):
                rows.add(self._row(pool), trigger)
        return rows.units()

    def finish(self, state: Waiting, documents: Documents) -> Units:
        """Make rows of all that waits."""
        rows = PlacedRows()
        while len(state.pool):
            rows.add(self._row(state.pool), AT_END)
        return rows.units()

    def held(self, state: Waiting) -> Held:
        """Return the pool, from the oldest document on, and what was thrown away."""
        units, numbers = state.pool.written()
        return Held(units, {**numbers, **thrown_numbers(state)})

    def resume(self, lane: int, held: Held, documents: Documents) -> Waiting:
        """Rebuild the pool."""
        state = self.make_state(lane)
        numbers = held.numbers
        state.pool = Candidates.read(held.units, numbers["sizes"], numbers["ages"])
        read_thrown(state, held)
        return state

    def _is_aged(self, pool: Candidates) -> bool:
        return pool.oldest() < pool.arrivals - self._max_age

    def _row(self, pool: Candidates) -> list[int]:
        """Take a row out of the pool, which must hold something."""
        row: list[int] = []
        room, left = self._max_length, self._most
        if self._is_aged(pool):
            room, left = room - pool.take_arrival(pool.oldest(), row), left - 1
        by_size = pool.by_size
        while room >= self._smallest and left and by_size:
            at = pool.longest(room)
            if at < 0:
                break
            gap = room - (by_size[at] >> BITS)
            if gap > self._tolerance and left > 1 and by_size[0] >> BITS > gap:
                pair = closest_pair(by_size, room, room - gap, room - self._tolerance)
                if pair:
                    for place in pair:
                        pool.take(place, row)
                    break
            room, left = room - pool.take(at, row), left - 1
        return row


def closest_pair(
    by_size: list[int], room: int, more_than: int, enough: int
) -> tuple[int, int] | None:
    """Find the two candidates that together come closest to a room, from its half outwards.

    Args:
        by_size: see ``Candidates``.
        room: what they may take together.
        more_than: what they must exceed together.
        enough: the first two that take as much will do.

    Returns:
        Their places in ``by_size``, the higher first; None if there are no such two among those
        looked at.
    """
    limit, enough = (room + 1) << BITS, enough << BITS
    best, pair = ((more_than + 1) << BITS) - 1, None
    high = bisect_left(by_size, (room // 2 + 1) << BITS)
    low = high - 1
    if low > 0 and by_size[low - 1] + by_size[low] > best:
        best, pair = by_size[low - 1] + by_size[low], (low, low - 1)
    stop = min(len(by_size), high + _LOOK)
    while low >= 0 and high < stop and best < enough:
        both = by_size[low] + by_size[high]
        if both >= limit:
            low -= 1
        else:
            if both > best:
                best, pair = both, (high, low)
            high += 1
    return pair
