"""Reads documents that a lane knows by reference alone, as it does after a restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.block import Block
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.rows import UNREAD, HeldRows
from zephon.exec.segment import Segment, Window
from zephon.exec.windows import windows_of
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs


def read_again(
    segment: Segment | RemoteSegment,
    streams: Sequence[LaneStream],
    held: HeldRows,
    seqs: NDArray[np.int64],
) -> None:
    """Give the unread among these documents their tokens, through the segment that made them.

    Args:
        segment: the stateless steps of the plan.
        streams: where the lane draws from, or its strands.
        held: holds the documents.
        seqs: arrival numbers, in any order, any number of times.

    Raises:
        CheckpointError: a document is not there any more, or has another length than when the
            checkpoint was taken.
    """
    unread = unread_of(held, seqs)
    if not len(unread):
        return
    known = held.known(unread)
    wanted, numbers = known.refs, known.position
    groups = [np.arange(len(unread))]
    if held.merged:  # documents are numbered within their strand
        strands = np.unique(wanted.component).tolist()
        groups = [np.flatnonzero(wanted.component == strand) for strand in strands]
    if segment.window > 1:
        groups = [
            part
            for group in groups
            for part in parts_of(
                stream_of(streams, wanted, group, merged=held.merged), group, numbers
            )
        ]
    parts = [replace(wanted.take(group), ordinal=numbers[group]) for group in groups]
    draws = [drawn_with_neighbours(segment, streams, part, merged=held.merged) for part in parts]
    # Windows of two parts of a lane may have one number: what sees them must not take them for one.
    runs = [draws] if segment.window == 1 else [[each] for each in draws]
    blocks = [block for each in runs for block in segment.run(each)]
    for group, part, block in zip(groups, parts, blocks, strict=True):
        if block.failure is not None:
            raise block.failure
        found = places_in(block, part, held.lengths(unread[group]))
        if found is None:
            raise CheckpointError(
                f"restore: documents of lane {held.lane} have other lengths than when the "
                "checkpoint was taken; the data changed under it, restore it with the data it was "
                "taken from"
            )
        held.fill(unread[group], block, found)


def unread_of(held: HeldRows, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the unread among these documents, each once."""
    if not held.unread:
        return seqs[:0]
    part, _, _ = held.places(seqs)
    return np.unique(seqs[part == UNREAD])


def places_in(block: Block, wanted: Refs, lengths: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Find each wanted document in a block; the splits of a draw stand side by side, in order.

    Args:
        block: of the draws that they came from.
        wanted: the documents.
        lengths: tokens of each.

    Returns:
        The place of each; None if one is not there, or is another one.
    """
    found = np.searchsorted(block.refs.ordinal, wanted.ordinal) + wanted.child
    same = int(found.max()) < len(block.refs) and (
        np.array_equal(block.refs.ordinal[found], wanted.ordinal)
        and np.array_equal(block.refs.child[found], wanted.child)
        and np.array_equal(np.diff(block.offsets)[found], lengths)
    )
    return found if same else None


def drawn_with_neighbours(
    segment: Segment | RemoteSegment, streams: Sequence[LaneStream], wanted: Refs, *, merged: bool
) -> Refs | Window:
    """Give the draws of documents, and all that an operator sees together with them.

    Args:
        segment: that is to make them.
        streams: where the lane draws from, or its strands.
        wanted: the documents, one at least; of one strand, by whose draws they are numbered.
        merged: the lane merges strands.
    """
    ordinals, firsts = np.unique(wanted.ordinal, return_index=True)
    if segment.window == 1:
        return wanted.take(firsts).whole_rows()
    stream = stream_of(streams, wanted, np.zeros(1, np.int64), merged=merged)
    refs = windows_of(stream, ordinals, segment.window)
    return Window(refs, int(ordinals[0]), int(ordinals[-1]) + 1)


def stream_of(
    streams: Sequence[LaneStream], wanted: Refs, group: NDArray[np.int64], *, merged: bool
) -> LaneStream:
    """Give what some documents were drawn from: their lane, or their strand."""
    return streams[int(wanted.component[group[0]]) if merged else 0]


def parts_of(
    stream: LaneStream, group: NDArray[np.int64], numbers: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Cut some documents where an edit of the run stands: their windows have nothing in common."""
    firsts = np.array([stream.part(number)[0] for number in numbers[group].tolist()])
    return [group[firsts == first] for first in np.unique(firsts).tolist()]
