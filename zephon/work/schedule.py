"""Weights that change while a run goes on: by steps, or along straight lines.

A point says which weights hold from there on. Points count samples, tokens or steps of the whole
run; a lane gets there when it has drawn its share, so all lanes change together. A change never
corrects what was drawn before: only the slope of each course changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import PlanError
from zephon.work.course import MOST_DRAWS, Courses
from zephon.work.finite import finite_float
from zephon.work.mixture import MixtureSpec
from zephon.work.words import one_of

UNITS = ("samples", "tokens", "steps")
INTERPOLATIONS = ("step", "linear")


@dataclass(frozen=True, slots=True)
class StepSize:
    """What one step of a run is: so many tokens where rows are packed, else so many samples."""

    count: int
    unit: str


class MixtureSchedule:
    """Weights at points of a run.

    Args:
        points: from position to weights, or pairs of them; each point weighs every dataset.
            Before the first point the source's ``mixture`` holds. A dataset whose weight becomes
            zero still gives what it owes, at most one sample a lane; with zero for the rest of
            the run it is finished, and nothing waits for its rows.
        unit: what positions count: "samples", "tokens" or (optimizer) "steps".
        interpolation: "step": a point's weights hold until the next one; "linear": weights go
            along a straight line from point to point, from position 0 on. The last point's hold
            for the rest of the run.

    Raises:
        PlanError: no points, a position that is negative, repeated or no number, or weights that
            cannot be.

    >>> MixtureSchedule({1000: {"a": 1, "b": 3}}, unit="steps")
    MixtureSchedule(1000: a 0.25, b 0.75; unit='steps', interpolation='step')
    """

    __slots__ = ("interpolation", "points", "unit")

    def __init__(
        self,
        points: Mapping[float, Mapping[str, float] | MixtureSpec]
        | Iterable[tuple[float, Mapping[str, float] | MixtureSpec]],
        *,
        unit: str = "samples",
        interpolation: str = "step",
    ) -> None:
        self.unit = one_of("MixtureSchedule", "unit", unit, UNITS)
        self.interpolation = one_of(
            "MixtureSchedule", "interpolation", interpolation, INTERPOLATIONS
        )
        self.points = _checked_points(points)

    def validate_for(self, names: Iterable[str], mixture: MixtureSpec) -> None:
        """Check that every point weighs exactly these datasets, and agrees with the mixture at 0.

        Raises:
            PlanError: names the point.
        """
        names = list(names)
        for position, spec in self.points:
            try:
                spec.validate_for(names)
            except PlanError as exc:
                raise PlanError(f"schedule, at {self.unit} {position:g}: {exc}") from None
        position, first = self.points[0]
        at_first, before = first.normalized_for(names), mixture.normalized_for(names)
        if position == 0 and not all(
            math.isclose(at_first[name], before[name])
            for name in names  # scaling rounds
        ):
            raise PlanError(
                f"schedule, at {self.unit} 0: the weights {first.normalized} must be those of "
                f"mixture={mixture.normalized}; leave this point out, or write its weights there"
            )

    def courses(
        self,
        names: Iterable[str],
        read: Sequence[str],
        mixture: MixtureSpec,
        *,
        scale: float,
        costs: NDArray[np.float64],
    ) -> Courses:
        """Give the courses of one lane.

        Args:
            names: all components, in their order.
            read: those whose courses are wanted.
            mixture: the weights at the beginning.
            scale: lane time of one unit of the schedule.
            costs: lane time of a draw of each of these, shape [read].
        """
        names = list(names)
        points = [(0.0, mixture), *(point for point in self.points if point[0] > 0)]
        times = np.array([position for position, _ in points]) * scale
        if times[-1] > MOST_DRAWS:
            raise PlanError(
                f"schedule: a point must lie within 2^53 draws or tokens of a lane, the last of "
                f"{self!r} does not; leave it out"
            )
        shares = [spec.normalized_for(names) for _, spec in points]
        columns = [[share[name] for name in read] for share in shares]
        left = np.array(columns, dtype=np.float64).T.copy()
        right = left.copy()
        if self.interpolation == "linear":
            right[:, :-1] = left[:, 1:]
        return Courses.of(times, left, right, costs)

    def recipe(self) -> dict[str, Any]:
        """Describe the schedule as JSON values."""
        points = [[position, dict(spec.normalized)] for position, spec in self.points]
        return {"unit": self.unit, "interpolation": self.interpolation, "points": points}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixtureSchedule):
            return NotImplemented
        return self.recipe() == other.recipe()

    def __hash__(self) -> int:
        return hash((self.unit, self.interpolation, len(self.points), self.points[0][0]))

    def __repr__(self) -> str:
        shown = "; ".join(f"{position:g}: {_shares(spec)}" for position, spec in self.points)
        return f"MixtureSchedule({shown}; unit={self.unit!r}, interpolation={self.interpolation!r})"


def _checked_points(points: object) -> tuple[tuple[float, MixtureSpec], ...]:
    pairs = points.items() if isinstance(points, Mapping) else points
    try:
        found = [(position, weights) for position, weights in pairs]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise PlanError(
            f"MixtureSchedule: points must map positions to weights, got {points!r}; write "
            "{1000: {'a': 0.5, 'b': 0.5}}"
        ) from None
    if not found:
        raise PlanError("MixtureSchedule: points must hold at least one point, got none")
    at = []
    for position, weights in found:
        number = finite_float(position)
        if number is None or not 0 <= number <= MOST_DRAWS:
            raise PlanError(
                "MixtureSchedule: a position must be a finite number from 0 to 2^53, "
                f"got {position!r}"
            )
        spec = weights if isinstance(weights, MixtureSpec) else MixtureSpec(weights)
        at.append((number, spec))
    at.sort(key=lambda point: point[0])
    for (before, _), (after, _) in pairwise(at):
        if before == after:
            raise PlanError(f"MixtureSchedule: two points at {after:.17g}; join their weights")
    return tuple(at)


def _shares(spec: MixtureSpec) -> str:
    return ", ".join(f"{name} {share:.4g}" for name, share in spec.normalized.items())
