"""A lane of a mixture whose run was edited: drawn by other rules up to some draw."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs

Before = tuple[int, Callable[[], LaneStream]]
"""Draws between two edits: the first of them, and what gives them."""


class EditedLane(LaneStream):
    """The draws since the last edit; those before can be looked up by ``part``.

    Args:
        stream: the draws from ``start`` on.
        start: the first draw since the last edit.
        before: the parts before, in order; made when they are asked for.
    """

    __slots__ = ("_before", "_begins", "_made", "_start", "_stream")

    def __init__(self, stream: LaneStream, start: int, before: Sequence[Before]) -> None:
        self._stream = stream
        self._start = start
        self._before = tuple(before)
        self._begins = [first for first, _ in before]
        self._made: dict[int, LaneStream] = {}

    @property
    def length(self) -> int | None:
        """How many draws the lane has, those before the edits too."""
        return self._stream.length

    def draw(self, start: int, count: int) -> Refs:
        """Give draws since the last edit."""
        return self._stream.draw(start, count)

    def weights_at(self, ordinal: int) -> NDArray[np.float64] | None:
        """Give the weights in force at a draw; at one before, those since the last edit."""
        return self._stream.weights_at(max(ordinal, self._start))

    def finished_before(self, ordinal: int) -> NDArray[np.bool_] | None:
        """Tell which components no draw from ``ordinal`` on has."""
        return self._stream.finished_before(ordinal)

    def part(self, ordinal: int) -> tuple[int, LaneStream]:
        """Give the draws among which a draw was made, and the first of them."""
        if ordinal >= self._start:
            return self._start, self._stream
        place = bisect_right(self._begins, ordinal) - 1
        first, make = self._before[place]
        if place not in self._made:
            self._made[place] = make()
        return first, self._made[place]


class PartlyGone(LaneStream):
    """Draws among which those of some components are left out: nobody can read them any more.

    Args:
        stream: gives all.
        gone: the components.
    """

    __slots__ = ("_gone", "_stream")

    def __init__(self, stream: LaneStream, gone: Sequence[int]) -> None:
        self._stream = stream
        self._gone = np.array(gone, np.int32)

    @property
    def length(self) -> int | None:
        """How many draws there are, with those that are left out."""
        return self._stream.length

    def draw(self, start: int, count: int) -> Refs:
        """Give what is left of draws ``start`` up to ``start + count``."""
        refs = self._stream.draw(start, count)
        return refs.take(np.flatnonzero(~np.isin(refs.component, self._gone)))
