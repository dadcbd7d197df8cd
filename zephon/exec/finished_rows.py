"""The rows of a lane that are finished and not taken yet, in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies import Units


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Finished rows.

    marks: when the document came that let each row go, as ``LaneRun.weights_at`` takes it,
    shape [rows, 2], int64.
    """

    rows: Units
    marks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, first: int, stop: int) -> Placed:
        """Return rows [first, stop)."""
        return Placed(self.rows.rows(first, stop), self.marks[first:stop])


class FinishedRows:
    """A queue of rows.

    tokens: of all rows in it.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._parts: deque[Placed] = deque()
        self._begun = 0  # rows of the first part that were taken

    def add(self, placed: Placed) -> None:
        """Put rows behind all others."""
        self._parts.append(placed)
        self.tokens += int(placed.rows.length.sum())

    def take(self, count: int) -> list[Placed]:
        """Take the first ``count`` rows."""
        taken = []
        while count:
            first = self._parts[0]
            stop = min(self._begun + count, len(first))
            placed = first.some(self._begun, stop)
            count -= len(placed)
            self._begun = stop
            if stop == len(first):
                self._parts.popleft()
                self._begun = 0
            self.tokens -= int(placed.rows.length.sum())
            taken.append(placed)
        return taken

    def units(self) -> list[Units]:
        """List the rows, as they were put in."""
        parts = [placed.rows for placed in self._parts]
        if self._begun:
            parts[0] = parts[0].rows(self._begun, len(parts[0]))
        return parts

    def tokens_of(self, first: int, stop: int) -> int:
        """Count tokens of the rows from the ``first`` in it to before the ``stop``-th."""
        tokens, at = 0, 0
        for units in self.units():
            a, b = max(first - at, 0), min(stop - at, len(units))
            if a < b:
                tokens += int(units.length[units.splits[a] : units.splits[b]].sum())
            at += len(units)
            if at >= stop:
                break
        return tokens
