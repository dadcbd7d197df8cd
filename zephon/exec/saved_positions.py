"""Where a rank stands, as JSON values, and how any rank goes on from there.

With a global batch, a position between steps is the number of the step and nothing else: so a state
does not tell how many ranks took it. Of ranks that ended apart it is the least end; their lanes say
themselves where they stand. Within a step it says how far each group is, of those whose
ranks told. Without a global batch it says whose turn is next on each rank that told.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from zephon.errors import CheckpointError
from zephon.exec.delivery import Position
from zephon.exec.history import LaneState
from zephon.exec.lanes import Topology
from zephon.exec.saved_values import told

__all__ = ["PARTIAL_STEP", "position_from_dict", "position_to_dict"]

PARTIAL_STEP = "partial_step"
"""The word that lets a run begin a step anew that was partly handed out."""


def position_to_dict(position: Position, topology: Topology) -> dict[str, Any]:
    """Write down where a rank stands."""
    group = topology.dp_group_id
    if topology.global_batch_size is None:
        return {
            "turns": {str(group): position.turn},
            "dp_degree": topology.dp_degree,
            "mapping": topology.mapping_strategy,
        }
    if not position.delivered:
        return {"step": position.step}
    delivered: list[int | None] = [None] * topology.dp_degree
    delivered[group] = position.delivered
    return {"step": position.step, "dp_degree": topology.dp_degree, "delivered": delivered}


def position_from_dict(
    saved: Mapping[str, Any],
    topology: Topology,
    states: Mapping[int, LaneState],
    rows: Mapping[int, int],
    allow: Collection[str],
    *,
    edited: bool = False,
) -> Position:
    """Say where a rank begins, given where those stood that took the checkpoint.

    Args:
        saved: what ``position_to_dict`` wrote, or the union of several.
        topology: of this rank.
        states: of the lanes that it runs.
        rows: those handed out of each lane that the checkpoint holds and that goes on.
        allow: ``partial_step`` lets other ranks begin a step anew.
        edited: other rows follow than those that would have: then any rank begins it anew.

    Raises:
        CheckpointError: it stands within a step, where these ranks cannot go on.
    """
    step = int(saved.get("step", topology.since[0]))  # the first, where ranks shared none
    begun = Position(step=step)
    if topology.global_batch_size is None:
        own = {lane: state.rows for lane, state in states.items()}
        turn, known = next_turn(saved, topology, rows)
        if not known:
            warnings.warn(
                "restore: taken mid-window: lanes have handed out different numbers of batches, so "
                "ranks take turns in another order until the window ends; nothing is lost or "
                "repeated",
                RuntimeWarning,
                stacklevel=4,
            )
        begun = Position(rows=own, turn=turn)
    if "delivered" not in saved:
        return begun
    degree = int(saved["dp_degree"])
    if edited:
        if PARTIAL_STEP in allow:
            return begun
        raise CheckpointError(
            f"restore: the checkpoint was taken inside step {step}, the rest of which would be "
            "others than its first rows belong to; change a run at the end of a step, or pass "
            f"{PARTIAL_STEP!r} in allow, too, which delivers step {step} again from its first row"
        )
    if degree != topology.dp_degree:
        if PARTIAL_STEP in allow:
            return begun
        raise CheckpointError(
            f"restore: the checkpoint was taken inside step {step} with dp_degree={degree}, "
            f"options say {topology.dp_degree}; restore it with dp_degree={degree}, take "
            f"checkpoints at the end of a step, or pass allow={{{PARTIAL_STEP!r}}}, which delivers "
            f"step {step} again from its first row"
        )
    delivered = saved["delivered"][topology.dp_group_id]
    if delivered is None:
        groups = [group for group, rows in enumerate(saved["delivered"]) if rows is not None]
        raise CheckpointError(
            f"restore: the checkpoint was taken inside step {step} and does not say how much of it "
            f"group {topology.dp_group_id} had handed out, only {told('group', groups)}; pass the "
            "parts of all ranks, restore([part, part, ...])"
        )
    return Position(step=step, delivered=int(delivered))


def own_position(
    saved: Mapping[str, Any],
    topology: Topology,
    rows: Mapping[int, int],
    allow: Collection[str],
) -> dict[str, Any]:
    """Write down where a rank stands that is to go on from a position, and has not begun.

    Args:
        saved, topology, rows, allow: as for ``position_from_dict``.

    Raises:
        CheckpointError: it cannot go on from there.
    """
    if topology.global_batch_size is None:
        position = Position(turn=next_turn(saved, topology, rows)[0])
    else:
        position = position_from_dict(saved, topology, {}, rows, allow)
    return position_to_dict(position, topology)


def next_turn(
    saved: Mapping[str, Any], topology: Topology, rows: Mapping[int, int]
) -> tuple[int, bool]:
    """Find whose turn is next: what a rank of the same lanes said, or the lane that is behind.

    Args:
        saved, topology, rows: as for ``position_from_dict``.

    Returns:
        the lane, and whether it is the one that would have come.
    """
    lanes = topology.own_lanes()
    for group, turn in saved.get("turns", {}).items():
        then = replace(
            topology,
            dp_degree=int(saved["dp_degree"]),
            dp_group_id=int(group),
            mapping_strategy=str(saved["mapping"]),
        )
        if then.own_lanes() == lanes:
            return int(turn), True
    _, behind = min(((rows[lane], lane) for lane in lanes if lane in rows), default=(0, 0))
    return behind, len(set(rows.values())) < 2
