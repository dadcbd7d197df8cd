"""A lane of a custom source: draws by position, cut from the source's chunks as they are wanted.

Chunks come one after another, and workers ask for draws in any order; so chunks are kept until the
engine says that nothing before some draw is wanted again. The lane also keeps where the source
stood, so that a checkpoint can begin there.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ExecutionError, ZephonError
from zephon.work.chunks.reader import ChunkReader, Edge
from zephon.work.chunks.vocabulary import Rows, Vocabulary
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs

SPACING = 1024
"""Draws between the edges that are kept: a source of tiny chunks is not asked at each of them."""


class ChunkLane(LaneStream):
    """The draws of one lane, chunk after chunk; safe in any thread.

    Args:
        lane: which lane.
        vocabulary: what components there are.
        reader: gives the lane's chunks, from ``edge`` on.
        edge: where the lane begins; draws before it cannot be had.
    """

    __slots__ = (
        "_cutting", "_edges", "_end", "_failure", "_firsts", "_lane", "_length", "_lock", "_reader",
        "_rows", "_vocabulary", "_weights",
    )  # fmt: skip

    def __init__(self, lane: int, vocabulary: Vocabulary, reader: ChunkReader, edge: Edge) -> None:
        self._lane = lane
        self._vocabulary = vocabulary
        self._reader = reader
        self._edges = [edge]  # ascending; those kept are a function of position alone
        self._end = edge.ordinal  # draws from here on are in no chunk yet
        self._firsts: list[int] = []  # the first draw of each kept chunk
        self._rows: list[Rows] = []
        self._length: int | None = None
        self._failure: Exception | None = None
        self._weights: tuple[Rows, NDArray[np.float64]] | None = None
        self._cutting = threading.Lock()  # held while the source works, which may take long
        self._lock = threading.Lock()  # held while lists change

    @property
    def length(self) -> int | None:
        """How many draws the lane has; None until the source ended."""
        return self._length

    @property
    def failure(self) -> Exception | None:
        """What ended the lane before its time: an error of the source, or in a chunk."""
        return self._failure

    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the lane's end.

        A chunk that cannot be had or is wrong ends the lane before it: see ``failure``.

        Raises:
            ValueError: ``start`` or ``count`` is negative.
            ExecutionError: draws before ``start`` were forgotten, and it too.
        """
        if start < 0 or count < 0:
            raise ValueError(f"draw: start and count must be at least 0, got {start} and {count}")
        stop = start + count
        if self._end < stop and self._length is None:  # else nobody waits for the source
            with self._cutting:
                while self._end < stop and self._length is None:
                    self._cut()
        with self._lock:
            stop = min(stop, self._end)
            if start >= stop:
                return Refs.empty()
            if not self._firsts or start < self._firsts[0]:
                raise ExecutionError(
                    f"lane {self._lane}: draw {start} was forgotten; the first that is kept is "
                    f"{self._firsts[0] if self._firsts else self._end}"
                )
            at, behind = bisect_right(self._firsts, start) - 1, bisect_right(self._firsts, stop - 1)
            kept, firsts = self._rows[at:behind], self._firsts[at:behind]
        # Of a chunk that is much longer than the draw, only what is drawn is copied.
        rows = [
            each.part(max(start - first, 0), stop - first)
            for each, first in zip(kept, firsts, strict=True)
        ]
        return Refs.of(
            component=np.concatenate([each.component for each in rows]),
            shard=np.concatenate([each.shard for each in rows]),
            row=np.concatenate([each.row for each in rows]),
            pass_index=np.zeros(stop - start, dtype=np.int32),
            ordinal=np.arange(start, stop, dtype=np.int64),
            lane=self._lane,
        )

    def weights_at(self, ordinal: int) -> NDArray[np.float64] | None:
        """Give what the chunk of a draw aims at, shape [components]; None if it is not kept."""
        with self._lock:
            at = bisect_right(self._firsts, ordinal) - 1
            rows = self._rows[at] if at >= 0 and ordinal < self._end else None
        if rows is None:
            return None
        latest = self._weights
        if latest is None or latest[0] is not rows:
            self._weights = latest = (rows, self._vocabulary.weights_of(rows))
        return latest[1]

    def state_at(self, ordinal: int) -> dict[str, Any] | None:
        """Say where the source stood at the last kept edge at or before a draw.

        Returns:
            None at the lane's beginning. Else the edge's draw, the chunks before it, and what the
            source said of itself there, if it says anything: without that, a lane that begins
            there draws as many chunks again.
        """
        with self._lock:
            edges = [edge for edge in self._edges if edge.ordinal <= ordinal]
        if not edges:
            raise ExecutionError(
                f"lane {self._lane}: the state at draw {ordinal} was forgotten; the first that is "
                f"kept is at {self._edges[0].ordinal}"
            )
        return edges[-1].to_json() if edges[-1].chunks else None

    def forget_before(self, ordinal: int) -> None:
        """Let go of chunks that end before a draw, and of edges that no draw from it on needs."""
        with self._lock:
            chunks = bisect_right(self._firsts, ordinal) - 1
            if chunks > 0:
                del self._firsts[:chunks], self._rows[:chunks]
            while len(self._edges) > 1 and self._edges[1].ordinal <= ordinal:
                del self._edges[0]

    def _cut(self) -> None:
        """Keep one chunk more, or end the lane."""
        try:
            rows = self._reader.next()
            end = self._end if rows is None else self._end + len(rows.row)
            wanted = end // SPACING > self._edges[-1].ordinal // SPACING
            edge = self._reader.edge() if wanted else None
        except BaseException as exc:
            # Whatever stopped it, nobody may cut the next chunk in the place of this one.
            failure = exc if isinstance(exc, ZephonError) else self._stopped_by(exc)
            with self._lock:
                self._failure, self._length = failure, self._end
            if failure is not exc:
                raise
            return
        with self._lock:
            if rows is None:
                self._length = self._end
                return
            if edge is not None:
                self._edges.append(edge)
            self._firsts.append(self._end)
            self._rows.append(rows)
            self._end = end

    def _stopped_by(self, exc: BaseException) -> ExecutionError:
        failure = ExecutionError(
            f"{self._vocabulary.owner}, lane {self._lane}: next_chunk() was stopped by "
            f"{type(exc).__name__}: {exc}; the lane cannot go on behind draw {self._end}"
        )
        failure.__cause__ = exc
        return failure
