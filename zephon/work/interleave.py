"""The order in which a lane's components take turns: due times, compared.

Item k of a component is due at time (k + phase) / weight, and a lane draws its items by due time,
then by component order. That is all there is: the draws before any position are found by an
estimate and set right by comparing due times, so a seek gives what a walk gives, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a component's items become due, in lane time (one unit a draw).

    weight: share of the draws, > 0; the weights of an interleave add up to one.
    phase: where in its interval an item is due, between 0 and 1.
    """

    weight: float
    phase: float

    def due(self, number: _Number) -> _Number:
        """Give the time at which an item is due. The one formula, for numbers and arrays.

        The number is a float64 exactly up to 2^53; due times never decrease beyond.
        """
        return (number + self.phase) / self.weight

    def count_until(self, time: float, *, before: bool = False) -> int:
        """Count the items due up to and including ``time``, or before it."""
        count = max(0, math.floor(self.weight * time - self.phase) + 1)
        while count > 0 and _is_later(self.due(float(count - 1)), time, before):
            count -= 1
        while not _is_later(self.due(float(count)), time, before):
            count += 1
        return count


def _is_later(due: float, time: float, or_equal: bool) -> bool:
    return due >= time if or_equal else due > time


@dataclass(frozen=True, slots=True)
class Turns:
    """Some draws of a lane, as items of components.

    first: each component's first item among the candidates.
    count: how many items of each component are candidates.
    order: the drawn candidates in order, shape [draws], int64, as places in the list of all
        candidates, component after component.
    """

    first: list[int]
    count: list[int]
    order: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interleave:
    """The turns of components with these paces, ties going to the earlier one.

    >>> both = Interleave((Pace(0.75, 0.5), Pace(0.25, 0.5)))
    >>> turns = both.turns(0, 8)
    >>> np.repeat([0, 1], turns.count)[turns.order].tolist()
    [0, 0, 1, 0, 0, 0, 1, 0]
    """

    paces: tuple[Pace, ...]

    def turns(self, start: int, count: int) -> Turns:
        """Find draws ``start`` to ``start + count - 1``.

        A few more candidates than draws are looked at: at most two or three a component.
        """
        low = self._counts_with(at_most=start)
        high = self._counts_with(at_least=start + count)
        candidates = [stop - begin for begin, stop in zip(low, high, strict=True)]
        due = np.concatenate(
            [
                pace.due(np.arange(begin, stop, dtype=np.int64).astype(np.float64))
                for pace, begin, stop in zip(self.paces, low, high, strict=True)
            ]
        )
        skipped = start - sum(low)
        # Stable: ties stay in component order. It merges what is already sorted.
        order = np.argsort(due, kind="stable")[skipped : skipped + count]
        return Turns(low, candidates, order)

    def draws_through(self, items: Sequence[int | None]) -> int:
        """Count the draws up to and including the last of these items, one a component.

        Args:
            items: for each component the number of an item, or None for none of it.

        Returns:
            The number of draws after which all these items have been drawn; 0 if there are none.
        """
        ends = [
            (pace.due(float(item)), component)
            for component, (pace, item) in enumerate(zip(self.paces, items, strict=True))
            if item is not None
        ]
        if not ends:
            return 0
        time, last = max(ends)
        return sum(
            (items[component] or 0) + 1
            if component == last
            else pace.count_until(time, before=component > last)
            for component, pace in enumerate(self.paces)
        )

    def _counts_with(self, *, at_most: int = -1, at_least: int = -1) -> list[int]:
        """Count each component's items up to a time with at most, or at least, so many draws.

        At time t a lane has drawn t - sum(phases) and up to one more for each component.
        """
        components = len(self.paces)
        down = at_least < 0
        time = float(at_most if down else at_least) + sum(pace.phase for pace in self.paces)
        if down:
            time -= components
        step = 1.0
        while True:
            counts = [pace.count_until(time) for pace in self.paces]
            total = sum(counts)
            if total <= at_most if down else total >= at_least:
                return counts
            time += -step if down else step
            step *= 2.0
