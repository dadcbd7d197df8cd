"""The state of a lane whose functions changed: what it holds is made again, policies begin anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.errors import NotYetError
from zephon.exec.begun_anew import Anew, Dropped, undelivered_of
from zephon.exec.deriving import Reader
from zephon.exec.half_used import half_used
from zephon.exec.history import LaneState
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain, Units
from zephon.exec.rebuilding import Undelivered
from zephon.exec.renumbering import Renumbering
from zephon.exec.segment import Segment
from zephon.work.lane_stream import LaneStream
from zephon.work.token_lane import TokenLane


@dataclass(frozen=True, slots=True)
class FunctionEdit:
    """Makes the states of lanes anew for the steps of now.

    segment, chain, measures: of the first floor. field: the name of the tokens of its rows.
    components: how many are counted. draws: gives the draws of a lane, or its strands,
    given what its state says of the work source. has_floors: operators of the user that see rows
    in order stand on the first floor.
    """

    segment: Segment
    chain: Chain
    measures: Sequence[str]
    field: str | None
    components: int
    draws: Callable[[int, Any], LaneStream | TokenLane]
    has_floors: bool

    def state(self, lane: int, state: LaneState) -> tuple[LaneState, Dropped]:
        """Make the state of a lane anew."""
        self._refuse(state)
        run = LaneRun(
            lane, self.draws(lane, state.source), self.chain, self.components, state, self.measures
        )
        as_they_are = Renumbering(np.arange(self.components), self.components)
        anew = Anew(self.chain, self.measures, as_they_are)
        return anew.state(run, state, self._undelivered(run, state), run.weights_now())

    def _undelivered(self, run: LaneRun, state: LaneState) -> Undelivered:
        """Gather what a lane holds, and make it again."""
        parts, known = undelivered_of(run)
        _, half = half_used(Units.concat(parts), known)
        streams = [intake.stream for intake in run.intakes]
        merged = run.strands is not None
        reader = Reader(self.segment, streams, merged, self.field, self.measures)
        derived = reader.derive(known, np.isin(np.arange(len(known)), half))
        return Undelivered(parts, known, state.halves.by_name(), derived)

    def _refuse(self, state: LaneState) -> None:
        if self.has_floors or state.below is not None:
            raise NotYetError(
                "restore: functions cannot change yet where an operator sees rows in order "
                "(add_op, stateful_transform, or a map behind packing): what it remembers came of "
                "the functions before; restore it with these"
            )
        if len(state.tick.stages) - len(self.chain) not in (0, 1):
            raise NotYetError(
                "restore: functions cannot change yet such that rows are split behind a shuffle "
                "where they were not, or the other way round; leave the splitting as it was"
            )


def made_anew(
    before: Mapping[int, LaneState], why: str, edit: FunctionEdit
) -> dict[int, LaneState]:
    """Make the states of lanes anew, and warn of what that drops; this reads what they hold.

    Raises:
        NotYetError: an operator of the user sees rows in order, or the policies are others.
        ZephonError: a held row is bad now, or cannot be read.
    """
    states, dropped = dict[int, LaneState](), Dropped()
    for lane, state in before.items():
        states[lane], some = edit.state(lane, state)
        dropped += some
    if dropped.documents:
        told = dropped.told("gone, or different though delivered in part")
        warnings.warn(f"restore: {why}: {told}", RuntimeWarning, stacklevel=2)
    return states
