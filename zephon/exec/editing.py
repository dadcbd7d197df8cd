"""Begins an edit of a run: takes lanes from where a checkpoint stands to what holds from there on.

What was drawn before the checkpoint is gone along once more, by the rules of then and as integers
alone; so no draw of an edited lane's log lies before the edit.

The file is long because all that an edit cannot do yet is refused here, beside what it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zephon.errors import CheckpointError, NotYetError
from zephon.exec.arrivals import Counts
from zephon.exec.edited_source import former_lanes
from zephon.exec.edits import RESIZED, Edit
from zephon.exec.floors import Floor, floors_of
from zephon.exec.history import LaneState, Tick
from zephon.exec.lane_run import LaneRun
from zephon.exec.lane_states import lane_from_dict
from zephon.exec.lane_table import trees_of
from zephon.exec.lanes import Topology
from zephon.exec.launch import step_of
from zephon.exec.policies.merge_point import MergePoint
from zephon.exec.policy_chain import chain_of, measures_of
from zephon.exec.saved_values import told
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.tree import source_first
from zephon.work.schedule import StepSize
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
    if not isinstance(source, StaticMixtureWorkSource) and set(words) != {RESIZED}:
        raise NotYetError(
            f"restore: allow={min(words)!r} is not there yet for a work source of your own; "
            "restore the checkpoint with the source that it was taken from"
        )
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
    if not edits[-1].rebases or not isinstance(source, StaticMixtureWorkSource):
        return edits, states
    _check_datasets(restored["recipe"]["source"], source, plan)
    step = step_of(plan, topology.global_batch_size)
    edits_here = [edit for edit in edits if edit.rebases]
    editing = Editing(source, floors_of(plan)[0], edits_here, topology.lanes, step)
    return edits, {lane: editing.edited(lane, state) for lane, state in states.items()}


def check_sizes(before: Mapping[str, Any], topology: Topology, source: WorkSource) -> None:
    """Refuse steps of another size where that decides what is drawn, or what was delivered.

    Args:
        before: the checkpoint's recipe.
        topology: from there on.
        source: from there on.

    Raises:
        NotYetError: it does.
    """
    was, size = before["global_batch_size"], topology.global_batch_size
    if was == size:
        return
    if was is None or size is None:
        raise NotYetError(
            f"restore: global_batch_size was {was}, is {size}: a run cannot begin yet to share "
            "steps, or to share none; keep it, or set another size"
        )
    schedule = source.schedule if isinstance(source, StaticMixtureWorkSource) else None
    if schedule is not None and schedule.unit == "steps":
        raise NotYetError(
            f"restore: global_batch_size was {was}, is {size}, and the schedule counts steps, "
            "which cannot be of two sizes yet; let it count samples or tokens"
        )


def _check_datasets(before: Mapping[str, Any], source: StaticMixtureWorkSource, plan: Plan) -> None:
    """Refuse datasets that come or go where their components would be others."""
    names = [each.name for each in source.components]
    if names[: len(before["components"])] == before["components"] != names:
        _check_added(names[-1], plan)
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
    if names[: len(before["components"])] != before["components"]:
        raise NotYetError(
            "restore: datasets that are added must be listed behind those that were there, "
            f"{', '.join(map(repr, before['components']))}; list them last"
        )


def _check_added(name: str, plan: Plan) -> None:
    """Refuse a dataset more where a step must know of it from the beginning."""
    what = None
    if any(isinstance(n, physical.CallInOrder) for n in source_first(plan.physical)):
        what = "an operator that remembers rows"
    for node in source_first(plan.physical):
        if isinstance(node, physical.KeepMixture) and node.mixture is not None:
            what = "ensure_mixture(mixture=...)"
    if what is not None:
        raise NotYetError(
            f"restore: dataset {name!r} cannot be added yet to a pipeline with {what}; leave it "
            "out, or leave that out from the beginning"
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
        step: what a step is from there on.
    """

    def __init__(
        self,
        source: StaticMixtureWorkSource,
        floor: Floor,
        edits: Sequence[Edit],
        lanes: int,
        step: StepSize | None,
    ) -> None:
        self._step = step
        self._source = source
        self._lanes = lanes
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
        self._wider = chain_of(floor, [each.name for each in source.components])

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
        standing = run.standing()
        tick = self._widened(standing.tick)
        if tick.merge is not None:
            tick = replace(tick, merge=self._rebased(lane, tick.merge, tick.counts))
        carried = standing.carried
        if carried is not None:
            carried = carried.widened(len(self._source.components))
        return with_bottom(state, replace(standing, tick=tick, carried=carried))

    def _widened(self, tick: Tick) -> Tick:
        """Tell of the components that are there now."""
        count = len(self._source.components)
        if count == len(self._numbers):
            return tick
        counts = tick.counts.widened(count)
        return replace(tick, stages=self._wider.widened(tick.stages), counts=counts)

    def _rebased(self, lane: int, merge: MergePoint, counts: Counts) -> MergePoint:
        """Let a merge begin anew where it stands: nothing that was emitted counts any more.

        A component that was not read before begins; one that is finished stays so.
        """
        strands = self._source.token_lane(lane, self._lanes, step=self._step).strands
        live = np.array([strand.length is None or strand.length > 0 for strand in strands])
        for name in self._edits[-1].source["rules"]:
            live[self._numbers[name]] &= merge.live[self._numbers[name]]
        position = np.pad(merge.position, (0, len(live) - len(merge.position)))
        return MergePoint(position, counts.tokens, live)


def with_bottom(state: LaneState, bottom: LaneState) -> LaneState:
    """Put another state under the floors of a lane."""
    if state.below is None:
        return bottom
    lower = with_bottom(state.below.lane, bottom)
    return replace(state, below=replace(state.below, lane=lower))
