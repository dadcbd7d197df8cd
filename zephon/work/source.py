"""What to train on, in which order: the protocol that our sources and custom ones follow.

A custom source hands out chunks, and the engine draws by position from them (chunks/lane.py).
Our own source draws by position at once, and cuts chunks from that (cut_chunks.py).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zephon.errors import CheckpointError, PlanError, RepeatedCallError
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.lane import ChunkLane
from zephon.work.chunks.reader import ChunkReader, Edge
from zephon.work.chunks.source_description import describe_source
from zephon.work.chunks.vocabulary import Vocabulary
from zephon.work.component import Component
from zephon.work.lane_stream import LaneStream
from zephon.work.schedule import StepSize

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

__all__ = ["WorkSource"]


class WorkSource(ABC):
    """What to train on, in which order. Derive from it for an order of your own.

    A source says which datasets and components it has, and gives chunks of sample ids. Each lane
    works with a copy of its own (``clone_for_lane``), whose ``next_chunk`` is called by one thread
    at a time, as far ahead as the run reads.

    **Restoring.** A source that overrides ``state_dict`` and ``load_state_dict`` is asked for its
    state at chunk edges, about every 1,024 draws, and put there again. From any other, a restored
    lane draws all chunks before once more, which must be the same: that takes time in proportion
    to how long the run has been. A checkpoint knows a source by its class's name, its components,
    datasets and ``chunk_size_hint``, and by what its own ``recipe()``, or a method or attribute
    ``fingerprint``, says: a restore into another is refused. What none of these says, such as an
    argument of yours or the code of ``next_chunk``, may change without anybody noticing: name it
    in ``recipe()``.
    """

    lane_id: int | None = None
    """The lane that this copy works for; None for the source itself."""

    canonical_replicas: int | None = None
    """How many lanes there are; None for the source itself."""

    token_estimation: Any = None
    """How weights become tokens, in a mixture of ours that estimates them."""

    # What a custom source says and does

    @abstractmethod
    def next_chunk(self) -> WorkChunk | None:
        """Give the lane's next chunk; None where the lane ends, once and for all."""

    @property
    @abstractmethod
    def datasets_by_id(self) -> Mapping[int, Dataset]:
        """The datasets by the number that sample ids begin with."""

    def component_ids(self) -> Mapping[str, int]:
        """Give every component that a chunk may name, each with an id of its own.

        Unless overridden, each dataset is a component, with the dataset's id.
        """
        return {dataset.name: number for number, dataset in self.datasets_by_id.items()}

    def continues_after_exhaustion(self) -> frozenset[str]:
        """Name the components after whose exhaustion the others go on."""
        return frozenset()

    def chunk_size_hint(self) -> int | None:
        """Say how many samples a chunk has as a rule: chunk ids of records count in it."""
        return None

    def clone_for_lane(self, lane_id: int, canonical_replicas: int) -> WorkSource:
        """Make the copy of this source that works for one lane: a deep one.

        Override it to share what is large and never changes.

        Raises:
            RepeatedCallError: this is the copy of a lane already.
            PlanError: something in it cannot be copied.
        """
        name = type(self).__name__
        if self.lane_id is not None:
            raise RepeatedCallError(
                f"{name}: clone_for_lane({lane_id}, {canonical_replicas}) must be asked of the "
                f"source itself, this is its copy for lane {self.lane_id} of "
                f"{self.canonical_replicas}"
            )
        try:
            own = copy.deepcopy(self)
        except Exception as exc:
            raise PlanError(
                f"{name}: clone_for_lane() copies the source for each lane, and it cannot be "
                f"copied: {exc}; keep such things out of it, or override clone_for_lane()"
            ) from exc
        return own.bound_to(lane_id, canonical_replicas)

    def state_dict(self) -> dict[str, Any]:
        """Say where this lane's copy stands.

        The base knows only whose copy it is; override both this and ``load_state_dict``, and call
        the base's in each.
        """
        return {
            "lane_id": self.lane_id,
            "canonical_replicas": self.canonical_replicas,
            "chunk_size_hint": self.chunk_size_hint(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put this lane's copy where ``state_dict`` was called.

        Raises:
            CheckpointError: the state is of another lane, or of another number of lanes.
        """
        for key, own in (
            ("lane_id", self.lane_id),
            ("canonical_replicas", self.canonical_replicas),
        ):
            if state.get(key) != own:
                raise CheckpointError(
                    f"{type(self).__name__}: load_state_dict() must get a state of {key}={own}, "
                    f"got one of {key}={state.get(key)}; lanes and their number are part of the "
                    "order"
                )

    @property
    def requires_token_priming(self) -> bool:
        """Whether ``prime`` must be called before a run."""
        return False

    def prime(  # noqa: B027 - most sources need nothing
        self,
        io_options: Any = None,
        counting_spec: Any = None,
        pre_tokenize_replay: Any = None,
        mp_context: Any = None,
    ) -> None:
        """Prepare for a run, once, where it is started; does nothing here."""

    def supports_indexing(self) -> bool:
        """Say whether samples can be asked for by number."""
        return False

    def __len__(self) -> int:
        raise NotImplementedError(
            f"{type(self).__name__}: len() is not known; override __len__() if it is"
        )

    def __bool__(self) -> bool:
        return True  # Python would ask for len()

    def sample_id_at(self, i: int) -> tuple[int, int, int]:
        """Give the id of sample ``i``, for sources that support indexing."""
        raise NotImplementedError(
            f"{type(self).__name__}: samples cannot be asked for by number; override "
            "sample_id_at() and supports_indexing() if they can"
        )

    # What the engine asks

    @property
    def decided_by(self) -> str | None:
        """Who decides shares and order as the run goes; None where they are known beforehand."""
        return type(self).__name__

    @property
    def mixture_unit(self) -> str:
        """What the engine draws by; a mixture of ours may say "tokens"."""
        return "samples"

    @property
    def components(self) -> tuple[Component, ...]:
        """What may be drawn; a reference's ``component`` is a position here."""
        return Vocabulary.of(self).components()

    def lane_stream(
        self, lane: int, lanes: int, *, step: StepSize | None = None, state: Any = None
    ) -> LaneStream:
        """Give the draws of one lane.

        Args:
            lane: which lane.
            lanes: how many there are.
            step: what a step of the run is; a custom source goes by chunks.
            state: where to begin, as a stream's ``state_at`` said; None: at the beginning.

        Raises:
            PlanError: what the source says of itself is not as documented.
        """
        keeps_state = self._keeps_state()
        edge = Edge.from_json(state)
        edge = edge if keeps_state else replace(edge, state=None)
        words = Vocabulary.of(self)
        reader = ChunkReader(
            self, lane, lanes, vocabulary=words, keeps_state=keeps_state, edge=edge
        )
        return ChunkLane(lane, words, reader, edge)

    def describe(self, lanes: int, step: StepSize | None = None) -> tuple[str, ...]:
        """Say in words who decides the order, for ``explain``. Reads nothing, cuts no chunk."""
        return describe_source(Vocabulary.of(self), keeps_state=self._keeps_state())

    def recipe(self) -> dict[str, Any]:
        """List what changes the data and a checkpoint shall know, as JSON values."""
        return {}

    def bound_to(self, lane_id: int, canonical_replicas: int) -> WorkSource:
        """Make this the copy of a lane, and return it.

        Raises:
            PlanError: there is no such lane.
        """
        if not 0 <= lane_id < canonical_replicas:
            raise PlanError(
                f"{type(self).__name__}: clone_for_lane() must get a lane_id from 0 to "
                f"canonical_replicas - 1, got {lane_id} of {canonical_replicas}"
            )
        # A frozen dataclass is welcome too.
        object.__setattr__(self, "lane_id", lane_id)
        object.__setattr__(self, "canonical_replicas", canonical_replicas)
        return self

    def _keeps_state(self) -> bool:
        kind = type(self)
        says = kind.state_dict is not WorkSource.state_dict
        loads = kind.load_state_dict is not WorkSource.load_state_dict
        if says != loads:
            has, lacks = ("state_dict", "load_state_dict")[:: 1 if says else -1]
            raise PlanError(
                f"{kind.__name__}: {has}() is overridden, and {lacks}() is not; override both"
            )
        return says
