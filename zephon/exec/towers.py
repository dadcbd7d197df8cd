"""One lane floor upon floor, where operators of the user see its rows in order.

The lowest floor draws rows, each other one has its rows from the operator under it. The engine
takes rows off the top, and supplies the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Counts
from zephon.exec.custom_steps import custom_step
from zephon.exec.entry import SNAPSHOT_GROUPS, Entry
from zephon.exec.history import LaneState
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain
from zephon.exec.relay import ReadAgain, Relay
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.reread import read_again
from zephon.exec.segment import Segment
from zephon.ops.context import OpServices
from zephon.planner import physical
from zephon.planner.logical.custom import GROUP
from zephon.work.lane_stream import LaneStream
from zephon.work.token_lane import TokenLane


@dataclass(frozen=True, slots=True)
class Ground:
    """The first floor of a plan; shared by all lanes.

    segment: makes documents of draws. chain, measures: the policies, and what they are told of
    rows.
    """

    segment: Segment | RemoteSegment
    chain: Chain
    measures: tuple[str, ...] = ()


def build_lane(
    ground: Ground,
    entries: Sequence[Entry],
    lane: int,
    draws: LaneStream | TokenLane,
    components: int,
    state: LaneState | None,
) -> LaneRun:
    """Build a lane at a state, floor upon floor; reads no data.

    Args:
        ground: the first floor.
        entries: the floors above it, lowest first.
        lane: which.
        draws: the lane's draws, or its strands.
        components: how many the work source has.
        state: of the top floor; None: at the beginning of the data.

    Returns:
        The top floor.

    Raises:
        CheckpointError: the state is one of other floors.
    """
    states = [state]
    for _ in entries:
        above = states[-1]
        states.append(None if above is None or above.below is None else above.below.lane)
    run = LaneRun(lane, draws, ground.chain, components, states.pop(), ground.measures)
    read: ReadAgain = partial(read_again, ground.segment, [i.stream for i in run.intakes])
    for entry in entries:
        above = states.pop()
        relay = Relay(entry, run, read, above)
        run = LaneRun(lane, relay.groups, entry.chain, components, above, entry.noted, relay)
        read = relay.read_again
    return run


def read_in_lane(ground: Ground, run: LaneRun, seqs: NDArray[np.int64]) -> None:
    """Give unread documents of a lane's top floor their tokens; see ``reread.read_again``."""
    if run.below is not None:
        run.below.read_again(run.held, seqs)
    else:
        read_again(ground.segment, [i.stream for i in run.intakes], run.held, seqs)


def counted(run: LaneRun, floor: int) -> Counts:
    """Count what a lane has drawn: rows at the bottom, tokens on a floor, counted from the top."""
    tokens = next(islice(run.floors(), floor, None)).counts.tokens
    return replace(run.bottom.counts, tokens=tokens)


def counted_at(state: LaneState, floor: int) -> Counts:
    """Count what a lane had drawn at a state, as ``counted`` does."""
    drawn = state.bottom()
    rows = drawn.counts()
    while floor and state.below is not None:
        state, floor = state.below.lane, floor - 1
    return replace(rows, tokens=state.counts().tokens)


def how_it_resumes(nodes: Sequence[physical.CallInOrder]) -> str:
    """Say in a line for people how a restore makes again what operators of the user remember."""
    parts = []
    for node in nodes:
        name = getattr(node.op, "name", node.op.call)
        if node.every == 0 or custom_step(node.op, OpServices()).snapshots:
            rows = SNAPSHOT_GROUPS * GROUP
            parts.append(f"{name} writes its memory down every {rows:,} rows")
        elif node.every == 1:
            parts.append(f"{name} is run again on the {GROUP} rows around a held one")
        else:
            parts.append(f"{name} is flushed every {node.every * GROUP:,} rows")
    return f"resumes by replay: {'; '.join(parts)}" if parts else "resumes by reference"
