"""One component in one lane: its rows as the lane takes them, one after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zephon.errors import ExecutionError
from zephon.work.lane_stream import LaneStream
from zephon.work.order.dealt import Dealt
from zephon.work.order.passes import Places
from zephon.work.refs import Refs

MOST_PASSES = 2**31 - 1
"""Passes that a reference can count."""


@dataclass(frozen=True, slots=True)
class Member:
    """A component that lanes draw from, and how its rows come to them."""

    component: int
    name: str
    dealt: Dealt

    def rows(self, lane: int, first: int, count: int) -> Places:
        """Find a lane's rows ``first`` to ``first + count - 1`` of the component, >= 1 of them.

        Raises:
            ExecutionError: a reference cannot count the pass that they lie in.
        """
        last_pass = self.dealt.pass_of(lane, first + count - 1)
        if last_pass > MOST_PASSES:
            rows = self.dealt.rows_of(last_pass)
            raise ExecutionError(
                f"work source: component {self.name!r} may be repeated at most {MOST_PASSES} "
                f"times, and lane {lane} wants pass {last_pass} of its {rows} rows; "
                "lower its weight"
            )
        return self.dealt.rows_at(lane, first, count)


class Strand(LaneStream):
    """The draws of one component in one lane, by their own numbers.

    Args:
        lane: which lane.
        member: the component; None for one that is never read.
        length: draws until its rows end; None if it repeats for ever.
    """

    __slots__ = ("_lane", "_length", "_member")

    def __init__(self, lane: int, member: Member | None, length: int | None) -> None:
        self._lane = lane
        self._member = member
        self._length = 0 if member is None else length

    @property
    def length(self) -> int | None:
        """How many draws the strand has; None if it never ends."""
        return self._length

    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the strand's end."""
        if start < 0 or count < 0:
            raise ValueError(f"draw: start and count must be at least 0, got {start} and {count}")
        if self._length is not None:
            count = min(count, self._length - start)
        if count <= 0 or self._member is None:
            return Refs.empty()
        rows = self._member.rows(self._lane, start, count)
        return Refs.of(
            component=np.full(count, self._member.component, dtype=np.int32),
            shard=rows.shard,
            row=rows.row,
            pass_index=rows.pass_index,
            ordinal=np.arange(start, start + count, dtype=np.int64),
            lane=self._lane,
        )
