"""What can be said of the end of a run before anything is read: how long lanes are."""

from __future__ import annotations

from collections.abc import Callable

from zephon.exec.lanes import Topology
from zephon.exec.strands import rule_of
from zephon.work.lane_stream import LaneStream
from zephon.work.token_lane import TokenLane

DrawsOf = Callable[[int], LaneStream | TokenLane]
"""Gives a lane's draws, or its strands, from the beginning."""


def length_of(draws: LaneStream | TokenLane) -> int | None:
    """Count a lane's draws; None if it never ends, or only what it reads tells where."""
    return None if isinstance(draws, TokenLane) else draws.length


def never_ends(draws: LaneStream | TokenLane) -> bool:
    """Say whether a lane has no end, whatever its documents are."""
    return rule_of(draws).endless if isinstance(draws, TokenLane) else draws.length is None


def known_steps(topology: Topology, draws_of: DrawsOf) -> int | None:
    """Return T where each draw is a row: then all ranks know it beforehand.

    None: no lane ends, or there is no global batch.
    """
    if topology.global_batch_size is None:
        return None
    lengths = [length_of(draws_of(lane)) for lane in range(topology.lanes)]
    finite = [length for length in lengths if length is not None]
    if not finite:
        return None
    first, before = topology.since
    return first + (min(finite) - before) // topology.rows_per_lane


def can_end(topology: Topology, draws_of: DrawsOf) -> bool:
    """Say whether any lane may end, of all ranks' lanes."""
    return not all(never_ends(draws_of(lane)) for lane in range(topology.lanes))
