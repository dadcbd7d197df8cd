"""When a lane ends, and what happens when one of its components does: the stretches of a lane.

A component is finished right after its last row, or when its budget is met: the lane is re-based,
which means that the courses of the others begin anew from there, its weight shared among them. So
a lane is a list of stretches, each with fixed courses; most lanes have one. An edit of a run
re-bases too: then a lane is laid out from where it stood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.work.course import MOST_DRAWS, Courses
from zephon.work.interleave import Interleave

ENDLESS = MOST_DRAWS
"""Stands for no bound on rows, in arrays; one beyond it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many rows of one component a lane may draw, and must.

    finish: rows after which the component is finished; None for never.
    stop: rows after which the lane ends rather than draw one more; None for never.
    must: rows to be drawn before the lane may end; None if the lane does not end of itself.
    """

    finish: int | None = None
    stop: int | None = None
    must: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """Where a lane that was drawn by other rules goes on.

    start: its next draw. time: what it has drawn, as its courses count: draws, or tokens by the
    estimate. drawn: rows of each component before it, shape [components], int64.
    """

    start: int
    time: float
    drawn: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Draws of a lane between two re-basings.

    start: its first draw. stop: the draw after its last one; None if it never ends.
    drawn: items of each component before it, shape [components], int64.
    """

    start: int
    stop: int | None
    drawn: NDArray[np.int64]
    interleave: Interleave


def stretches(
    courses: Courses,
    phases: NDArray[np.float64],
    bounds: Sequence[Bounds],
    base: Base | None = None,
) -> tuple[Stretch, ...]:
    """Lay out a lane, from its first draw, or from a base on, to its end.

    Args:
        courses: of the components, all of which have weight at some time, from the beginning on.
        phases: shape [components].
        bounds: of each component, from the beginning on.
        base: where the lane goes on; its draws before are not laid out.
    """
    finish = _numbers([each.finish for each in bounds])
    stop = _numbers([each.stop for each in bounds])
    must = _numbers([each.must for each in bounds], missing=0)
    waits = any(each.must is not None for each in bounds)
    stop = np.where(finish <= stop, ENDLESS, stop)  # who is finished first needs no row more
    start, time = (0, 0.0) if base is None else (base.start, base.time)
    drawn = np.zeros(len(bounds), np.int64) if base is None else base.drawn
    live = finish > drawn
    if base is not None or not live.all():
        courses = courses.rebased(time, live)
    at = Stretch(start, None, drawn, Interleave(courses, phases))
    if base is not None and not live.any():
        return (replace(at, stop=start),)
    found = []
    while live.any():
        end = _end(at, live, finish, stop, must if waits else None)
        found.append(replace(at, stop=None if end is None else at.start + int(end.drawn.sum())))
        if end is None or end.finished is None:
            break
        live = live.copy()
        live[end.finished] = False
        at = Stretch(
            start=at.start + int(end.drawn.sum()),
            stop=None,
            drawn=at.drawn + end.drawn,
            interleave=Interleave(at.interleave.courses.rebased(end.time, live), phases),
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """Where a stretch ends: what it has drawn of each component, when, and who is finished.

    rank: which of several ends at one draw comes first.
    """

    drawn: NDArray[np.int64]
    rank: int
    time: float = 0.0
    finished: int | None = None


def _end(
    at: Stretch,
    live: NDArray[np.bool_],
    finish: NDArray[np.int64],
    stop: NDArray[np.int64],
    must: NDArray[np.int64] | None,
) -> _End | None:
    """Find where a stretch ends; None if it never does."""
    interleave, drawn = at.interleave, at.drawn
    ends: list[_End] = []
    if interleave.courses.ending.all():
        ends.append(_End(interleave.count_until(math.inf), 2))
    if must is not None:
        last = np.where(live & (must > drawn), must - drawn, 0)
        if interleave.courses.ending.any():
            last = _within_reach(interleave, last)
        ends.append(_End(_through(interleave, last - 1), 0))
    if (wanting := interleave.first_of(_items(live, stop, drawn))) is not None:
        item = int(stop[wanting[0]] - drawn[wanting[0]])
        ends.append(_End(interleave.counts_before(wanting[0], item), 2))
    if (closing := interleave.first_of(_items(live, finish, drawn) - 1)) is not None:
        component, time = closing
        counts = interleave.counts_before(component, int(finish[component] - drawn[component]) - 1)
        counts[component] += 1
        ends.append(_End(counts, 1, time, component))
    return min(ends, key=lambda end: (int(end.drawn.sum()), end.rank), default=None)


def _through(interleave: Interleave, items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count each component's draws up to and including the last of these items."""
    last = interleave.last_of(items)
    if last is None:
        return np.zeros(len(items), np.int64)
    counts = interleave.counts_before(last[0], int(items[last[0]]))
    counts[last[0]] += 1
    return counts


def _within_reach(interleave: Interleave, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bound items by those ever due: no end waits for a component whose weight is gone."""
    ending = interleave.courses.ending
    most = interleave.count_until(math.inf)
    return np.where(ending, np.minimum(counts, most), counts)


def _items(
    live: NDArray[np.bool_], bound: NDArray[np.int64], drawn: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Number, from a stretch's start, the first item beyond a bound; -1 where there is none."""
    return np.where(live & (bound < ENDLESS), bound - drawn, -1)


def _numbers(rows: Sequence[int | None], missing: int = ENDLESS) -> NDArray[np.int64]:
    # A bound too far to be counted is none.
    return np.array([missing if each is None else min(each, ENDLESS) for each in rows])
