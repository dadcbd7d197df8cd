"""Full windows of long documents at once; their tails and short documents to the best fit.

A document of ``max_length`` tokens or more is cut into rows from its beginning on. What is left
of it, and every shorter document, waits in a pool of ``candidate_pool_size`` pieces. Once the pool
is full and holds a row's tokens, a row is made: first candidates older than ``max_candidate_age``
arrivals, the oldest first, each that fits; then ever the longest that fits, of equally long ones
the oldest. If none fits, the shortest is cut once, so that the row is full: its last tokens go if
that severs fewer tokens from their beginning and it is not itself a tail, else its first ones.
At the end of the lane the pool is emptied in the same way; only its last row is padded.

With documents of 275 tokens on average and rows of 2,049 no row but the last is padded and 3.3 % of
the documents are cut, where ``wrap`` cuts 13.3 %; a document costs 1.8 microseconds. Half of the
documents wait for less than 10 arrivals, short ones for up to ``max_candidate_age``: not for data
whose order matters at that scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zephon.exec.policies.candidates import BITS, Candidates
from zephon.exec.policies.placed_rows import PlacedRows
from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Policy, Units


@dataclass(slots=True)
class Tails:
    """The pieces that wait for a row."""

    pool: Candidates = field(default_factory=Candidates)


class BestFitWrap(Policy[Tails]):
    """Best fit of what is shorter than a row, cutting a piece only where nothing fits.

    Args:
        max_length: tokens of a row at most, >= 1.
        candidate_pool_size: pieces that wait before a row is made of them, >= 1.
        max_candidate_age: arrivals after which a candidate comes first, >= 1; None for eight
            times the pool's size.
        max_sequences_per_bin: pieces of a row at most, >= 1; None for any number. A row that has
            so many is padded.
        min_sequence_length: a row with less than this free is full, and padded.

    Source:
        Ding et al., "Fewer truncations improve language modeling", ICML 2024: long documents cut
        into windows, their tails and short documents packed by best fit; here over a bounded
        pool, and with one cut where nothing fits.
    """

    packs = cuts = True

    def __init__(
        self,
        *,
        max_length: int,
        candidate_pool_size: int = 1024,
        max_candidate_age: int | None = None,
        max_sequences_per_bin: int | None = None,
        min_sequence_length: int = 1,
    ) -> None:
        self._max_length = max_length
        self._pool_size = candidate_pool_size
        self._max_age = 8 * candidate_pool_size if max_candidate_age is None else max_candidate_age
        self._most = max_sequences_per_bin or 2**62
        self._smallest = min(max(1, min_sequence_length), max_length)

    def make_state(self, lane: int) -> Tails:
        """Return an empty pool."""
        return Tails()

    def push(self, state: Tails, units: Units, documents: Documents) -> Units:
        """Make rows of long documents and of the full pool; see ``Policy.push``."""
        if not units.length.all():
            units = units.take(np.flatnonzero(units.length))
        if not len(units):
            return NO_UNITS
        rows, pool = PlacedRows(), state.pool
        max_length, pool_size = self._max_length, self._pool_size
        for seq, start, length, trigger in zip(
            units.seq.tolist(),
            units.start.tolist(),
            units.length.tolist(),
            units.trigger.tolist(),
            strict=True,
        ):
            windows, tail = divmod(length, max_length)
            for number in range(windows):
                rows.add((seq, start + number * max_length, max_length), trigger)
            if tail:
                pool.add(tail, seq, start + length - tail, tail)
                while len(pool.by_size) >= pool_size and pool.total >= max_length:
                    rows.add(self._row(pool), trigger)
            else:
                pool.arrivals += 1
        return rows.units()

    def finish(self, state: Tails, documents: Documents) -> Units:
        """Make rows of what waits; the last one is padded."""
        rows = PlacedRows()
        while len(state.pool):
            rows.add(self._row(state.pool), AT_END)
        return rows.units()

    def held(self, state: Tails) -> Held:
        """Return the pool, from the oldest candidate on."""
        return Held(*state.pool.written())

    def resume(self, lane: int, held: Held, documents: Documents) -> Tails:
        """Rebuild the pool."""
        numbers = held.numbers
        return Tails(Candidates.read(held.units, numbers["sizes"], numbers["ages"]))

    def _row(self, pool: Candidates) -> list[int]:
        """Take a row out of the pool, which must hold something."""
        row: list[int] = []
        room, left = self._max_length, self._most
        if pool.oldest() < pool.arrivals - self._max_age:
            room, left = self._aged(pool, row)
        while room >= self._smallest and left and pool.by_size:
            at = pool.longest(room)
            if at < 0:
                row += _cut(pool, room)
                break
            room, left = room - pool.take(at, row), left - 1
        return row

    def _aged(self, pool: Candidates, row: list[int]) -> tuple[int, int]:
        """Fill a row with candidates that are too old; return the room and the pieces left."""
        room, left = self._max_length, self._most
        for arrival in pool.waiting:
            if arrival >= pool.arrivals - self._max_age or not left or not pool.by_size:
                break
            if room < self._smallest or pool.by_size[0] >> BITS > room:
                break
            if arrival in pool.found and pool.found[arrival][0] <= room:
                room, left = room - pool.take_arrival(arrival, row), left - 1
        return room, left


def _cut(pool: Candidates, room: int) -> tuple[int, int, int]:
    """Cut the shortest candidate, the oldest of such; return the piece that fills the room."""
    at = pool.longest(pool.by_size[0] >> BITS)
    size, seq, start, _ = pool.at(at)
    rest = size - room
    if room < rest and not start:
        pool.shorten(at, rest, seq, 0, rest)
        return seq, rest, room
    pool.shorten(at, rest, seq, start + room, rest)
    return seq, start, room
