"""A chunk of work: the samples that a source hands to a lane at a time, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError, PlanError
from zephon.types import SampleId
from zephon.work.chunks.arguments import checked_exhausted, checked_target
from zephon.work.chunks.read_config import MixtureReadConfig, checked_seed, read_order
from zephon.work.chunks.samples import Samples

STATE_VERSION = 3
_DEFAULT = MixtureReadConfig()
_BLOCK = 1024  # samples that iteration makes tuples of at a time


class WorkChunk:
    """Samples of some components; iterating gives ``(sample_id, component_name)``.

    Components take turns in smooth weighted round robin of the chunk's own counts, unless the
    chunk was cut from a stream and so has an order of its own. A chunk never changes.

    Args:
        components: samples by component name, each (dataset id, shard id, row); or an array of
            shape [samples, 3]. The order of the names settles ties.
        seed: decides what a read configuration without a seed leaves to chance.
        target_mixture: the weights that the chunk aims at, where its counts do not say them.
        source_exhausted: names of components of which no later chunk of the lane has a sample,
            those named by earlier chunks included.

    >>> chunk = WorkChunk({"a": [(0, 0, 4), (0, 0, 5)], "b": [(1, 0, 9)]})
    >>> list(chunk)
    [((0, 0, 4), 'a'), ((1, 0, 9), 'b'), ((0, 0, 5), 'a')]

    Raises:
        PlanError: an argument is of another kind; the message names it.
    """

    __slots__ = ("_exhausted", "_latest", "_samples", "_seed", "_target")

    def __init__(
        self,
        components: Mapping[str, Sequence[SampleId] | NDArray[np.integer]],
        seed: int | None = None,
        target_mixture: Mapping[str, float] | None = None,
        source_exhausted: Iterable[str] = (),
    ) -> None:
        self._samples = Samples.of(components)
        self._seed = checked_seed("WorkChunk", seed)
        self._target = checked_target(target_mixture)
        self._exhausted = checked_exhausted(source_exhausted)
        self._latest: tuple[MixtureReadConfig, NDArray[np.int64]] | None = None

    @classmethod
    def of_samples(
        cls,
        samples: Samples,
        seed: int | None = None,
        target_mixture: Mapping[str, float] | None = None,
        source_exhausted: Iterable[str] = (),
    ) -> WorkChunk:
        """Make a chunk of samples that were checked before; the other arguments as above."""
        chunk = cls({}, seed, target_mixture, source_exhausted)
        chunk._samples = samples
        return chunk

    # What is in it

    @property
    def samples(self) -> Samples:
        """All samples as arrays."""
        return self._samples

    @property
    def components(self) -> dict[str, list[SampleId]]:
        """Samples by component, made anew as tuples at each look."""
        return self._samples.tuples()

    @property
    def seed(self) -> int | None:
        """What is left to chance is decided by it, unless a read configuration has a seed."""
        return self._seed

    @property
    def target_mixture(self) -> Mapping[str, float] | None:
        """The weights that the chunk aims at; None: those that its counts say."""
        return None if self._target is None else MappingProxyType(self._target)

    @property
    def source_exhausted(self) -> tuple[str, ...]:
        """Components that no later chunk of the lane has a sample of."""
        return self._exhausted

    @property
    def mixture(self) -> dict[str, float]:
        """The share of each component that has samples."""
        counts = zip(self._samples.names, self._samples.counts.tolist(), strict=True)
        return {name: count / len(self) for name, count in counts if count}

    def __len__(self) -> int:
        return len(self._samples.ids)

    # In which order

    def order(self, config: MixtureReadConfig | None = None) -> NDArray[np.int64]:
        """Give the order as positions in ``samples.ids``, shape [samples], int64; read-only.

        Args:
            config: how to read; None: in the chunk's own order.

        Raises:
            PlanError: ``config`` is something else than a read configuration.
        """
        if config is None and self._samples.own is not None:
            return self._samples.own
        config = _DEFAULT if config is None else config
        if not isinstance(config, MixtureReadConfig):
            raise PlanError(
                f"WorkChunk: config must be a MixtureReadConfig or None, got {config!r}"
            )
        latest = self._latest
        if latest is None or latest[0] != config:
            order = read_order(self._samples.names, self._samples.counts, config, self._seed)
            self._latest = latest = (config, order)
        return latest[1]

    def __iter__(self) -> Iterator[tuple[SampleId, str]]:
        return self.iter_samples()

    def iter_samples(
        self, config: MixtureReadConfig | None = None
    ) -> Iterator[tuple[SampleId, str]]:
        """Iterate ``(sample_id, component_name)``; None reads in the chunk's own order."""
        order = self.order(config)
        return (
            pair
            for first in range(0, len(order), _BLOCK)
            for pair in self._samples.pairs(order[first : first + _BLOCK])
        )

    def materialize_order(
        self, config: MixtureReadConfig | None = None
    ) -> list[tuple[SampleId, str]]:
        """Give all of ``iter_samples`` as a list."""
        return self._samples.pairs(self.order(config))

    def sample_at(self, i: int, config: MixtureReadConfig | None = None) -> tuple[SampleId, str]:
        """Give the sample at place ``i`` of the order, from 0.

        Raises:
            IndexError: there is no such place.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"WorkChunk: sample_at({i}) of {len(self)} samples")
        return self._samples.pairs(self.order(config)[i : i + 1])[0]

    # As a value

    def state_dict(self) -> dict[str, Any]:
        """Write the chunk as JSON values; ``from_state`` makes it again."""
        own = self._samples.own
        return {
            "version": STATE_VERSION,
            "components": {n: [list(i) for i in ids] for n, ids in self.components.items()},
            "order": None if own is None else own.tolist(),
            "seed": self._seed,
            "target_mixture": None if self._target is None else dict(self._target),
            "source_exhausted": list(self._exhausted),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> WorkChunk:
        """Make a chunk of what ``state_dict`` gave.

        Raises:
            CheckpointError: it is of another version, or damaged.
        """
        version = state.get("version") if isinstance(state, Mapping) else None
        if version != STATE_VERSION:
            raise CheckpointError(
                f"WorkChunk: a state must be of version {STATE_VERSION}, got {version!r}; pass "
                "what state_dict() returned, or upgrade zephon if the version is newer"
            )
        try:
            samples = Samples.of(state["components"]).drawn_in(state.get("order"))
            return cls.of_samples(
                samples,
                state.get("seed"),
                state.get("target_mixture"),
                state.get("source_exhausted", ()),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise CheckpointError(
                f"WorkChunk: the state is damaged: {type(exc).__name__} {exc}; restore another"
            ) from exc

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WorkChunk):
            return NotImplemented
        return self._settings() == other._settings() and self._samples.same_as(other._samples)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __deepcopy__(self, memo: dict[int, Any]) -> WorkChunk:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkChunk.of_samples, (self._samples, *self._settings())

    def _settings(self) -> tuple[Any, ...]:
        return self._seed, self._target, self._exhausted

    def __repr__(self) -> str:
        counts = zip(self._samples.names, self._samples.counts.tolist(), strict=True)
        shown = ", ".join(f"{name}: {count}" for name, count in counts)
        ended = f"; exhausted: {', '.join(self._exhausted)}" if self._exhausted else ""
        return f"WorkChunk({len(self)} samples, {shown or 'none'}{ended})"
