"""The chunk protocol of a source that draws by position: chunks cut from the lane's own stream."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError, RepeatedCallError, UnboundSourceError
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.samples import Samples
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs
from zephon.work.source import WorkSource


class CutChunks(WorkSource):
    """Give the draws of ``lane_stream`` as chunks of ``chunk_size``, each in its own order.

    Iterating a lane's chunks one after another gives its draws 0, 1, 2, ..., the last chunk being
    shorter. A component is in ``source_exhausted`` of the chunk with its last draw, and of all
    chunks after.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def chunk_size(self) -> int:
        """Draws in a chunk."""

    @property
    def decided_by(self) -> None:
        """Nobody: a lane is a function of position, known beforehand."""
        return

    def next_chunk(self) -> WorkChunk | None:
        """Cut the lane's next chunk; None where the lane ends.

        Raises:
            UnboundSourceError: this is the source itself, of no lane.
            PlanError: the source cannot draw by position.
            ExecutionError: it cannot yet.
        """
        if self.lane_id is None or self.canonical_replicas is None:
            raise UnboundSourceError(
                f"{type(self).__name__}: next_chunk() must be asked of the copy of a lane, this "
                "is the source itself; call clone_for_lane(lane_id, canonical_replicas) first"
            )
        if self._stream is None:
            self._stream = self.lane_stream(self.lane_id, self.canonical_replicas)
        start = self._chunk * self.chunk_size
        refs = self._stream.draw(start, self.chunk_size)
        if not len(refs):
            return None
        self._chunk += 1
        names = [component.name for component in self.components]
        weights = self._stream.weights_at(start)
        target = None
        if weights is not None:
            pairs = zip(names, weights.tolist(), strict=True)
            target = {name: weight for name, weight in pairs if weight > 0}
        return WorkChunk.of_samples(
            Samples.in_order(names, refs.component, self._sample_ids(refs)),
            target_mixture=target,
            source_exhausted=self._exhausted(self._stream, start + len(refs)),
        )

    def clone_for_lane(self, lane_id: int, canonical_replicas: int) -> CutChunks:
        """Make the copy of this source that cuts one lane's chunks, from the first on.

        Raises:
            RepeatedCallError: this is the copy of a lane already.
            PlanError: there is no such lane.
        """
        if self.lane_id is not None:
            raise RepeatedCallError(
                f"{type(self).__name__}: clone_for_lane() must be asked of the source itself, "
                f"this is its copy for lane {self.lane_id}"
            )
        own = copy.copy(self)
        own.bound_to(lane_id, canonical_replicas)
        return own

    def chunk_size_hint(self) -> int:
        """Say how many draws a chunk has."""
        return self.chunk_size

    def state_dict(self) -> dict[str, Any]:
        """Say which chunk comes next, and of which lane."""
        return {**super().state_dict(), "chunk": self._chunk}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where ``state_dict`` was called.

        Raises:
            CheckpointError: the state is of another lane, number of lanes or chunk size.
        """
        super().load_state_dict(state)
        if state.get("chunk_size_hint") != self.chunk_size or not isinstance(
            state.get("chunk"), int
        ):
            raise CheckpointError(
                f"{type(self).__name__}: load_state_dict() must get the number of a chunk of "
                f"{self.chunk_size} draws, got chunk {state.get('chunk')!r} of "
                f"{state.get('chunk_size_hint')!r}"
            )
        self._chunk = state["chunk"]

    _chunk: int = 0
    _stream: LaneStream | None = None

    def _sample_ids(self, refs: Refs) -> NDArray[np.int64]:
        components = self.components
        ids = np.empty((len(refs), 3), dtype=np.int64)
        ids[:, 0] = np.array([each.dataset_id for each in components])[refs.component]
        ids[:, 2] = refs.row
        for number in np.flatnonzero(np.bincount(refs.component)).tolist():
            mine = refs.component == number
            dataset = components[number].dataset
            shard = refs.shard[mine]
            ids[mine, 1] = shard if dataset.shard_ids is None else dataset.ids()[shard]
        return ids

    def _exhausted(self, stream: LaneStream, ordinal: int) -> tuple[str, ...]:
        """Name the components that are read, but not from a draw on."""
        finished = stream.finished_before(ordinal)
        if finished is None:
            ended = stream.length is not None and ordinal >= stream.length
            finished = np.full(len(self.components), ended)
        pairs = zip(self.components, finished.tolist(), strict=True)
        return tuple(each.name for each, done in pairs if done and each.read)
