"""The lanes of a mixture whose run was edited: from the last edit on, and before each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

from zephon.exec.edits import Edit, with_removed
from zephon.exec.former_mixtures import FormerMixtures, counts_of
from zephon.work.edited_lane import EditedLane, PartlyGone
from zephon.work.lane_stream import LaneStream
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
        counts = counts_of(source)
        self._former = FormerMixtures(self._edits, lanes, self._numbers, counts, len(names))

    def draws(self, lane: int) -> LaneStream | TokenLane:
        """Give the draws of a lane, or its strands, from the last edit on."""
        count = len(self._numbers)
        lanes = self._now.lanes(self._lanes, self._step, count)
        if self._source.mixture_unit == "tokens":  # where it goes on is told by its merge
            drawn = lanes.token_lane(lane)
            return replace(drawn, strands=self._strands(lane, drawn.strands))
        if not self._edits:
            return lanes.stream(lane)
        base = self._edits[-1].base(lane, self._numbers, count)
        return EditedLane(lanes.stream(lane, base), base.start, list(self._before(lane)))

    @cached_property
    def _now(self) -> StaticMixtureWorkSource:
        return self._source.grown(self._former.former(len(self._edits)))

    def _before(self, lane: int) -> Sequence[tuple[int, Callable[[], LaneStream]]]:
        firsts = [0, *(int(edit.start[lane]) for edit in self._edits[:-1])]
        return [
            (first, partial(self._former_draws, number, lane))
            for number, first in enumerate(firsts)
        ]

    def _former_draws(self, number: int, lane: int) -> LaneStream:
        """Give the draws of a lane before an edit, by the numbers that components have now."""
        base = None
        if number:
            base = self._edits[number - 1].base(lane, self._numbers, len(self._numbers))
        gone = {name for each in self._edits[number:] for name in each.removed}
        stream = self._former.lanes(number).stream(lane, base)
        return PartlyGone(stream, [self._numbers[name] for name in gone]) if gone else stream

    def _strands(self, lane: int, strands: Sequence[LaneStream]) -> tuple[LaneStream, ...]:
        """Give the strands of a lane; one with more shards draws other rows where they join."""
        found = list(strands)
        for name, number in self._numbers.items():
            places = [place for place, edit in enumerate(self._edits) if name in edit.grown]
            if places:
                starts = [int(self._edits[place].drawn[name][lane]) for place in places]
                before = [
                    (first, partial(self._former_strand, place, lane, number))
                    for first, place in zip([0, *starts], places, strict=False)
                ]
                found[number] = EditedLane(found[number], starts[-1], before)
        return tuple(found)

    def _former_strand(self, place: int, lane: int, number: int) -> LaneStream:
        return self._former.lanes(place).token_lane(lane).strands[number]
