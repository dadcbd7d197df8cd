"""The lanes of a mixture whose run was edited: from the last edit on, and before each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zephon.exec.edits import Edit, with_removed
from zephon.work.edited_lane import EditedLane, PartlyGone
from zephon.work.former import former_plan
from zephon.work.lane_stream import LaneStream
from zephon.work.lanes import Lanes
from zephon.work.schedule import StepSize
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_lane import TokenLane


class EditedSource:
    """A mixture, and how lanes were drawn before its edits.

    Args:
        source: the mixture as it is now.
        lanes: how many there are.
        step: what a step of the run is now.
        edits: of the run, oldest first.
    """

    def __init__(
        self,
        source: StaticMixtureWorkSource,
        lanes: int,
        step: StepSize | None,
        edits: Sequence[Edit],
    ) -> None:
        self._source = source
        self._lanes = lanes
        self._step = step
        self._edits = tuple(edit for edit in edits if edit.rebases)
        names = with_removed([each.name for each in source.components], edits)
        self._numbers = {name: number for number, name in enumerate(names)}

    def draws(self, lane: int) -> LaneStream | TokenLane:
        """Give the draws of a lane, or its strands, from the last edit on."""
        count = len(self._numbers)
        lanes = self._source.lanes(self._lanes, self._step, count)
        if self._source.mixture_unit == "tokens":
            return lanes.token_lane(lane)  # where it goes on is told by where its merge stands
        if not self._edits:
            return lanes.stream(lane)
        base = self._edits[-1].base(lane, self._numbers, count)
        return EditedLane(lanes.stream(lane, base), base.start, list(self._before(lane)))

    def _before(self, lane: int) -> Sequence[tuple[int, Callable[[], LaneStream]]]:
        firsts = [0, *(int(edit.start[lane]) for edit in self._edits[:-1])]
        return [
            (first, partial(self._former_draws, number, lane))
            for number, first in enumerate(firsts)
        ]

    def _former_draws(self, number: int, lane: int) -> LaneStream:
        """Give the draws of a lane before an edit, by the numbers that components have now."""
        edit, count = self._edits[number], len(self._numbers)
        counts = former_counts(self._source, self._edits[number:])
        former = former_lanes(edit, self._lanes, self._numbers, counts, count)
        base = None
        if number:
            base = self._edits[number - 1].base(lane, self._numbers, count)
        gone = {name for each in self._edits[number:] for name in each.removed}
        stream = former.stream(lane, base)
        return PartlyGone(stream, [self._numbers[name] for name in gone]) if gone else stream


def former_counts(
    source: StaticMixtureWorkSource, edits: Sequence[Edit]
) -> dict[str, NDArray[np.int64]]:
    """Count the rows of each shard of all components that were read before the first of edits.

    Of a component that one of them took away, whose rows nobody reads any more, in one shard.
    """
    counts = {c.name: np.asarray(c.dataset.counts()) for c in source.components if c.read}
    for edit in reversed(edits):
        counts |= {name: np.array([each.rows]) for name, each in edit.removed.items()}
    return {name: counts[name] for name in edits[0].source["rules"]}


def former_lanes(
    edit: Edit,
    lanes: int,
    numbers: Mapping[str, int],
    counts: Mapping[str, NDArray[np.int64]],
    components: int,
) -> Lanes:
    """Lay out the lanes of a mixture as it was before an edit.

    Args:
        edit: says what the mixture was.
        lanes: how many there are.
        numbers: of each component of then.
        counts: rows of each shard of each component of then.
        components: how many are counted.
    """
    plan = former_plan(edit.source, numbers, counts)
    return Lanes(plan, lanes, edit.size, edit.source["token_costs"], components)
