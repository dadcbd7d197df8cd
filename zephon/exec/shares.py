"""One rank's batches that several processes hand out in turn: which process has which.

With a global batch every process runs all lanes of the rank, and hands out one batch in so many:
it makes documents and rows of the others' batches, too, and leaves those unassembled. Without one
it runs lanes of its own, and makes nothing twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zephon.exec.delivery import Group
from zephon.exec.lane_table import trees_of
from zephon.exec.lanes import Share, Topology
from zephon.exec.saved_positions import next_turn
from zephon.exec.saved_values import flag, whole


def shared_out(groups: Iterator[Group], share: Share) -> Iterator[Group]:
    """Mark the groups that are not of this process's share."""
    for number, group in enumerate(groups):
        ours = number >= share.passed and (number - share.passed) % share.every == 0
        yield group if ours else replace(group, elsewhere=True)


def share_of(
    topology: Topology,
    worker: int,
    workers: int,
    restored: Mapping[str, Any] | None,
    *,
    by_lanes: bool,
) -> Share | None:
    """Give a worker its share of what a rank has to hand out, from its beginning or from a state.

    Whoever asks worker after worker gets the rank's batches in the rank's order; by lanes, until
    the first of them ends: those that are left take other turns than in one process.

    Args:
        topology: of the rank.
        worker: which of the workers.
        workers: how many hand out the rank's batches.
        restored: a state of the rank; None: the beginning.
        by_lanes: workers run lanes of their own.

    Returns:
        None: there is nothing to do for it, since fewer workers have all lanes.
    """
    if not by_lanes:
        return Share(passed=worker, every=workers)
    lanes = topology.own_lanes()
    active = busy(len(lanes), workers)
    if active < workers and worker == 0:
        fits = [str(count) for count in range(1, len(lanes) + 1) if len(lanes) % count == 0]
        warnings.warn(
            f"to_torch_dataset: this rank's {len(lanes)} lanes are run by {active} of "
            f"num_workers={workers}, the others idle; none does with {', '.join(fits)}, nor with "
            "any number if global_batch_size is set",
            RuntimeWarning,
            stacklevel=4,
        )
    first = 0 if restored is None else _whose_turn(topology, lanes, restored)
    in_turn = lanes[first:] + lanes[:first]
    return Share(lanes=in_turn[worker::active]) if worker < active else None


def resumed_share(
    workers: int, restored: Mapping[str, Any], passed: int, *, by_lanes: bool
) -> Share:
    """Give the share of a worker that goes on from its own state.

    Args:
        workers: as many as when it was taken.
        restored: the state.
        passed: batches that follow it, and that are others' or out already.
        by_lanes: workers run lanes of their own.
    """
    if by_lanes:
        return Share(lanes=tuple(trees_of(restored["lanes"])), passed=passed)
    return Share(passed=passed, every=workers)


def worker_note(topology: Topology, budget: int) -> str:
    """Say what workers of a loader cost.

    Args:
        topology: of the rank.
        budget: bytes of the memory budget.
    """
    more = "each of more makes all rows of this rank again, and has"
    if topology.global_batch_size is None:
        more = f"more share this rank's {len(topology.own_lanes())} lanes evenly, and each has"
    return (
        "to_torch_dataset: num_workers=0 is the fastest as a rule, and 1 keeps the trainer's "
        f"interpreter free; {more} {budget / (1 << 20):,.4g} MiB of its own"
    )


def busy(lanes: int, workers: int) -> int:
    """Count the workers that get lanes: the most of which each has as many.

    >>> busy(4, 3), busy(6, 8), busy(7, 4)
    (2, 6, 1)
    """
    return next(count for count in range(min(lanes, workers), 0, -1) if lanes % count == 0)


def _whose_turn(topology: Topology, lanes: Sequence[int], restored: Mapping[str, Any]) -> int:
    """Give the place of the lane whose turn is next."""
    saved = trees_of(restored["lanes"])
    rows = {lane: whole(each, "rows") for lane, each in saved.items() if not flag(each, "ended")}
    turn, _ = next_turn(restored["position"], topology, rows)
    return next((place for place, lane in enumerate(lanes) if lane >= turn), 0)
