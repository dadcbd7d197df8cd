"""How much of each component a lane should have drawn by any time: A_c(t), continuous, rising.

Weights are given at points of time and are constant, or on a straight line, between them; so a
course is a line, or a parabola, in each piece. Its slope is the weight over the cost of a draw. A
time is found from an amount by one formula in float64, and everything else compares such times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_DRAWS = 2**53
"""Draws, rows and times beyond it are not told apart: they are float64 in due times."""


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """The courses of several components over one lane's time.

    times: where each piece starts, shape [pieces], float64, rising from 0; the last never ends.
    left, right: weights at the start and the end of each piece, shape [components, pieces],
        float64; in the last piece they are equal. Where any is positive they add up to one.
    costs: time that a draw of each component takes, shape [components], float64: 1 where time
        counts draws, mean tokens of a row where it counts estimated tokens.
    rate, bend: of each course at the start of a piece, and its change per unit of time.
    done: of each course at the start of a piece.

    >>> courses = Courses.constant([0.75, 0.25])
    >>> courses.at(8.0).tolist(), courses.reached(1, np.array([1.0, 2.0])).tolist()
    ([6.0, 2.0], [4.0, 8.0])
    """

    times: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    costs: NDArray[np.float64]
    rate: NDArray[np.float64]
    bend: NDArray[np.float64]
    done: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        times: NDArray[np.float64],
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        costs: NDArray[np.float64],
    ) -> Courses:
        """Work out the courses of weights; the arrays are kept, not copied."""
        lengths = np.diff(times)
        rate = left / costs[:, None]
        bend = np.zeros_like(rate)
        bend[:, :-1] = (right[:, :-1] - left[:, :-1]) / lengths / costs[:, None]
        done = np.zeros_like(rate)
        gains = lengths * (left[:, :-1] + right[:, :-1]) / 2.0 / costs[:, None]
        np.cumsum(gains, axis=1, out=done[:, 1:])
        return cls(times, left, right, costs, rate, bend, done)

    @classmethod
    def constant(
        cls, weights: Sequence[float] | NDArray[np.float64], costs: Sequence[float] | None = None
    ) -> Courses:
        """Make courses of weights that never change."""
        column = np.array(weights, dtype=np.float64)[:, None]
        each = np.ones(len(column)) if costs is None else np.array(costs, dtype=np.float64)
        return cls.of(np.zeros(1), column, column, each)

    @property
    def components(self) -> int:
        """How many courses there are."""
        return len(self.costs)

    @property
    def bends(self) -> bool:
        """Whether weights change with time."""
        return len(self.times) > 1

    @property
    def ending(self) -> NDArray[np.bool_]:
        """Which components have no weight from the last piece on, shape [components]."""
        return self.rate[:, -1] == 0.0

    def among(self, places: Sequence[int], components: int) -> Courses:
        """Place these courses among others that never rise.

        Args:
            places: position of each, ascending.
            components: how many there are then.
        """
        left = np.zeros((components, len(self.times)))
        right, costs = np.zeros_like(left), np.ones(components)
        left[places], right[places], costs[places] = self.left, self.right, self.costs
        return Courses.of(self.times, left, right, costs)

    def weights_at(self, time: float) -> NDArray[np.float64]:
        """Give the weights in force at a time, shape [components]. New memory."""
        if not self.bends:
            return self.left[:, 0].copy()
        piece = self.piece(time)
        if self.is_level(piece):
            return self.left[:, piece].copy()
        start, stop = self.times[piece], self.times[piece + 1]
        share = (time - start) / (stop - start)
        return self.left[:, piece] + share * (self.right[:, piece] - self.left[:, piece])

    def is_level(self, piece: int) -> bool:
        """Whether weights stay the same in a piece."""
        return bool((self.left[:, piece] == self.right[:, piece]).all())

    def at(self, time: float) -> NDArray[np.float64]:
        """Give every course at a time, shape [components]; at infinity, all there will be."""
        piece = self.piece(time)
        rate, done = self.rate[:, piece], self.done[:, piece]
        past = time - self.times[piece]
        if math.isinf(past):
            return np.where(rate > 0.0, np.inf, done)
        return done + past * (rate + self.bend[:, piece] / 2.0 * past)

    def reached(
        self, component: int | NDArray[np.integer], amounts: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Find the earliest time at which a course is at least at each amount.

        Args:
            component: whose course; one, or one for each amount.
            amounts: shape [amounts], float64.

        Returns:
            Times of shape [amounts], not falling where amounts of a component rise; infinity for
            an amount that is never reached.
        """
        if not self.bends:
            # A weight of zero reaches nothing but what is there already.
            with np.errstate(divide="ignore", invalid="ignore"):
                time = amounts / self.rate[component, 0]
            return np.where(amounts > 0.0, time, 0.0)
        piece = self._pieces_of(component, amounts)
        rate, bend = self.rate[component, piece], self.bend[component, piece]
        more = amounts - self.done[component, piece]
        root = np.sqrt(np.maximum(rate * rate + 2.0 * bend * more, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # The root of the parabola in the form that neither cancels nor needs a bend.
            past = np.where(bend == 0.0, more / rate, 2.0 * more / (rate + root))
        ends = np.append(self.times[1:], np.inf)
        time = np.minimum(self.times[piece] + past, ends[piece])
        return np.where(amounts > 0.0, time, 0.0)

    def rebased(self, time: float, live: NDArray[np.bool_]) -> Courses:
        """Begin anew at a time, without those that are not live: their weight goes to the others.

        All courses begin at 0, and so does time. At each point the weights that are left are
        scaled to add up to one; between points they stay on a line.
        """
        first = self.piece(time)
        times = np.concatenate(([0.0], self.times[first + 1 :] - time))
        left = np.where(live[:, None], self.left[:, first:], 0.0)
        right = np.where(live[:, None], self.right[:, first:], 0.0)
        left[:, 0] = np.where(live, self.weights_at(time), 0.0)
        left, right = _scaled(left, right)
        return Courses.of(times, left, right, self.costs)

    def piece(self, time: float) -> int:
        """Say in which piece a time lies."""
        if not self.bends:
            return 0
        return max(int(np.searchsorted(self.times, time, side="right")) - 1, 0)

    def _pieces_of(
        self, component: int | NDArray[np.integer], amounts: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Find the piece in which each amount is reached first."""
        if isinstance(component, np.ndarray):
            pieces = np.zeros(len(amounts), dtype=np.int64)
            if len(self.times) <= len(self.costs):
                for piece in range(1, len(self.times)):
                    pieces += self.done[component, piece] < amounts
                return pieces
            for each in np.unique(component).tolist():
                mine = component == each
                pieces[mine] = self._pieces_of(each, amounts[mine])
            return pieces
        return np.maximum(np.searchsorted(self.done[component], amounts, side="left") - 1, 0)


def _scaled(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale weights to add up to one at both ends of each piece.

    Where none is left at one end, all weights rise from zero together: their shares are those of
    the other end.
    """
    left_sum, right_sum = left.sum(axis=0), right.sum(axis=0)
    left = np.where(left_sum > 0.0, left, right)
    right = np.where(right_sum > 0.0, right, left)
    sums = [np.where(each > 0.0, each, 1.0) for each in (left.sum(axis=0), right.sum(axis=0))]
    return left / sums[0], right / sums[1]
