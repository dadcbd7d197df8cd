"""Asks a source of one lane for its chunks, one after another, and checks each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from zephon.errors import CheckpointError, ExecutionError, PlanError
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.source_state import from_json, to_json
from zephon.work.chunks.vocabulary import Rows, Vocabulary

if TYPE_CHECKING:
    from zephon.work.source import WorkSource

MOST_EMPTY = 10_000
"""Chunks without a sample that may follow each other; a source that gives more never goes on."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A lane right before one of its chunks.

    ordinal: the chunk's first draw. chunks: how many come before it.
    exhausted: components that they said are exhausted.
    state: what the source said of itself there, as JSON; None for one that says nothing.
    """

    ordinal: int = 0
    chunks: int = 0
    exhausted: tuple[str, ...] = ()
    state: Any = None

    def to_json(self) -> dict[str, Any]:
        """Write the edge for a checkpoint, which is the caller's to change."""
        said = {} if self.state is None else {"state": copy.deepcopy(self.state)}
        return {
            "ordinal": self.ordinal,
            "chunks": self.chunks,
            "exhausted": list(self.exhausted),
            **said,
        }

    @classmethod
    def from_json(cls, saved: Any) -> Edge:
        """Read back what ``to_json`` wrote; None stands for the beginning.

        Raises:
            CheckpointError: something is missing.
        """
        if saved is None:
            return cls()
        try:
            exhausted = tuple(map(str, saved["exhausted"]))
            return cls(int(saved["ordinal"]), int(saved["chunks"]), exhausted, saved.get("state"))
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise CheckpointError(
                f"restore: the state of a work source is damaged: {type(exc).__name__} {exc}; "
                "restore an earlier checkpoint"
            ) from exc


class ChunkReader:
    """The chunks of one lane in order, from an edge on; for one thread at a time.

    Args:
        source: the source itself; the lane's own copy is made when the first chunk is wanted.
        keeps_state: the source says where it stands, and can be put there.
        edge: where to begin.
    """

    def __init__(
        self,
        source: WorkSource,
        lane: int,
        lanes: int,
        *,
        vocabulary: Vocabulary,
        keeps_state: bool,
        edge: Edge,
    ) -> None:
        self._source = source
        self._lane = lane
        self._lanes = lanes
        self._vocabulary = vocabulary
        self._keeps_state = keeps_state
        self._edge = edge
        self._own: WorkSource | None = None

    def next(self) -> Rows | None:
        """Give the rows of the next chunk that has any; None at the source's end.

        Raises:
            PlanError: a chunk is not as documented.
            ExecutionError: the source failed; its error is the cause.
            CheckpointError: the source cannot be put where the lane should begin.
        """
        if self._own is None:
            self._own = self._begun()
        for _ in range(MOST_EMPTY):
            chunk = self._next_of(self._own)
            if chunk is None:
                return None
            rows = self._checked(chunk)
            if len(rows.row):
                return rows
        raise ExecutionError(
            f"{self._where()}: a chunk must have samples at last, got {MOST_EMPTY} empty ones one "
            "after another; return None where the lane ends"
        )

    def edge(self) -> Edge:
        """Say where the reader stands, and what the source says of itself there, if it does.

        Raises:
            PlanError: the source says what no checkpoint can hold; the message names the key.
            ExecutionError: the source failed to say.
        """
        own = self._own
        if own is None or not self._keeps_state:
            return self._edge
        said = self._call(lambda: own.state_dict(), "state_dict()")
        return replace(self._edge, state=to_json(said, f"{self._where()}: state_dict()"))

    def _begun(self) -> WorkSource:
        """Make the lane's copy of the source, and bring it to the edge."""
        own = self._call(
            lambda: self._source.clone_for_lane(self._lane, self._lanes), "clone_for_lane()"
        )
        if not hasattr(own, "next_chunk"):
            raise PlanError(
                f"{self._where()}: clone_for_lane() must return a work source, got {own!r}"
            )
        if own is self._source:
            raise PlanError(
                f"{self._where()}: clone_for_lane() must return a copy, got the source itself, "
                "which all lanes would share; return copy.deepcopy(self), bound to the lane"
            )
        if self._keeps_state and self._edge.state is not None:
            state = from_json(self._edge.state)
            self._call(lambda: own.load_state_dict(state), "load_state_dict()")
            return own
        wanted, at = self._edge, Edge()
        while at.chunks < wanted.chunks:
            chunk = self._next_of(own)
            if chunk is None:
                break
            at = Edge(at.ordinal + len(chunk), at.chunks + 1, chunk.source_exhausted)
        if at != Edge(wanted.ordinal, wanted.chunks, wanted.exhausted):
            raise CheckpointError(
                f"restore: {self._vocabulary.owner}, lane {self._lane}: a source without a state "
                f"of its own must repeat its chunks, but {at.chunks} chunks hold {at.ordinal} "
                f"samples now and {wanted.chunks} held {wanted.ordinal} when the checkpoint was "
                "taken; define state_dict() and load_state_dict(), or restore with the source as "
                "it was"
            )
        return own

    def _next_of(self, own: WorkSource) -> WorkChunk | None:
        chunk = self._call(own.next_chunk, "next_chunk()")
        if chunk is not None and not isinstance(chunk, WorkChunk):
            raise PlanError(
                f"{self._where()}: next_chunk() must return a WorkChunk or None, got "
                f"{type(chunk).__name__}"
            )
        return chunk

    def _checked(self, chunk: WorkChunk) -> Rows:
        """Check a chunk, find its rows, and go on to the edge behind it."""
        where, edge = self._where(), self._edge
        self._vocabulary.check_names(chunk, where)
        mixture = chunk.mixture if edge.exhausted else {}
        for name in edge.exhausted:
            if name not in chunk.source_exhausted:
                raise PlanError(
                    f"{where}: source_exhausted must keep the names of earlier chunks, "
                    f"{name!r} is gone"
                )
            if mixture.get(name):
                ((sample, _), *_) = chunk.samples.pairs(
                    chunk.samples.starts[[chunk.samples.names.index(name)]]
                )
                raise PlanError(
                    f"{where}: component {name!r} was exhausted in an earlier chunk, so it can "
                    f"have no samples, got {sample}"
                )
        rows = self._vocabulary.rows_of(chunk, where)
        self._edge = Edge(edge.ordinal + len(chunk), edge.chunks + 1, chunk.source_exhausted, None)
        return rows

    def _call(self, ask: Callable[[], Any], what: str) -> Any:
        """Ask the source; say of its error where it came from, and keep it as the cause."""
        try:
            return ask()
        except Exception as exc:
            kind = next((k for k in (PlanError, CheckpointError) if isinstance(exc, k)), None)
            said = str(exc) if kind else f"{type(exc).__name__}: {exc}"
            raise (kind or ExecutionError)(f"{self._where()}: {what} failed: {said}") from exc

    def _where(self) -> str:
        return f"{self._vocabulary.owner}, lane {self._lane}, chunk {self._edge.chunks}"
