"""The documents of a strand that a merge by tokens knows, and the times at which they are due."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zephon.work.course import Courses

NEVER = 2**62
"""Stands for a document that does not come."""

_BIT, _ROUNDING = 2.0**-20, 2.0**-50  # of a token; of an amount


@dataclass(frozen=True, slots=True, eq=False)
class StrandDocuments:
    """Consecutive documents of one strand, in its order; all of shape [documents].

    position: the draw of the strand that brought it. length: tokens, of all splits together.
    pass_index: the pass over the component's rows.
    """

    position: NDArray[np.int64]
    length: NDArray[np.int64]
    pass_index: NDArray[np.integer]


@dataclass(slots=True, eq=False)
class Queue:
    """One strand: its documents that are known and not merged, from ``at`` on.

    read: draws whose documents are known. before: tokens emitted before the first of these.
    position, ends: draw of each document, and tokens emitted with it, from the lane's beginning.
    lengths, starts, finishes: the same documents for the loop; ``starts`` has one entry more.
    merged: documents merged and forgotten, before those before ``at``.
    stop: the document before which the loop must look up; finish, must, beyond, flat: with the
    first the component is finished, with the second it has drawn what it must, before the third
    it has, since the last of those draws gave none; before the fourth its course becomes flat for
    ever.
    """

    read: int
    drawn: int
    before: int
    at: int = 0
    merged: int = 0
    stop: int = 0
    finish: int = NEVER
    must: int = NEVER
    beyond: int = NEVER
    flat: int = NEVER
    position: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    ends: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    lengths: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens emitted so far."""
        return int(self.ends[self.at - 1]) if self.at else self.before

    @property
    def next_draw(self) -> int:
        """The draw after the last merged document's."""
        return int(self.position[self.at - 1]) + 1 if self.at else self.drawn

    def drop_merged(self) -> None:
        """Forget the documents before ``at``."""
        at = self.at
        if not at:
            return
        self.merged += at
        self.before, self.drawn = self.tokens, self.next_draw
        self.position, self.ends = self.position[at:], self.ends[at:]
        del self.lengths[:at], self.starts[:at], self.finishes[:at]
        self.finish, self.must, self.beyond, self.flat = (
            n if n == NEVER else n - at for n in (self.finish, self.must, self.beyond, self.flat)
        )
        self.stop, self.at = self.stop - at, 0

    def look_up(self) -> None:
        """Find where the loop must stop next."""
        self.stop = min(len(self.lengths), self.finish + 1, self.must + 1)
        for place in (self.beyond, self.flat):
            if place > self.at:
                self.stop = min(self.stop, place)


def due_times(
    courses: Courses, component: int | NDArray[np.integer], amounts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find when components have emitted so many tokens, as whole numbers since the re-basing.

    Args:
        courses: the targets.
        component: one, or one an amount.
        amounts: shape [amounts], int64.

    Returns:
        For each amount the time at which more of it begins to be due, and the time at which it is
        reached: they differ where a course is flat in between. Shape [amounts]; infinity: never.
    """
    wanted = amounts.astype(np.float64)
    reached = courses.reached(component, wanted)
    if not courses.bends:
        return np.where(courses.ending[component], math.inf, reached), reached
    bit = courses.reached(component, wanted + (_BIT + _ROUNDING * wanted))
    token = courses.reached(component, wanted + 1.0)
    with np.errstate(invalid="ignore"):
        flat = (bit - reached > (token - reached) / 2.0) | np.isinf(bit)
    return np.where(flat, bit, reached), reached


def first_never(starts: Sequence[float]) -> int:
    """Find the first document that is never due."""
    return (
        NEVER if starts[-1] < math.inf else next(i for i, s in enumerate(starts) if s == math.inf)
    )
