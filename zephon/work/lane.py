"""One lane of a mixture: draws by position, from its interleave, deals and passes.

Nothing is remembered between calls but what makes them fast, so any thread may ask for any part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ExecutionError
from zephon.work.deal import Deal
from zephon.work.interleave import Interleave, Turns
from zephon.work.order import permute
from zephon.work.passes import Passes, Pieces
from zephon.work.refs import Refs
from zephon.work.source import LaneStream

BLOCK = 32_768
"""Draws worked out at a time; more are put together, so that memory stays bounded."""

MOST_PASSES = 2**31 - 1
"""Passes that a reference can count."""


@dataclass(frozen=True, slots=True)
class Member:
    """A component that the lane draws from: weight > 0."""

    component: int
    name: str
    deal: Deal
    passes: Passes


class MixtureLane(LaneStream):
    """The draws of one lane of a mixture, ending when each member has made its passes.

    Args:
        lane: which lane.
        members: the components drawn from, in component order; at least one.
        interleave: their turns in this lane.
        stop_after_passes: passes that every member makes before the lane ends.
        shuffle_within_shard: rows are permuted within their shard.
    """

    __slots__ = ("_interleave", "_lane", "_length", "_members", "_numbers", "_shuffled")

    def __init__(
        self,
        *,
        lane: int,
        members: tuple[Member, ...],
        interleave: Interleave,
        stop_after_passes: int,
        shuffle_within_shard: bool,
    ) -> None:
        self._lane = lane
        self._members = members
        self._numbers = np.array([member.component for member in members], dtype=np.int32)
        self._interleave = interleave
        self._shuffled = shuffle_within_shard
        rows = [member.deal.rows_before(lane, stop_after_passes) for member in members]
        # A lane without a row of a component in those passes does not wait for it.
        self._length = interleave.draws_through([count - 1 if count else None for count in rows])

    @property
    def length(self) -> int:
        """How many draws the lane has: those until the slowest member has made its passes."""
        return self._length

    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the lane's end."""
        if start < 0 or count < 0:
            raise ValueError(f"draw: start and count must be at least 0, got {start} and {count}")
        stop = min(start + count, self._length)
        if stop - start <= BLOCK:
            return self._draw_block(start, stop - start) if start < stop else Refs.empty()
        return Refs.concat(
            [
                self._draw_block(block, min(BLOCK, stop - block))
                for block in range(start, stop, BLOCK)
            ]
        )

    def _draw_block(self, start: int, count: int) -> Refs:
        turns = self._interleave.turns(start, count)
        pieces = self._pieces(turns)
        order = turns.order
        shard = np.repeat(pieces.shard, pieces.length)
        pass_index = np.repeat(pieces.pass_index.astype(np.int32), pieces.length)
        return Refs.of(
            component=np.repeat(self._numbers, turns.count)[order],
            shard=shard[order],
            row=self._rows(pieces)[order],
            pass_index=pass_index[order],
            ordinal=np.arange(start, start + count, dtype=np.int64),
            lane=self._lane,
        )

    def _pieces(self, turns: Turns) -> Pieces:
        """Find the places of all candidates, component after component."""
        found = []
        for member, first, count in zip(self._members, turns.first, turns.count, strict=True):
            if count == 0:
                continue
            last_pass = member.deal.pass_of(self._lane, first + count - 1)
            if last_pass > MOST_PASSES:
                raise ExecutionError(
                    f"work source: component {member.name!r} may be repeated at most "
                    f"{MOST_PASSES} times, and lane {self._lane} wants pass {last_pass} of its "
                    f"{member.deal.rows} rows; lower its weight"
                )
            found.append(member.passes.pieces(member.deal.runs(self._lane, first, count)))
        return Pieces.concat(found)

    def _rows(self, pieces: Pieces) -> NDArray[np.int64]:
        """Give the row at each place, piece after piece."""
        before = np.cumsum(pieces.length) - pieces.length
        total = int(pieces.length.sum())
        places = np.repeat(pieces.start - before, pieces.length)
        np.add(places, np.arange(total, dtype=np.int64), out=places)
        if not self._shuffled:
            return places
        # Neighbouring pieces of one shard and pass are one range: short ranges are sorted whole.
        begins = np.flatnonzero(np.concatenate(([True], pieces.key[1:] != pieces.key[:-1])))
        lengths = np.add.reduceat(pieces.length, begins)
        return permute(places, lengths, pieces.size[begins], pieces.key[begins])
