"""Measuring one dataset: its tokens per byte, from a sample of its rows.

The answer is a function of the data, the seed, and what counts; threads and order of work do not
enter. A sample reads few row groups, and of each counts few rows, after a look at the sizes of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.errors import PlanError
from zephon.work import sampling
from zephon.work.sampling import Place, RowSample

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

LOOKED_AT_BYTES = 64 << 20
"""Decoded bytes of a dataset in which rows are looked for; more only if row groups are larger."""

MOST_CANDIDATES = 65_536
"""Rows of one shard whose sizes are looked at, each time that it is drawn."""

CLOSE_ENOUGH = 0.01
"""Relative standard error below which no more shards are read."""

MOST_TOKENS = 1 << 40
"""Tokens of one row, beyond which a count is a mistake."""

Count: TypeAlias = Callable[[str, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""From a dataset's name, shards and rows, both of shape [n], to the tokens of each row.

The answer has shape [n], int64, from 0 to ``MOST_TOKENS``; -1 stands for a row that cannot be read.
"""

Choose: TypeAlias = Callable[[int, NDArray[np.int64] | None], NDArray[np.int64]]
"""From the number of a place, and the sizes of its rows or None, to the positions to count."""


@runtime_checkable
class ChoosingCount(Protocol):
    """A ``Count`` that knows sizes: of row groups, and of many rows before it counts a few."""

    def count_chosen(
        self, dataset: str, places: Sequence[tuple[int, NDArray[np.int64]]], choose: Choose
    ) -> Sequence[NDArray[np.int64]]:
        """Count the tokens of chosen rows.

        Args:
            dataset: its name.
            places: for each, a shard and rows of it, ascending.
            choose: is called once a place, from any thread.

        Returns:
            Tokens of the chosen rows of each place, -1 for a row that cannot be read.
        """
        ...

    def group_bytes(self, dataset: str, shard: int) -> NDArray[np.int64] | None:
        """Give the decoded bytes of a shard's row groups, shape [groups]; None if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows a measurement counts, and how many shards it draws."""

    rows: int
    least_shards: int
    most_shards: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found: tokens per byte, None if no row could be read; rows asked for and read."""

    tokens_per_byte: float | None
    asked: int
    read: int


def measure(name: str, dataset: Dataset, extent: Extent, seed: int, count: Count) -> Measured:
    """Measure a dataset that has rows; one of no more than ``extent.rows`` is counted in full.

    As many shards are drawn as may be, unless row groups are so large that reading fewer pays: then
    so many only if the first ones differ.

    Raises:
        PlanError: ``count`` gives what no rows can have; names dataset, shard and row.
    """
    measuring = _Measuring(name, dataset, extent, seed, count)
    if dataset.total() <= extent.rows:
        return measuring.all_rows()
    most = extent.most_shards
    affordable = int(LOOKED_AT_BYTES // max(dataset.mean_group_bytes(), 1.0))
    first = max(extent.least_shards, affordable)
    if 2 * first <= most:  # else all of them cost little more
        found, error = measuring.sample(first)
        if error <= CLOSE_ENOUGH:
            return found
    return measuring.sample(most)[0]


def row_bytes(dataset: Dataset, shards: NDArray[np.int64] | None = None) -> float:
    """Give the decoded bytes of a mean row; 1 where nothing is known, so that ratios exist."""
    return dataset.mean_row_bytes(shards) or 1.0


@dataclass(frozen=True, slots=True)
class _Measuring:
    name: str
    dataset: Dataset
    extent: Extent
    seed: int
    count: Count

    def all_rows(self) -> Measured:
        counts = np.asarray(self.dataset.counts(), dtype=np.int64)
        shards = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(len(shards)) - np.repeat(np.cumsum(counts) - counts, counts)
        tokens = self._checked(self.count(self.name, shards, rows), shards, rows)
        good = tokens[tokens >= 0]
        # A mean is summed up in floating point: an int64 may be too narrow for the sum.
        ratio = float(good.mean()) / row_bytes(self.dataset) if len(good) else None
        return Measured(ratio, len(tokens), len(good))

    def sample(self, draws: int) -> tuple[Measured, float]:
        """Measure in so many shards; also give the relative standard error."""
        places = self._places(draws)
        samples: dict[int, RowSample] = {}

        def choose(number: int, sizes: NDArray[np.int64] | None) -> NDArray[np.int64]:
            place = places[number]
            offset = self._offset("rows", place.shard, int(place.rows[0]))
            samples[number] = place.choose(sizes, offset)
            return samples[number].rows

        counted = self._count_chosen([(place.shard, place.rows) for place in places], choose)
        tokens = [
            self._checked(counted[number], place.shard, place.rows[samples[number].rows])
            for number, place in enumerate(places)
        ]
        means = [samples[number].mean(found) for number, found in enumerate(tokens)]
        known = [(p, mean) for p, mean in zip(places, means, strict=True) if mean is not None]
        asked = sum(len(found) for found in tokens)
        read = sum(int((found >= 0).sum()) for found in tokens)
        if not known:
            return Measured(None, asked, read), 0.0
        ratio, error = sampling.tokens_per_byte(
            [place for place, _ in known], [mean for _, mean in known], row_bytes(self.dataset)
        )
        return Measured(ratio, asked, read), error

    def _places(self, draws: int) -> list[Place]:
        """Draw shards, and in each as many row groups as may be looked at; list them apart."""
        dataset = self.dataset
        counts = np.asarray(dataset.counts(), dtype=np.int64)
        sizes = np.asarray(dataset.raw_bytes(), dtype=np.int64)
        shards = sampling.draw_shards(counts, sizes, draws, self._offset("shards"))
        each = self.extent.rows / sum(drawn.hits for drawn in shards)
        candidates = min(LOOKED_AT_BYTES / draws / row_bytes(dataset), MOST_CANDIDATES)
        found = []
        for drawn in shards:
            about = dataset.shards[drawn.shard]
            group_rows = about.group_rows
            groups = max(1, int(candidates * np.count_nonzero(group_rows) / about.rows))
            chosen, share = sampling.draw_groups(
                group_rows, drawn.hits * groups, self._offset("groups", drawn.shard)
            )
            starts = np.cumsum(group_rows) - group_rows
            size = self._row_bytes_of_groups(drawn.shard)
            for part in np.array_split(np.arange(len(chosen)), min(drawn.hits, len(chosen))):
                rows = [
                    self._candidates(drawn.shard, int(starts[group]), int(group_rows[group]))
                    for group in chosen[part].tolist()
                ]
                total = float(np.cumsum(share[part])[-1])
                lengths = [len(one) for one in rows]
                found.append(
                    Place(
                        shard=drawn.shard,
                        rows=np.concatenate(rows),
                        chance=np.repeat(share[part] / total / lengths, lengths),
                        weight=drawn.weight * total,
                        draws=max(1, int(each * drawn.hits * len(part) / len(chosen))),
                        row_bytes=float(np.cumsum(share[part] * size[chosen[part]])[-1]) / total,
                    )
                )
        return found

    def _row_bytes_of_groups(self, shard: int) -> NDArray[np.float64]:
        """Give decoded bytes of a mean row of each row group, of the shard where unknown."""
        about = self.dataset.shards[shard]
        rows = np.maximum(about.group_rows, 1)
        if isinstance(self.count, ChoosingCount):
            known = self.count.group_bytes(self.name, shard)
            if known is not None:
                return known / rows
        return np.full(len(rows), about.decoded_bytes / about.rows)

    def _candidates(self, shard: int, first: int, rows: int) -> NDArray[np.int64]:
        """Give the rows of a group whose sizes are looked at: all, or so many at even steps."""
        if rows <= MOST_CANDIDATES:
            return np.arange(first, first + rows)
        steps = np.arange(MOST_CANDIDATES) + self._offset("sizes", shard, first)
        return first + (steps * (rows / MOST_CANDIDATES)).astype(np.int64).clip(max=rows - 1)

    def _count_chosen(
        self, places: list[tuple[int, NDArray[np.int64]]], choose: Choose
    ) -> Sequence[NDArray[np.int64]]:
        if isinstance(self.count, ChoosingCount):
            return self.count.count_chosen(self.name, places, choose)
        chosen = [rows[choose(number, None)] for number, (_, rows) in enumerate(places)]
        lengths = [len(rows) for rows in chosen]
        shards = np.repeat([shard for shard, _ in places], lengths)
        tokens = np.atleast_1d(self.count(self.name, shards, np.concatenate(chosen)))
        return np.split(tokens, np.cumsum(lengths)[:-1])

    def _checked(
        self, tokens: object, shards: int | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Refuse what no rows can have; sums of the rest stay in range."""
        found = np.asarray(tokens)
        where = f"prime: dataset {self.name!r}"
        if found.shape != rows.shape or found.dtype.kind not in "iu":
            raise PlanError(
                f"{where}: counting_spec must give one int64 a row, {len(rows)} here, got "
                f"{found.dtype} of shape {list(found.shape)}; give the tokens of each row"
            )
        wrong = (found < -1) | (found > MOST_TOKENS)
        if wrong.any():
            place = int(wrong.argmax())
            shard = self.dataset.shards[int(np.broadcast_to(shards, rows.shape)[place])]
            raise PlanError(
                f"{where}, shard {shard.name!r}, row {rows[place]}: counting_spec must give from "
                f"0 to 2^40 tokens, got {found[place]}; give -1 for a row that cannot be read"
            )
        return found.astype(np.int64, copy=False)

    def _offset(self, step: str, *place: int) -> float:
        """Say where even steps begin; it does not matter which thread asks, or when."""
        generator = seeds.generator(self.seed, self.name, "calibration", step, *place)
        return float(generator.random())
