"""The rows of a component as lanes take them, while shards are added to its dataset.

Shards are added between two passes: those before have the rows of then, in their orders, and those
from there on all of them. What is left over of a pass goes on around the lanes in either, so lanes
stay level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zephon.work.order.deal import Deal
from zephon.work.order.passes import Passes, Places


@dataclass(frozen=True, slots=True)
class Former:
    """How a component was read until shards were added.

    stop: the first pass that has their rows. passes: the order of the rows of those before.
    """

    stop: int
    passes: Passes


class Dealt:
    """All rows of a component, by lane and number.

    Args:
        parts: how the rows of some passes are dealt, and in which order they are; each part goes on
            where the one before ends, the last has no end.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[tuple[Deal, Passes]]) -> None:
        self._parts = tuple(parts)

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return self._parts[0][0].lanes

    def rows_of(self, pass_index: int) -> int:
        """Count the rows of a pass."""
        return self._part_of(pass_index).rows

    def rows_before(self, lane: int, passes: int) -> int:
        """Count the rows of a lane in the first ``passes`` passes."""
        return self._part_of(passes).rows_before(lane, passes)

    def pass_of(self, lane: int, number: int) -> int:
        """Say in which pass a lane takes its row ``number``."""
        for deal, _ in reversed(self._parts[1:]):
            if number >= deal.rows_before(lane, deal.first_pass):
                return deal.pass_of(lane, number)
        return self._parts[0][0].pass_of(lane, number)

    def rows_at(self, lane: int, first: int, count: int) -> Places:
        """Find rows ``first`` to ``first + count - 1`` of a lane, >= 1 of them."""
        found, stop = [], first + count
        for place, (deal, passes) in enumerate(self._parts, start=1):
            end = stop
            if place < len(self._parts):
                end = min(stop, deal.rows_before(lane, self._parts[place][0].first_pass))
            if first < end:
                found.append(passes.rows_at(deal.runs(lane, first, end - first)))
                first = end
        return Places.concat(found)

    def _part_of(self, pass_index: int) -> Deal:
        deals = [deal for deal, _ in self._parts if deal.first_pass <= pass_index]
        return deals[-1]
