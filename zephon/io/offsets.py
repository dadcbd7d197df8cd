"""Offsets: where things of given lengths begin when they lie end to end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def offsets_of(lengths: NDArray[np.int64] | Sequence[int]) -> NDArray[np.int64]:
    """Add up lengths, shape [n], to offsets, shape [n + 1], int64: the last one is the sum.

    >>> offsets_of([2, 0, 3]).tolist(), offsets_of([]).tolist()
    ([0, 2, 2, 5], [0])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def indices_of(rows: NDArray[np.int64]) -> pa.Array:
    """View positions as Arrow takes them, shape [n], int64.

    ``pa.array`` would import ``numpy.ma`` first, which takes as long as reading some row groups.

    >>> indices_of(np.array([2, 0])).to_pylist()
    [2, 0]
    """
    whole = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def is_ascending(numbers: NDArray[np.integer]) -> bool:
    """Say whether no number is less than the one before it.

    >>> is_ascending(np.array([3, 3, 5])), is_ascending(np.array([3, 5, 4]))
    (True, False)
    """
    return not (numbers[1:] < numbers[:-1]).any()


def are_neighbours(rows: NDArray[np.int64]) -> bool:
    """Say whether rows, at least one, follow each other, so that a slice holds them.

    >>> are_neighbours(np.array([3, 4, 5])), are_neighbours(np.array([3, 5, 4, 6]))
    (True, False)
    """
    if rows[-1] - rows[0] != len(rows) - 1:
        return False
    return bool((rows[1:] - rows[:-1] == 1).all())
