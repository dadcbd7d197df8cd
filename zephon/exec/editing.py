"""Begins an edit of a run: takes lanes from where a checkpoint stands to what holds from there on.

What was drawn before the checkpoint is gone along once more, by the rules of then and as integers
alone; so no draw of an edited lane's log lies before the edit.

The file is long because all that an edit cannot do yet is refused here, beside what it does.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError, NotYetError
from zephon.exec.arrivals import Counts
from zephon.exec.begun_anew import Anew, Dropped, undelivered_of
from zephon.exec.data_changes import Recorded, rows_of
from zephon.exec.edited_source import EditedSource
from zephon.exec.edits import RESIZED, Edit, Growth, Removed, with_removed
from zephon.exec.fingerprint import digest
from zephon.exec.floors import Floor, floors_of
from zephon.exec.former_mixtures import FormerMixtures, counts_of
from zephon.exec.grown_data import ShardPlaces, growth_of, joining
from zephon.exec.history import LaneState
from zephon.exec.lane_run import LaneRun
from zephon.exec.lane_states import lane_from_dict
from zephon.exec.lane_table import trees_of
from zephon.exec.lanes import Topology
from zephon.exec.launch import step_of
from zephon.exec.policies import Held
from zephon.exec.policies.merge_point import MergePoint
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.policy_chain import chain_of, floor_then, measures_of
from zephon.exec.rebuilding import Undelivered
from zephon.exec.renumbering import Renumbering
from zephon.exec.saved_values import told, whole
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.tree import source_first
from zephon.work.lane_stream import LaneStream
from zephon.work.schedule import StepSize
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_lane import TokenLane


def edited(
    plan: Plan,
    source: WorkSource,
    topology: Topology,
    restored: Mapping[str, Any],
    states: Mapping[int, LaneState],
    words: Collection[str],
) -> tuple[list[Edit], Mapping[int, LaneState]]:
    """Begin an edit at a checkpoint, if its recipe and the present one differ.

    Warns of what it drops.

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
        CheckpointError: the checkpoint does not hold all lanes, a lane has ended, or a dataset that
            was taken away comes back as another one.
        NotYetError: the source is a custom one, or a change cannot be made in this pipeline.
    """
    edits = [Edit.from_dict(saved, topology.lanes) for saved in restored["edits"]]
    if not words:
        return edits, states
    mixture = source if isinstance(source, StaticMixtureWorkSource) else None
    if mixture is None and set(words) != {RESIZED}:
        raise NotYetError(
            f"restore: allow={min(words)!r} is not there yet for a work source of your own; "
            "restore the checkpoint with the source that it was taken from"
        )
    every = _all_states(restored, topology.lanes)
    check_editable(every)
    before = restored["recipe"]
    names = [each.name for each in source.components]
    known = with_removed(names if mixture is None else before["source"]["components"], edits)
    removed = {} if mixture is None else _removed(before, edits, mixture)
    edits.append(
        Edit.at(
            list(every.values()),
            known,
            edits[-1] if edits else None,
            words=sorted(words),
            step=restored["position"].get("step"),
            size=step_of(plan, before["global_batch_size"]),
            source=before["source"],
            removed=removed,
            grown=_grown(before["data"], source),
        )
    )
    if not edits[-1].rebases or mixture is None:
        return edits, states
    here = [edit for edit in edits if edit.rebases]
    edits[-1] = here[-1] = joining(mixture, here, topology.lanes)
    editing = Editing(
        mixture,
        floors_of(plan)[0],
        before["steps"],
        here,
        Renumbering.between(known, with_removed(names, edits)),
        lanes=topology.lanes,
        step=step_of(plan, topology.global_batch_size),
    )
    if not editing.numbers.same:
        _check_memory(plan)
    found = {lane: editing.edited(lane, state) for lane, state in states.items()}
    dropped = sum((some for _, some in found.values()), Dropped())
    if dropped.documents:
        lost = dropped.told("gone with it" if len(removed) == 1 else "gone with them")
        gone = ", ".join(map(repr, removed))
        warnings.warn(f"restore: removed {gone}: {lost}", RuntimeWarning, stacklevel=5)
    return edits, {lane: state for lane, (state, _) in found.items()}


def _grown(before: Mapping[str, Any], source: WorkSource) -> dict[str, Growth]:
    """Say to which datasets shards were added, given the manifests of then."""
    found = {
        c.name: growth_of(before[c.name], c.dataset) for c in source.components if c.name in before
    }
    return {name: growth for name, growth in found.items() if growth is not None}


def check_sizes(restored: Mapping[str, Any], topology: Topology, source: WorkSource) -> None:
    """Refuse steps of another size where that decides what is drawn, or lanes are not even.

    Args:
        restored: the checkpoint.
        topology: from there on.
        source: from there on.

    Raises:
        CheckpointError: ranks begin to share steps where lanes have handed out unlike many rows.
        NotYetError: the schedule counts steps.
    """
    was, size = restored["recipe"]["global_batch_size"], topology.global_batch_size
    if was == size:
        return
    rows = [whole(each, "rows") for each in trees_of(restored["lanes"]).values()]
    if was is None and len(set(rows)) > 1:
        raise CheckpointError(
            f"restore: global_batch_size was None, is {size}, and lanes have handed out from "
            f"{min(rows)} to {max(rows)} rows, but each gives as many to a step; take the "
            "checkpoint after a whole round of batches, one of each lane"
        )
    schedule = source.schedule if isinstance(source, StaticMixtureWorkSource) else None
    if schedule is not None and schedule.unit == "steps":
        raise NotYetError(
            f"restore: global_batch_size was {was}, is {size}, and the schedule counts steps, "
            "which cannot be of two sizes yet; let it count samples or tokens"
        )


def _removed(
    before: Mapping[str, Any], edits: Sequence[Edit], source: StaticMixtureWorkSource
) -> dict[str, Removed]:
    """List what an edit takes away; refuse what comes back as something else.

    Args:
        before: the recipe before it.
        edits: those before it.
        source: from there on.
    """
    here = {each.name for each in source.components}
    for component, rules in source.rules():
        name = component.name
        earlier = [edit.removed[name] for edit in edits if name in edit.removed]
        if not earlier or name in before["source"]["rules"]:
            continue
        recorded = component.dataset.recorded_manifest()
        if _digest_of(recorded, rules.recipe()) != earlier[-1].digest:
            raise CheckpointError(
                f"restore: dataset {name!r} was removed from this run earlier, and would go on "
                "where it stood, but its data or rules are others now; add it as it was, or by "
                "another name, under which it begins anew"
            )
    return {
        name: Removed(rows_of(before["data"][name]), _digest_of(before["data"][name], rules))
        for name, rules in before["source"]["rules"].items()
        if name not in here
    }


def _digest_of(recorded: Recorded, rules: Mapping[str, Any]) -> str:
    return digest(json.loads(json.dumps([recorded, rules])))


def _check_memory(plan: Plan) -> None:
    """Refuse other components where an operator remembers those that there were."""
    if any(isinstance(node, physical.CallInOrder) for node in source_first(plan.physical)):
        raise NotYetError(
            "restore: datasets cannot be added, removed or listed in another order yet in a "
            "pipeline with an operator that remembers rows; list them as they were, and take the "
            "weight of one away, or leave that operator out from the beginning"
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
        steps: of the recipe before it.
        edits: of the run, the one that begins last.
        numbers: of components before it, and from there on.
        lanes: how many there are.
        step: what a step is from there on.
    """

    def __init__(
        self,
        source: StaticMixtureWorkSource,
        floor: Floor,
        steps: Sequence[Mapping[str, Any]],
        edits: Sequence[Edit],
        numbers: Renumbering,
        *,
        lanes: int,
        step: StepSize | None,
    ) -> None:
        self.numbers = numbers
        self._now = EditedSource(source, lanes, step, edits)
        self._edits = tuple(edits)
        edit = edits[-1]
        names = list(edit.drawn)
        self._then = {name: number for number, name in enumerate(names)}
        self._gone = np.array([self._then[name] for name in edit.removed], np.int64)
        former = FormerMixtures(edits, lanes, self._then, counts_of(source), len(names))
        self._former = former.lanes(len(edits) - 1)
        self._shards = ShardPlaces(edit.grown, source, self._then)
        self._chain, self._measures = chain_of(floor_then(floor, steps), names), measures_of(floor)
        now = with_removed([each.name for each in source.components], edits)
        self._anew = Anew(chain_of(floor, now), self._measures, numbers)

    def edited(self, lane: int, state: LaneState) -> tuple[LaneState, Dropped]:
        """Give the state of a lane from which it goes on, and what of it is dropped."""
        state = self._shards.state(lane, state)
        bottom, count, base = state.bottom(), len(self._then), None
        if len(self._edits) > 1:
            base = self._edits[-2].base(lane, self._then, count)
        draws = self._now.draws(lane)
        if isinstance(draws, TokenLane):
            former = self._former.token_lane(lane)
        else:
            former = self._former.stream(lane, base)
        run = LaneRun(lane, former, self._chain, count, bottom, self._measures)
        dropped, merge = Dropped(), None
        if run.strands is not None and isinstance(draws, TokenLane):
            merge = self._merge(draws, run.strands.point(), run.counts)
        if len(self._gone):
            parts, known = undelivered_of(run)
            digests = bottom.halves.by_name()
            held = Undelivered.without(parts, known, digests, self._gone, self.numbers)
            weights = _weights(draws, merge, bottom.last_draw + 1)
            standing, dropped = self._anew.state(run, bottom, held, weights)
        else:
            standing = self._renumbered(run.standing())
        if merge is not None:
            standing = replace(standing, tick=replace(standing.tick, merge=merge))
        return with_bottom(state, standing), dropped

    def _renumbered(self, state: LaneState) -> LaneState:
        """Tell of the components that are there now."""
        numbers, tick, carried = self.numbers, state.tick, state.carried
        stages = self._anew.chain.renumbered(tick.stages, self._chain, numbers)
        # Policies may hold their units in another order then.
        seqs, firsts = np.unique(_pieces(tick.stages), return_index=True)
        known = tick.known.take(firsts[np.searchsorted(seqs, _pieces(stages))])
        tick = replace(
            tick,
            stages=stages,
            known=known.renumbered(numbers),
            counts=tick.counts.renumbered(numbers),
        )
        carried = None if carried is None else carried.renumbered(numbers)
        return replace(state, tick=tick, carried=carried)

    def _merge(self, draws: TokenLane, point: MergePoint, counts: Counts) -> MergePoint:
        """Let a merge begin anew where it stands: nothing that was emitted counts any more.

        A component that was not read before begins; one that is finished stays so.
        """
        then, numbers = point.renumbered(self.numbers), self.numbers
        emitted = counts.renumbered(numbers).tokens
        read = np.array([self._then[name] for name in self._edits[-1].source["rules"]], np.int64)
        known = np.zeros(numbers.count, bool)
        known[numbers.place[read]] = True
        here = np.array([strand.length != 0 for strand in draws.strands])
        left = np.array([np.inf if most is None else most for most in draws.budgets]) > emitted
        return MergePoint(then.position, emitted, here & np.where(known, then.live, left))


def _pieces(stages: Sequence[Held]) -> NDArray[np.int64]:
    """List the document of each piece that policies hold."""
    return np.concatenate([NO_INTS, *(held.units.seq for held in stages)])


def _weights(
    draws: LaneStream | TokenLane, merge: MergePoint | None, ordinal: int
) -> NDArray[np.float64] | None:
    """Give the weights in force where an edit stands."""
    if isinstance(draws, TokenLane):
        if merge is None:
            return None
        return draws.courses.rebased(float(merge.base.sum()), merge.live).weights_at(0.0)
    return draws.weights_at(ordinal)


def with_bottom(state: LaneState, bottom: LaneState) -> LaneState:
    """Put another state under the floors of a lane."""
    if state.below is None:
        return bottom
    lower = with_bottom(state.below.lane, bottom)
    return replace(state, below=replace(state.below, lane=lower))
