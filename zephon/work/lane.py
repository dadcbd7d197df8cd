"""One lane of a mixture: draws by position, from its turns, deals and passes.

Nothing is remembered between calls but what makes them fast, so any thread may ask for any part.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from zephon.work.ends import ENDLESS, Stretch
from zephon.work.lane_stream import LaneStream
from zephon.work.order.passes import Places
from zephon.work.refs import Refs
from zephon.work.strand import Member

BLOCK = 32_768
"""Draws worked out at a time; more are put together, so that memory stays bounded."""

TIMED = 1024
"""Draws whose times are worked out together, where weights change."""


class MixtureLane(LaneStream):
    """The draws of one lane of a mixture whose time counts draws.

    Args:
        lane: which lane.
        members: the components drawn from, in component order; at least one.
        stretches: their turns, from the lane's first draw, or from a base on, to its end.
        components: how many the source has, those never drawn from too.
    """

    __slots__ = (
        "_components", "_lane", "_level", "_members", "_numbers", "_starts", "_stretches", "_timed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        lane: int,
        members: tuple[Member, ...],
        stretches: tuple[Stretch, ...],
        components: int,
    ) -> None:
        self._lane = lane
        self._members = members
        self._numbers = np.array([member.component for member in members], dtype=np.int32)
        self._stretches = stretches
        self._starts = [stretch.start for stretch in stretches]
        self._components = components
        # Weights that stay, by a stretch's first draw and its piece; times of one block of draws.
        self._level: dict[tuple[int, int] | None, NDArray[np.float64]] = {}
        self._timed: tuple[int, int, NDArray[np.float64]] | None = None

    @property
    def length(self) -> int | None:
        """How many draws the lane has; None if it never ends."""
        return self._stretches[-1].stop if self._stretches else 0

    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the lane's end."""
        if start < 0 or count < 0:
            raise ValueError(f"draw: start and count must be at least 0, got {start} and {count}")
        if self._starts and start < self._starts[0]:
            raise ValueError(
                f"draw: start must be at least {self._starts[0]}, where this lane goes on, got "
                f"{start}"
            )
        length = self.length
        stop = start + count if length is None else min(start + count, length)
        found = []
        while start < stop:
            stretch = self._at(start)
            end = min(stop, start + BLOCK, stop if stretch.stop is None else stretch.stop)
            found.append(self._draw_block(stretch, start, end - start))
            start = end
        return Refs.concat(found)

    def weights_at(self, ordinal: int) -> NDArray[np.float64]:
        """Give the weights in force at a draw, shape [components of the source]; read-only."""
        stretch = self._at(ordinal)
        courses = stretch.interleave.courses
        time = self._time_of(stretch, ordinal) if courses.bends else 0.0
        piece = courses.piece(time)
        place = (stretch.start, piece)
        known = self._level.get(place)
        if known is not None:
            return known
        weights = np.zeros(self._components)
        weights[self._numbers] = courses.weights_at(time)
        weights.flags.writeable = False
        if courses.is_level(piece):
            self._level[place] = weights
        return weights

    def _time_of(self, stretch: Stretch, ordinal: int) -> float:
        """Say when a draw is due; a block of them is worked out at a time."""
        if stretch.stop is not None and ordinal >= stretch.stop:  # no draw is left of the lane
            return 0.0
        block, place = divmod(ordinal - stretch.start, TIMED)
        known = self._timed
        if known is None or known[:2] != (stretch.start, block):
            first = block * TIMED
            left = TIMED if stretch.stop is None else stretch.stop - stretch.start - first
            times = stretch.interleave.times(first, min(TIMED, left))
            known = self._timed = (stretch.start, block, times)
        return float(known[2][place])

    def finished_before(self, ordinal: int) -> NDArray[np.bool_]:
        """Tell which components no draw from ``ordinal`` on has, shape [components]."""
        finished = np.ones(self._components, dtype=np.bool_)
        length = self.length
        if length is None or ordinal < length:
            finished[self._numbers] = self._drawn_before(ordinal) >= self._drawn_in_all()
        return finished

    def _drawn_before(self, ordinal: int) -> NDArray[np.int64]:
        """Count the members' draws before a draw that there is."""
        stretch = self._at(ordinal)
        return stretch.drawn + stretch.interleave.counts_before(*_item_at(stretch, ordinal))

    def _drawn_in_all(self) -> NDArray[np.int64]:
        """Count the members' draws of the whole lane, ``ENDLESS`` for those without an end."""
        length = self.length
        if length is not None:
            stretch = self._at(length - 1)
            member, item = _item_at(stretch, length - 1)
            drawn = stretch.drawn + stretch.interleave.counts_before(member, item)
            drawn[member] += 1
            return drawn
        stretch = self._stretches[-1]
        reachable = stretch.drawn + stretch.interleave.count_until(float("inf"))
        return np.where(stretch.interleave.courses.ending, reachable, ENDLESS)

    def _at(self, ordinal: int) -> Stretch:
        """Find the stretch of a draw; those that are empty are passed over."""
        return self._stretches[bisect_right(self._starts, ordinal) - 1]

    def _draw_block(self, stretch: Stretch, start: int, count: int) -> Refs:
        turns = stretch.interleave.turns(start - stretch.start, count)
        firsts = (turns.first + stretch.drawn).tolist()
        rows = [
            member.rows(self._lane, first, candidates)
            for member, first, candidates in zip(
                self._members, firsts, turns.count.tolist(), strict=True
            )
            if candidates
        ]
        places = Places.concat(rows)
        order = turns.order
        return Refs.of(
            component=np.repeat(self._numbers, turns.count)[order],
            shard=places.shard[order],
            row=places.row[order],
            pass_index=places.pass_index[order],
            ordinal=np.arange(start, start + count, dtype=np.int64),
            lane=self._lane,
        )


def _item_at(stretch: Stretch, ordinal: int) -> tuple[int, int]:
    """Find whose item a draw of a stretch is, and its number within the stretch."""
    turns = stretch.interleave.turns(ordinal - stretch.start, 1)
    place, ends = int(turns.order[0]), np.cumsum(turns.count)
    member = int(np.searchsorted(ends, place, side="right"))
    return member, int(turns.first[member]) + place - int(ends[member] - turns.count[member])
