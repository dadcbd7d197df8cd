"""The samples of a chunk: an array of whole numbers, component after component."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import PlanError
from zephon.types import SampleId


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Sample ids of some components; tuples are made for those that somebody looks at.

    names: of the components, those without a sample too.
    ids: dataset id, shard id and row of each sample, component after component, shape
        [samples, 3], int64; read-only.
    starts: where each component begins, and where the last one ends, shape [components + 1].
    own: the order in which they were drawn, as positions in ``ids``, shape [samples], int64;
        None where nobody drew them yet.
    """

    names: tuple[str, ...]
    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    own: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for array in (self.ids, self.own):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def of(cls, components: Any) -> Samples:
        """Take sample ids by component name.

        Raises:
            PlanError: something else came; the message names the component and the sample.
        """
        if not isinstance(components, Mapping):
            raise PlanError(
                "WorkChunk: components must map names to lists of sample ids, got "
                f"{type(components).__name__}"
            )
        arrays = [_sample_array(name, samples) for name, samples in components.items()]
        ids = np.concatenate(arrays) if arrays else np.empty((0, 3), dtype=np.int64)
        return cls(tuple(components), ids, _starts([len(array) for array in arrays]))

    @classmethod
    def in_order(
        cls, names: Sequence[str], component: NDArray[np.integer], ids: NDArray[np.int64]
    ) -> Samples:
        """Take sample ids in the order in which they were drawn.

        Args:
            names: of the components; those without a sample are left out.
            component: whose each sample is, as a position in ``names``, shape [samples].
            ids: shape [samples, 3].
        """
        counts = np.bincount(component, minlength=len(names))
        place = np.argsort(component, kind="stable")
        own = np.empty(len(place), dtype=np.int64)
        own[place] = np.arange(len(place))
        live = np.flatnonzero(counts)
        return cls(tuple(names[i] for i in live.tolist()), ids[place], _starts(counts[live]), own)

    def drawn_in(self, order: Any) -> Samples:
        """Give the same samples in this order; None: nobody drew them yet.

        Raises:
            ValueError: ``order`` does not name each sample once.
        """
        if order is None:
            return self
        own = np.array(order, dtype=np.int64)
        if not np.array_equal(np.sort(own), np.arange(len(self.ids))):
            raise ValueError(f"the order must name each of {len(self.ids)} samples once")
        return replace(self, own=own)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Samples of each component, shape [components], int64."""
        return np.diff(self.starts)

    def tuples(self) -> dict[str, list[SampleId]]:
        """Give all sample ids as tuples, by component."""
        bounds = self.starts.tolist()
        return {
            name: [(d, s, r) for d, s, r in self.ids[start:stop].tolist()]
            for name, start, stop in zip(self.names, bounds[:-1], bounds[1:], strict=True)
        }

    def pairs(self, places: NDArray[np.int64]) -> list[tuple[SampleId, str]]:
        """Give the samples at these positions, each with the name of its component."""
        component = np.searchsorted(self.starts, places, side="right") - 1
        return [
            ((d, s, r), self.names[c])
            for (d, s, r), c in zip(self.ids[places].tolist(), component.tolist(), strict=True)
        ]

    def same_as(self, other: Samples) -> bool:
        """Tell whether names, samples and order are equal."""
        if (self.own is None) != (other.own is None) or self.names != other.names:
            return False
        return (
            np.array_equal(self.starts, other.starts)
            and np.array_equal(self.ids, other.ids)
            and (self.own is None or other.own is None or np.array_equal(self.own, other.own))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Samples, (self.names, self.ids, self.starts, self.own)


def _starts(counts: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _sample_array(name: object, samples: Any) -> NDArray[np.int64]:
    """Make an array of a component's sample ids, shape [samples, 3], int64. New memory."""
    if not isinstance(name, str) or not name:
        raise PlanError(f"WorkChunk: component names must be non-empty strings, got {name!r}")
    if isinstance(samples, np.ndarray):
        if samples.dtype.kind not in "iu" or samples.ndim != 2 or samples.shape[1] != 3:
            raise PlanError(
                f"WorkChunk: samples of component {name!r} must be whole numbers of shape "
                f"[samples, 3], got {samples.dtype} of shape {list(samples.shape)}"
            )
        return samples.astype(np.int64)
    if isinstance(samples, str | bytes | Mapping) or not isinstance(samples, Iterable):
        raise PlanError(
            f"WorkChunk: samples of component {name!r} must be a list of (dataset id, shard id, "
            f"row), got {type(samples).__name__}"
        )
    listed = samples if isinstance(samples, list | tuple) else list(samples)
    try:
        found = np.array(listed)
        if found.dtype.kind == "i" and found.ndim == 2 and found.shape[1] == 3:
            return found.astype(np.int64, copy=False)
    except (ValueError, OverflowError):
        pass  # of unequal length, or too large: looked at one by one
    for place, sample in enumerate(listed):
        _check_sample(name, place, sample)
    numbers = chain.from_iterable(map(operator.index, sample) for sample in listed)
    return np.fromiter(numbers, dtype=np.int64).reshape(-1, 3)


def _check_sample(name: str, place: int, sample: Any) -> None:
    try:
        numbers = [operator.index(part) for part in sample if not isinstance(part, bool)]
        if len(numbers) == len(sample) == 3 and all(-(2**63) <= n < 2**63 for n in numbers):
            return
    except TypeError:
        pass  # the message below says what came
    raise PlanError(
        f"WorkChunk: sample {place} of component {name!r} must be three whole numbers (dataset "
        f"id, shard id, row), got {sample!r}"
    )
