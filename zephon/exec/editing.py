"""Begins an edit of a run: takes lanes from where a checkpoint stands to what holds from there on.

What was drawn before the checkpoint is gone along once more, by the rules of then and as integers
alone; so no draw of an edited lane's log lies before the edit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zephon.errors import CheckpointError, NotYetError
from zephon.exec.edited_source import former_lanes
from zephon.exec.edits import Edit
from zephon.exec.floors import Floor, floors_of
from zephon.exec.history import LaneState
from zephon.exec.lane_run import LaneRun
from zephon.exec.lane_states import lane_from_dict
from zephon.exec.lane_table import trees_of
from zephon.exec.lanes import Topology
from zephon.exec.launch import step_of
from zephon.exec.policy_chain import chain_of, measures_of
from zephon.exec.saved_values import told
from zephon.planner.compiler import Plan
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource


def edited(
    plan: Plan,
    source: WorkSource,
    topology: Topology,
    restored: Mapping[str, Any],
    states: Mapping[int, LaneState],
    words: Collection[str],
) -> tuple[list[Edit], Mapping[int, LaneState]]:
    """Begin an edit at a checkpoint, if its recipe and the present one differ.

    Args:
        plan: what runs from there on.
        source: where its rows come from.
        topology: who delivers what.
        restored: the checkpoint.
        states: of this rank's lanes there.
        words: of the changes that are let through; none: nothing differs.

    Returns:
        The edits of the run until now, and the states from which lanes go on.

    Raises:
        CheckpointError: the checkpoint does not hold all lanes, or a lane has ended.
        NotYetError: the source is a custom one.
    """
    edits = [Edit.from_dict(saved, topology.lanes) for saved in restored["edits"]]
    if not words:
        return edits, states
    if not isinstance(source, StaticMixtureWorkSource):
        raise NotYetError(
            f"restore: allow={min(words)!r} is not there yet for a work source of your own; "
            "restore the checkpoint with the source that it was taken from"
        )
    _check_still_read(restored["recipe"]["source"], source)
    every = _all_states(restored, topology.lanes)
    check_editable(every)
    edits.append(
        Edit.at(
            list(every.values()),
            words=sorted(words),
            step=restored["position"].get("step"),
            size=step_of(plan, restored["recipe"]["global_batch_size"]),
            source=restored["recipe"]["source"],
        )
    )
    editing = Editing(source, floors_of(plan)[0], edits, topology.lanes)
    return edits, {lane: editing.edited(lane, state) for lane, state in states.items()}


def _check_still_read(before: Mapping[str, Any], source: StaticMixtureWorkSource) -> None:
    read = {each.name for each in source.components if each.read}
    for name in before["rules"]:
        if name in read:
            continue
        if any(each.name == name for each in source.components):
            raise NotYetError(
                f"restore: the weight of {name!r} cannot become 0 yet, since its rows that are "
                "held would not be read; let a schedule take its weight away, or give it a small "
                "one"
            )
        raise NotYetError(
            f"restore: dataset {name!r} cannot be removed yet; let a schedule take its weight away"
        )


def _all_states(restored: Mapping[str, Any], lanes: int) -> dict[int, LaneState]:
    saved = trees_of(restored["lanes"])
    missing = [lane for lane in range(lanes) if lane not in saved]
    if missing:
        raise CheckpointError(
            f"restore: the checkpoint lacks {told('lane', missing)}, and a change must know where "
            "all lanes stand; pass the parts of all ranks, or take one with all lanes (dp_degree=1)"
        )
    return {lane: lane_from_dict(lane, saved[lane]) for lane in range(lanes)}


def check_editable(states: Mapping[int, LaneState]) -> None:
    """Refuse to edit lanes behind which nothing can follow.

    Args:
        states: of all lanes.

    Raises:
        CheckpointError: a lane has ended, or stands within a draw that failed.
    """
    for lane, state in states.items():
        floors = list(_floors(state))
        if any(floor.ended for floor in floors):
            raise CheckpointError(
                f"restore: lane {lane} has ended, and its last rows were let go by that, so a "
                "change can bring none behind them; restore an earlier checkpoint"
            )
        if any(floor.stopped for floor in floors):
            raise CheckpointError(
                f"restore: lane {lane} stands among the rows of a draw that failed, which must "
                "come once more as it was; restore an earlier checkpoint, or change nothing"
            )


def _floors(state: LaneState) -> list[LaneState]:
    return [state] if state.below is None else [state, *_floors(state.below.lane)]


class Editing:
    """Brings lanes of a mixture to the draw where an edit stands.

    Args:
        source: the mixture from there on.
        floor: the first floor of the plan.
        edits: of the run, the one that begins last.
        lanes: how many there are.
    """

    def __init__(
        self, source: StaticMixtureWorkSource, floor: Floor, edits: Sequence[Edit], lanes: int
    ) -> None:
        self._source = source
        self._edits = tuple(edits)
        names = list(edits[-1].source["components"])
        self._numbers = {name: number for number, name in enumerate(names)}
        counts = {
            each.name: np.asarray(each.dataset.counts())
            for each in source.components
            if each.name in edits[-1].source["rules"]
        }
        self._former = former_lanes(edits[-1], lanes, self._numbers, counts, len(names))
        self._chain, self._measures = chain_of(floor, names), measures_of(floor)

    def edited(self, lane: int, state: LaneState) -> LaneState:
        """Give the state of a lane from which it goes on."""
        bottom = state.bottom()
        if self._source.mixture_unit == "tokens":
            draws = self._former.token_lane(lane)
        else:
            base = None
            if len(self._edits) > 1:
                base = self._edits[-2].base(lane, self._numbers, len(self._numbers))
            draws = self._former.stream(lane, base)
        run = LaneRun(lane, draws, self._chain, len(self._numbers), bottom, self._measures)
        return with_bottom(state, _rebased(run.standing()))


def _rebased(state: LaneState) -> LaneState:
    """Let a merge begin anew where it stands: nothing that was emitted counts any more."""
    tick = state.tick
    if tick.merge is None:
        return state
    return replace(state, tick=replace(tick, merge=replace(tick.merge, base=tick.counts.tokens)))


def with_bottom(state: LaneState, bottom: LaneState) -> LaneState:
    """Put another state under the floors of a lane."""
    if state.below is None:
        return bottom
    lower = with_bottom(state.below.lane, bottom)
    return replace(state, below=replace(state.below, lane=lower))
