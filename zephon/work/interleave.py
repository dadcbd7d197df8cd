"""The order in which a lane's components take turns: due times, compared.

Item k of a component is due when its course reaches k + phase, and a lane draws its items by due
time, then by component order. That is all there is: the draws before any position are found by an
estimate and set right by comparing due times, so a seek gives what a walk gives, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.work.course import Courses


@dataclass(frozen=True, slots=True)
class Turns:
    """Some draws of a lane, as items of components.

    first: each component's first item among the candidates, shape [components], int64.
    count: how many items of each component are candidates, shape [components], int64.
    order: the drawn candidates in order, shape [draws], int64, as places in the list of all
        candidates, component after component.
    """

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Interleave:
    """The turns of components on these courses, ties going to the earlier one.

    phases: where in its interval an item of each component is due, between 0 and 1.

    >>> both = Interleave(Courses.constant([0.75, 0.25]), np.array([0.5, 0.5]))
    >>> turns = both.turns(0, 8)
    >>> np.repeat([0, 1], turns.count)[turns.order].tolist()
    [0, 0, 1, 0, 0, 0, 1, 0]
    """

    courses: Courses
    phases: NDArray[np.float64]

    def due(
        self, component: int | NDArray[np.integer], item: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Give the time at which items are due, infinity for never. The one formula.

        A number is a float64 exactly up to 2^53; due times never decrease beyond.
        """
        return self.courses.reached(component, item.astype(np.float64) + self.phases[component])

    def count_until(
        self, time: float, before: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Count each component's items due up to and including a time, shape [components].

        Args:
            time: of the lane.
            before: for which components an item due exactly then does not count.
        """
        if math.isinf(time):
            time = float(self.courses.times[-1])
        every = np.arange(self.courses.components)
        strict = np.zeros(len(every), dtype=bool) if before is None else before
        amount = np.minimum(self.courses.at(time), 2.0**62)
        count = np.maximum(np.floor(amount - self.phases).astype(np.int64) + 1, 0)
        while True:
            due = self.due(every, np.maximum(count - 1, 0))
            over = (count > 0) & _is_later(due, time, strict)
            if not over.any():
                break
            count -= over
        while True:
            under = ~_is_later(self.due(every, count), time, strict)
            if not under.any():
                return count
            count += under

    def turns(self, start: int, count: int) -> Turns:
        """Find draws ``start`` to ``start + count - 1``, all of which there must be.

        A few more candidates than draws are looked at: at most two or three a component.
        """
        if len(self.phases) == 1:
            return Turns(np.array([start]), np.array([count]), np.arange(count))
        low = self._counts_with(at_most=start)
        high = self._counts_with(at_least=start + count)
        turns = Turns(low, high - low, np.zeros(0, dtype=np.int64))
        skipped = start - int(low.sum())
        # Stable: ties stay in component order. It merges what is already sorted.
        order = np.argsort(self.due(*_items(turns)), kind="stable")
        return replace(turns, order=order[skipped : skipped + count])

    def times(self, start: int, count: int) -> NDArray[np.float64]:
        """Give the times at which draws ``start`` to ``start + count - 1`` are due, [count]."""
        turns = self.turns(start, count)
        return self.due(*_items(turns))[turns.order]

    def counts_before(self, component: int, item: int) -> NDArray[np.int64]:
        """Count each component's draws before an item that is due some time."""
        time = float(self.due(component, np.array([item]))[0])
        counts = self.count_until(time, np.arange(len(self.phases)) > component)
        counts[component] = item
        return counts

    def last_of(self, items: NDArray[np.int64]) -> tuple[int, float] | None:
        """Find which of these items, one a component, is drawn last, and when it is due.

        Args:
            items: shape [components]; below 0 for a component of which none is meant.
        """
        due = np.where(items < 0, -np.inf, self.due(np.arange(len(items)), np.maximum(items, 0)))
        last = len(due) - 1 - int(np.argmax(due[::-1]))
        return None if items[last] < 0 else (last, float(due[last]))

    def first_of(self, items: NDArray[np.int64]) -> tuple[int, float] | None:
        """Find which of these items is drawn first, and when; None if none is ever due."""
        due = np.where(items < 0, np.inf, self.due(np.arange(len(items)), np.maximum(items, 0)))
        first = int(np.argmin(due))
        return None if math.isinf(due[first]) else (first, float(due[first]))

    def _counts_with(self, *, at_most: int = -1, at_least: int = -1) -> NDArray[np.int64]:
        """Count each component's items up to a time with at most, or at least, so many draws.

        When all courses together reach n draws, a lane has drawn n - sum(phases) and up to one more
        for each component.
        """
        down = at_least < 0
        wanted = at_most if down else at_least
        draws = float(wanted) + float(self.phases.sum())
        # A step is in draws: one in time would pass a great many of a component that costs little.
        step = float(len(self.phases))
        shift = -step if down else 0.0
        while True:
            counts = self.count_until(self._time_of(draws + shift))
            total = int(counts.sum())
            if total <= wanted if down else total >= wanted:
                return counts
            shift += -step if down else step
            step *= 2.0

    def _time_of(self, draws: float) -> float:
        """Estimate when all courses together reach so many draws."""
        courses = self.courses
        if not courses.bends:
            return draws / float(courses.rate[:, 0].sum())
        done = courses.done.sum(axis=0)
        piece = max(int(np.searchsorted(done, draws, side="left")) - 1, 0)
        rate = float(courses.rate[:, piece].sum())
        bend, more = float(courses.bend[:, piece].sum()), draws - float(done[piece])
        root = math.sqrt(max(rate * rate + 2.0 * bend * more, 0.0))
        past = 2.0 * more / (rate + root) if rate + root > 0.0 else 0.0
        return float(courses.times[piece]) + past


def _items(turns: Turns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List all candidates as components and items, component after component."""
    component = np.repeat(np.arange(len(turns.count)), turns.count)
    before = np.cumsum(turns.count) - turns.count - turns.first
    return component, np.arange(len(component)) - np.repeat(before, turns.count)


def _is_later(
    due: NDArray[np.float64], time: float, or_equal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    return np.where(or_equal, due >= time, due > time)
