"""Streaming shuffle: each arrival lets one unit of a reservoir go, chosen by a hash.

The first unit leaves once w = max(1, min(128, buffer_size // 16)) are held. From then on the
window grows by one with each unit that leaves, so every second arrival lets one go until
``buffer_size`` are held, and every arrival after that. Nothing but the end of the lane empties it.

A unit leaves at most ``buffer_size`` - 1 places earlier than it came, and waits for
``buffer_size`` arrivals on average: 37 % wait longer, 5 % longer than three times that. So what
stood together is spread over a few ``buffer_size``, but order is not lost at a larger scale: with
data sorted by kind, shuffle shards or rows at the source as well. Costs about 0.1 microseconds a
unit, and holds the documents of ``buffer_size`` units.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.exec.policies.policy import AT_END, NO_INTS, NO_UNITS, Documents, Held, Policy, Units
from zephon.exec.policies.unit_store import UnitStore

_AHEAD = 4096  # victims hashed at once: they depend on the count of units let go alone


@dataclass(slots=True, eq=False)
class Resident:
    """The units held, and how many came.

    key: of this lane's choices.
    arrivals, held: units that came, and those that did not leave.
    slots: shape [places], int64; the first ``held`` are numbers in ``store``.
    victims: slots chosen for the departures from ``first_victim`` on.
    """

    key: int
    arrivals: int = 0
    held: int = 0
    slots: NDArray[np.int64] = field(default_factory=lambda: np.empty(1024, np.int64))
    store: UnitStore = field(default_factory=UnitStore)
    first_victim: int = 0
    victims: NDArray[np.int64] = field(default_factory=lambda: NO_INTS)


class Reservoir(Policy[Resident]):
    """Random victims, one an arrival, out of a window that grows to ``buffer_size``.

    Args:
        buffer_size: units that are held at most, the arriving one counted, >= 1; 1 changes nothing.
        seed: with the stage, the lane and the number of the departure, decides who leaves.
        stage: place in the lane's chain of policies.

    Source:
        The replacement step of algorithm R (Waterman, in Knuth, TAOCP 2, 3.4.2), where the one
        replaced is let go instead of forgotten.
    """

    def __init__(self, *, buffer_size: int, seed: int, stage: int) -> None:
        self._size = buffer_size
        self._first = first_window(buffer_size)
        self._seed = seed
        self._stage = stage

    def make_state(self, lane: int) -> Resident:
        """Return an empty reservoir."""
        return Resident(seeds.key(self._seed, "shuffle", self._stage, lane))

    def push(self, state: Resident, units: Units, documents: Documents) -> Units:
        """Let units of the reservoir, or of these, go; see ``Policy.push``."""
        count = len(units)
        if not count:
            return NO_UNITS
        slots, leaves, last = self._places(state, count)
        if state.held + count > len(state.slots):
            longer = np.empty(2 * (state.held + count), np.int64)
            longer[: state.held] = state.slots[: state.held]
            state.slots = longer
        first = state.store.add(units)
        numbers = np.arange(first, first + count, dtype=np.int64)
        # Who is in the slot an arrival takes: whoever took it last among these, else a resident.
        narrow = slots.astype(np.uint16) if self._size <= 1 << 16 else slots  # sorts in one sweep
        order = narrow.argsort(kind="stable")
        ordered = narrow[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1])
        out = state.slots[slots]
        out[order[again + 1]] = numbers[order[again]]
        np.copyto(out, numbers, where=slots == last)  # it would leave at once
        state.slots[slots] = numbers  # of several for one slot, the last one stays
        state.arrivals += count
        if leaves is None:
            trigger = units.trigger
        else:
            out, trigger = out[leaves], units.trigger[leaves]
            state.held += count - len(out)
        gone = state.store.take(out, trigger)
        if state.store.wasteful:
            state.store.keep(state.slots[: state.held])
            state.slots[: state.held] = np.arange(state.held)
        return gone

    def finish(self, state: Resident, documents: Documents) -> Units:
        """Let all go, in hashed order."""
        order = permutation(seeds.key(state.key, "end", state.arrivals), state.held)
        numbers = state.slots[: state.held][order]
        state.held = 0
        return state.store.take(numbers, np.full(len(numbers), AT_END, np.int64))

    def held(self, state: Resident) -> Held:
        """Return the units by slot, and the count of arrivals."""
        return Held(
            state.store.look(state.slots[: state.held]),
            {"arrivals": np.array([state.arrivals], np.int64)},
        )

    def resume(self, lane: int, held: Held, documents: Documents) -> Resident:
        """Put the units back into their slots."""
        state = self.make_state(lane)
        state.arrivals, state.held = int(held.numbers["arrivals"][0]), len(held.units)
        state.store.add(held.units)
        state.slots = np.arange(state.held, dtype=np.int64)
        return state

    def _places(
        self, state: Resident, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64] | int]:
        """Find the slot that each of the next arrivals takes.

        Returns:
            The slots, shape [count]; the arrivals that let a unit go, None for all; and the slot
            in which an arrival would itself be chosen (one a shape [count], or one for all).
        """
        after = state.arrivals - (self._first - 1)  # arrivals since the first that lets one go
        growing = self._size - self._first  # departures until the window is whole
        if after >= 2 * growing:
            return self._victims(state, after - growing, count), None, self._size - 1
        after = np.arange(after, after + count)
        whole = after >= 2 * growing
        departure = np.where(whole, after - growing, after >> 1)
        leaves = (after >= 0) & (whole | (after & 1 == 0))
        # The last slot of the window: an arrival that lets no one go takes it.
        slots = np.where(after < 0, after + self._first - 1, departure + self._first - 1)
        slots = np.minimum(slots, self._size - 1)
        at = np.flatnonzero(leaves)
        last = np.where(leaves, slots, -1)
        if len(at):
            slots[at] = self._victims(state, int(departure[at[0]]), len(at))
        return slots, at, last

    def _victims(self, state: Resident, first: int, count: int) -> NDArray[np.int64]:
        """Choose who leaves at some departures: a slot below the window's size at that time."""
        begin = first - state.first_victim
        if begin < 0 or begin + count > len(state.victims):
            departures = np.arange(first, first + max(count, _AHEAD), dtype=np.int64)
            windows = np.minimum(departures + self._first, self._size).astype(np.uint64)
            hashes = seeds.subkeys(state.key, departures) >> np.uint64(32)
            state.victims = ((hashes * windows) >> np.uint64(32)).view(np.int64)
            state.first_victim, begin = first, 0
        return state.victims[begin : begin + count]


def first_window(buffer_size: int) -> int:
    """Find how many units a shuffle holds when it lets the first one go."""
    return max(1, min(128, buffer_size // 16))


def permutation(key: int, size: int) -> NDArray[np.int64]:
    """Permute ``size`` things, shape [size], int64: in the order of the hashes of their numbers."""
    return np.argsort(seeds.subkeys(key, np.arange(size)), kind="stable")
