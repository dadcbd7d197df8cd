"""The words of a work source: its components and datasets, and what its sample ids mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from zephon.errors import PlanError, nearest
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.source_arguments import (
    checked_continues,
    checked_datasets,
    checked_ids,
    checked_size,
)
from zephon.work.component import Component

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset
    from zephon.work.source import WorkSource


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a chunk in its order, as references name them; arrays of shape [samples].

    weights: what the chunk aims at, by component.
    """

    component: NDArray[np.int32]
    shard: NDArray[np.int64]
    row: NDArray[np.int64]
    weights: Mapping[str, float]

    def part(self, start: int, stop: int) -> Rows:
        """Take some of the rows; no copy."""
        some = slice(start, stop)
        return Rows(self.component[some], self.shard[some], self.row[some], self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What a source's chunks may hold.

    A component may span datasets, so the engine counts pairs of the two: pair number
    ``place of the component * len(datasets) + place of the dataset``, in the order of their ids.

    owner: name of the source's class, for messages.
    places: of the components by name, in the order of their ids. ids: of each. datasets: by id,
        ascending.
    continues: components after whose end others go on.
    chunk_size: samples of a chunk as a rule, or None.
    """

    owner: str
    places: Mapping[str, int]
    ids: tuple[int, ...]
    datasets: Mapping[int, Dataset]
    continues: frozenset[str]
    chunk_size: int | None
    _shards: dict[int, tuple[NDArray[np.int64] | None, NDArray[np.int64]]] = field(
        default_factory=dict
    )

    @classmethod
    def of(cls, source: WorkSource) -> Vocabulary:
        """Ask a source for its words, and check them.

        Raises:
            PlanError: they are not as documented; the message names the member.
        """
        owner = type(source).__name__
        datasets = checked_datasets(f"{owner}.datasets_by_id", source.datasets_by_id)
        names = checked_ids(f"{owner}.component_ids()", source.component_ids())
        continues = checked_continues(owner, source.continues_after_exhaustion(), names)
        size = checked_size(f"{owner}.chunk_size_hint()", source.chunk_size_hint())
        places = {name: place for place, name in enumerate(names)}
        return cls(owner, places, tuple(names.values()), datasets, continues, size)

    def components(self) -> tuple[Component, ...]:
        """List the pairs of a component and a dataset, by number.

        Their weights say nothing of the source, which decides as it goes: a dataset's first pair
        has its share of all rows, to size buffers with.
        """
        rows = [dataset.total() + 1 for dataset in self.datasets.values()]
        total = sum(rows)
        listed = list(zip(self.datasets.items(), rows, strict=True))
        return tuple(
            Component(name, dataset_id, dataset, 0.0 if place else count / total)
            for place, name in enumerate(self.places)
            for (dataset_id, dataset), count in listed
        )

    def check_names(self, chunk: WorkChunk, where: str) -> None:
        """Refuse a chunk that names a component that is not in the vocabulary.

        Raises:
            PlanError: it does.
        """
        named = {
            "": chunk.samples.names,
            "source_exhausted: ": chunk.source_exhausted,
            "target_mixture: ": chunk.target_mixture or (),
        }
        for part, names in named.items():
            for name in names:
                if name not in self.places:
                    raise PlanError(
                        f"{where}: {part}component {name!r} is not in component_ids(); "
                        f"{nearest(name, self.places)}"
                    )

    def rows_of(self, chunk: WorkChunk, where: str) -> Rows:
        """Find the rows of a chunk, in its order.

        Args:
            chunk: of known components.
            where: names the lane and the chunk in an error.

        Raises:
            PlanError: a sample id names no row of the datasets.
        """
        samples = chunk.samples
        dataset_id, shard_id, row = samples.ids.T
        known = np.array(list(self.datasets), dtype=np.int64)
        place = np.searchsorted(known, dataset_id)
        place[place == len(known)] = 0
        right = known[place] == dataset_id
        shard = np.zeros_like(row)
        for each, mine in _groups(place):
            ids, counts = self._shards_of(int(known[each]))
            found, there = _places(shard_id[mine], ids, len(counts))
            if len(counts):
                there &= (row[mine] >= 0) & (row[mine] < counts[found])
            right[mine] &= there
            shard[mine] = found
        if not right.all():
            self._refuse(int(np.argmin(right)), chunk, where)
        numbers = np.array([self.places[name] for name in samples.names], dtype=np.int64)
        component = np.repeat(numbers, samples.counts) * len(known) + place
        order = chunk.order()
        weights = chunk.target_mixture or chunk.mixture
        return Rows(component[order].astype(np.int32), shard[order], row[order], weights)

    def weights_of(self, rows: Rows) -> NDArray[np.float64]:
        """Give the weights that a chunk aims at, shape [pairs]: on a component's first pair."""
        weights = np.zeros((len(self.places), len(self.datasets)))
        total = sum(rows.weights.values())
        for name, weight in rows.weights.items():
            weights[self.places[name], 0] = weight / total
        return weights.ravel()

    def _shards_of(self, dataset_id: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Give the ids of a dataset's shards, None where they are positions, and their rows."""
        if dataset_id not in self._shards:
            dataset = self.datasets[dataset_id]
            # Each lane has a vocabulary: a million ids in each would be 8 MB a lane.
            ids = None if dataset.shard_ids is None else np.asarray(dataset.ids())
            self._shards[dataset_id] = (ids, np.asarray(dataset.counts()))
        return self._shards[dataset_id]

    def _refuse(self, place: int, chunk: WorkChunk, where: str) -> NoReturn:
        """Raise for a sample, saying what there is instead."""
        ((sample, name),) = chunk.samples.pairs(np.array([place]))
        dataset_id, shard_id, _ = sample
        if dataset_id not in self.datasets:
            fault = f"there is no dataset {dataset_id}, datasets_by_id has {_few(self.datasets)}"
        else:
            dataset = self.datasets[dataset_id]
            ids, counts = self._shards_of(dataset_id)
            (at,), (there,) = _places(np.array([shard_id]), ids, len(counts))
            if not there:
                known = range(len(counts)) if ids is None else ids
                fault = f"dataset {dataset.name!r} has no shard {shard_id}, it has {_few(known)}"
            else:
                fault = (
                    f"shard {shard_id} of dataset {dataset.name!r} has rows 0 to {counts[at] - 1}"
                    if counts[at]
                    else f"shard {shard_id} of dataset {dataset.name!r} has no rows"
                )
        raise PlanError(f"{where}: sample {sample} of component {name!r} names no row: {fault}")


def _places(
    wanted: NDArray[np.int64], ids: NDArray[np.int64] | None, shards: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Find shards by their ids, ascending, or None where an id is the shard's position.

    Returns:
        The position of each, 0 where there is none, and whether there is one.
    """
    if ids is None:
        there = (wanted >= 0) & (wanted < shards)
        return np.where(there, wanted, 0), there
    found = np.searchsorted(ids, wanted)
    found[found == shards] = 0
    there = ids[found] == wanted if shards else np.zeros(len(wanted), bool)
    return found, there


def _groups(place: NDArray[np.int64]) -> Iterator[tuple[int, slice | NDArray[np.int64]]]:
    """Yield each place that occurs, and where it does."""
    present = np.flatnonzero(np.bincount(place))
    if len(present) < 2:
        yield from ((place, slice(None)) for place in present.tolist())
        return
    where = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[where], present)
    yield from zip(present.tolist(), np.split(where, bounds[1:]), strict=True)


def _few(ids: Any) -> str:
    listed = [int(each) for each in islice(ids, 8)]
    more = ", ..." if len(ids) > len(listed) else ""
    return f"{', '.join(map(str, listed))}{more}" if listed else "none"
