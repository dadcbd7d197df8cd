"""The lanes of a mixture whose run was edited: from the last edit on, and before each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from zephon.exec.edits import Edit
from zephon.work.edited_lane import EditedLane
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

    def draws(self, lane: int) -> LaneStream | TokenLane:
        """Give the draws of a lane, or its strands, from the last edit on."""
        source = self._source
        if source.mixture_unit == "tokens":  # where it goes on is told by where its merge stands
            return source.token_lane(lane, self._lanes, step=self._step)
        if not self._edits:
            return source.lane_stream(lane, self._lanes, step=self._step)
        base = self._edits[-1].base(lane, self._numbers, len(self._numbers))
        stream = source.lane_stream(lane, self._lanes, step=self._step, state=base)
        return EditedLane(stream, base.start, list(self._before(lane)))

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {each.name: each.dataset_id for each in self._source.components}

    def _before(self, lane: int) -> Sequence[tuple[int, Callable[[], LaneStream]]]:
        firsts = [0, *(int(edit.start[lane]) for edit in self._edits[:-1])]
        return [
            (first, partial(self._former_draws, number, lane))
            for number, first in enumerate(firsts)
        ]

    def _former_draws(self, number: int, lane: int) -> LaneStream:
        """Give the draws of a lane before an edit, by the numbers that components have now."""
        edit = self._edits[number]
        former = former_lanes(edit, self._lanes, self._numbers, self._counts, len(self._numbers))
        if not number:
            return former.stream(lane)
        base = self._edits[number - 1].base(lane, self._numbers, len(self._numbers))
        return former.stream(lane, base)

    @cached_property
    def _counts(self) -> Mapping[str, NDArray[np.int64]]:
        return {
            each.name: np.asarray(each.dataset.counts())
            for each in self._source.components
            if each.read
        }


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
