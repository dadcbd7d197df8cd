"""Reads documents that a lane knows by reference alone, as it does after a restore."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.block import Block
from zephon.exec.lane_run import LaneRun
from zephon.exec.rows import UNREAD
from zephon.exec.segment import Segment
from zephon.work.refs import Refs


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
    if not run.held.unread:
        return
    part, _, _ = run.held.places(seqs)
    unread = np.unique(seqs[part == UNREAD])
    if not len(unread):
        return
    known = run.held.known(unread)
    wanted, numbers = known.refs, known.position
    groups = [np.arange(len(unread))]
    if run.strands is not None:  # documents are numbered within their strand
        strands = np.unique(wanted.component).tolist()
        groups = [np.flatnonzero(wanted.component == strand) for strand in strands]
    parts = [replace(wanted.take(group), ordinal=numbers[group]) for group in groups]
    draws = [part.take(np.unique(part.ordinal, return_index=True)[1]) for part in parts]
    blocks = segment.run([part.whole_rows() for part in draws])
    for group, part, block in zip(groups, parts, blocks, strict=True):
        if block.failure is not None:
            raise block.failure
        run.held.fill(unread[group], block, _found(run, part, block, unread[group]))


def _found(run: LaneRun, wanted: Refs, block: Block, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find each wanted document in a block; the splits of a draw stand side by side, in order."""
    found = np.searchsorted(block.refs.ordinal, wanted.ordinal) + wanted.child
    same = int(found.max()) < len(block.refs) and (
        np.array_equal(block.refs.ordinal[found], wanted.ordinal)
        and np.array_equal(block.refs.child[found], wanted.child)
        and np.array_equal(np.diff(block.offsets)[found], run.held.lengths(seqs))
    )
    if not same:
        raise CheckpointError(
            f"restore: documents of lane {run.lane} have other lengths than when the checkpoint "
            "was taken; the data changed under it, restore it with the data it was taken from"
        )
    return found
