"""Documents that a lane holds, made again by the steps of now, which may differ from those before.

Each is known by its draw and by which split of it it is. What the steps give for that is the
document now; further splits behind the last one of before are new documents, which follow it. All
are read a few at a time, and only lengths are kept: their tokens are read when rows need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import Block, Known
from zephon.exec.half_used import token_digest
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.reread import drawn_with_neighbours, parts_of, stream_of
from zephon.exec.segment import Segment
from zephon.work.lane_stream import LaneStream

_TOGETHER = 512
"""Draws that are read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """What became of documents.

    known: all documents that their draws give now, by draw and split. place: of each in it, -1 if
    it is not there any more. extras: how many new ones follow it there. digest: of the tokens of
    those that were asked for, 0 of others. All but ``known`` of shape [old documents], int64.
    """

    known: Known
    place: NDArray[np.int64]
    extras: NDArray[np.int64]
    digest: NDArray[np.int64]

    @classmethod
    def empty(cls, measures: int) -> Derived:
        """Return what becomes of no documents."""
        nothing = np.empty(0, np.int64)
        known = replace(Known.none(), measures=np.empty((measures, 0), np.int64))
        return cls(known, nothing, nothing, nothing)

    def behind(self, other: Derived) -> Derived:
        """Return what became of the documents of another one, and then of these."""
        first = len(other.known)
        place = np.where(self.place < 0, -1, self.place + first)
        return Derived(
            Known.concat([other.known, self.known]),
            np.concatenate([other.place, place]),
            np.concatenate([other.extras, self.extras]),
            np.concatenate([other.digest, self.digest]),
        )

    def take(self, documents: NDArray[np.int64]) -> Derived:
        """Return the same of some of the old documents, in any order."""
        return Derived(
            self.known, self.place[documents], self.extras[documents], self.digest[documents]
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes documents of draws again.

    segment: the stateless steps of now. streams: where the lane draws from, or its strands.
    merged: it merges strands. field: the name of the tokens. measures: what functions of the user
    make of each row.
    """

    segment: Segment | RemoteSegment
    streams: Sequence[LaneStream]
    merged: bool
    field: str | None
    measures: Sequence[str]

    def derive(self, known: Known, hashed: NDArray[np.bool_]) -> Derived:
        """Make documents again.

        Args:
            known: the documents as they were, each once.
            hashed: those of which a digest is wanted, shape [docs].

        Raises:
            ZephonError: a row is bad now, or cannot be read.
        """
        found, order = Derived.empty(len(self.measures)), [np.empty(0, np.int64)]
        for some in self._parts(known):
            order.append(some)
            found = self._derived(known.take(some), hashed[some]).behind(found)
        return found.take(np.argsort(np.concatenate(order), kind="stable"))

    def _parts(self, known: Known) -> Iterator[NDArray[np.int64]]:
        """Cut documents into parts of so many draws, at the edges of strands and of windows."""
        strand = known.refs.component if self.merged else np.zeros(len(known), np.int32)
        for number in np.unique(strand).tolist():
            own = np.flatnonzero(strand == number)
            groups = [own]
            if self.segment.window > 1:  # an edit of the run ends a window, and begins one
                stream = stream_of(self.streams, known.refs, own, merged=self.merged)
                groups = parts_of(stream, own, known.position)
            for group in groups:
                yield from self._some(group, known.position)

    def _some(
        self, documents: NDArray[np.int64], position: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        documents = documents[np.argsort(position[documents], kind="stable")]
        windows = position[documents] // self.segment.window
        at = 0
        while at < len(documents):
            stop = min(at + _TOGETHER, len(documents)) - 1
            stop = int(np.searchsorted(windows, windows[stop], side="right"))
            yield documents[at:stop]
            at = stop

    def _derived(self, known: Known, hashed: NDArray[np.bool_]) -> Derived:
        """Make documents of one strand again; they are ordered by draw."""
        wanted = replace(known.refs, ordinal=known.position)
        draws = drawn_with_neighbours(self.segment, self.streams, wanted, merged=self.merged)
        (block,) = self.segment.run([draws])
        if block.failure is not None:
            raise block.failure
        positions, first = np.unique(known.position, return_index=True)
        own = np.flatnonzero(np.isin(block.refs.ordinal, positions))
        refs = block.refs.take(own)
        place = np.searchsorted(refs.ordinal, wanted.ordinal) + wanted.child
        stop = np.searchsorted(refs.ordinal, wanted.ordinal, side="right")
        gone = place >= stop
        place = np.where(gone, -1, place)
        extras = np.where(gone | ~wanted.last_child, 0, stop - place - 1)
        digest = np.zeros(len(known), np.int64)
        for document in np.flatnonzero(hashed & ~gone).tolist():
            digest[document] = self._digest(block, int(own[place[document]]))
        lane_draw = known.refs.ordinal[first][np.searchsorted(positions, refs.ordinal)]
        measures = [block.measures[name][own] for name in self.measures]
        made = Known(
            refs=replace(refs, ordinal=lane_draw),
            length=np.diff(block.offsets)[own],
            position=refs.ordinal,
            measures=np.array(measures, np.int64).reshape(len(measures), len(own)),
        )
        return Derived(made, place, extras, digest)

    def _digest(self, block: Block, document: int) -> int:
        if self.field is None:
            return 0
        first, stop = block.offsets[document], block.offsets[document + 1]
        return token_digest(block.buffer.columns[self.field][first:stop])
