"""Reads documents that a lane knows by reference alone, as it does after a restore."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.lane_run import LaneRun
from zephon.exec.rows import UNREAD
from zephon.exec.segment import Segment


def read_again(segment: Segment, run: LaneRun, seqs: NDArray[np.int64]) -> None:
    """Give the unread among these documents their tokens, through the segment that made them.

    Args:
        segment: the stateless steps of the plan.
        run: the lane that holds the documents.
        seqs: arrival numbers, in any order, any number of times.

    Raises:
        CheckpointError: a document is not there any more, or has another length than when the
            checkpoint was taken.
    """
    if run.held.unread_until <= run.held.base:
        return
    part, _, _ = run.held.places(seqs)
    unread = np.unique(seqs[part == UNREAD])
    if not len(unread):
        return
    wanted = run.held.refs(unread)
    draws = wanted.take(np.unique(wanted.ordinal, return_index=True)[1]).whole_rows()
    (block,) = segment.run([draws])
    if block.failure is not None:
        raise block.failure
    # The splits of a draw stand side by side, in order.
    found = np.searchsorted(block.refs.ordinal, wanted.ordinal) + wanted.child
    same = int(found.max()) < len(block.refs) and (
        np.array_equal(block.refs.ordinal[found], wanted.ordinal)
        and np.array_equal(block.refs.child[found], wanted.child)
        and np.array_equal(np.diff(block.offsets)[found], run.held.lengths(unread))
    )
    if not same:
        raise CheckpointError(
            f"restore: documents of lane {run.lane} have other lengths than when the checkpoint "
            "was taken; the data changed under it, restore it with the data it was taken from"
        )
    run.held.fill(unread, block, found)
