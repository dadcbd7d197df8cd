"""Runs of neighbouring positions of a pass, and the arithmetic of ranges laid end to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Runs:
    """Neighbouring positions of a pass, run after run; all shape [runs], no run is empty."""

    pass_index: NDArray[np.int64]
    start: NDArray[np.int64]  # position in the pass
    length: NDArray[np.int64]

    def slice(self, start: int, stop: int) -> Runs:
        """Give the runs from ``start`` up to ``stop``; they share this object's memory."""
        return Runs(self.pass_index[start:stop], self.start[start:stop], self.length[start:stop])


def count_up(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count up from each ``first``, ``count`` numbers long, one range after another. New memory.

    >>> count_up(np.array([5, 0]), np.array([3, 2])).tolist()
    [5, 6, 7, 0, 1]
    """
    if len(count) == 1:
        return np.arange(first[0], first[0] + count[0], dtype=np.int64)
    end = np.cumsum(count)
    numbers = np.repeat(first - (end - count), count)
    return np.add(numbers, np.arange(len(numbers), dtype=np.int64), out=numbers)


def first_of_each(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find where each stretch of equal neighbours begins, shape [stretches], int64.

    >>> first_of_each(np.array([7, 7, 3, 7])).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
