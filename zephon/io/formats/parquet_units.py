"""What of a Parquet file is decoded at a time: a row group, or a part of one that is huge.

A row group of gigabytes need not be held whole to read some of its rows: pages are decoded one
after another. So one that is larger than 128 MiB once decoded is parted into units of about 32 MiB.
Which rows these are follows from what every index, catalogue and footer tells, so they are the same
whatever told of a shard; stored row groups stay those of the file. Sizes are those of a mean row of
the shard, as it is encoded: texts that repeat in a dictionary take more once they are decoded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zephon.io.shards import Groups

HUGE_BYTES = 128 << 20
UNIT_BYTES = 32 << 20
_MOST_UNITS = 1 << 26  # of a dataset: a catalogue that tells of more is lying


class Part(NamedTuple):
    """A unit's place in its file: rows ``start`` to ``stop`` of a row group.

    whole: these are all of the group's rows. step: rows of the units of that group, but the last.
    """

    group: int
    start: int
    stop: int
    whole: bool
    step: int


def units_of(rows: NDArray[np.int64], decoded_bytes: NDArray[np.int64], groups: Groups) -> Groups:
    """Part the row groups that are huge; the same arrays come back if there are none.

    Args:
        rows: of each shard, shape [shards].
        decoded_bytes: of each shard, shape [shards].
        groups: the row groups of the files.

    >>> of_one = units_of(
    ...     np.array([10]), np.array([10 << 25]), (np.array([0, 2]), np.array([9, 1]))
    ... )
    >>> [each.tolist() for each in of_one]
    [[0, 10], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]]
    """
    if not (decoded_bytes > HUGE_BYTES).any():
        return groups
    starts, sizes = groups
    counts = np.diff(starts)
    row_bytes = np.repeat(decoded_bytes / np.maximum(rows, 1), counts)
    huge = sizes * row_bytes > HUGE_BYTES
    if not huge.any():
        return groups
    step = np.maximum(sizes, 1)
    unit_rows = np.repeat(UNIT_BYTES * rows / np.maximum(decoded_bytes, 1), counts)
    step[huge] = np.maximum(unit_rows[huge], 1).astype(np.int64)
    parts = np.maximum(-(-sizes // step), 1)
    if int(parts.sum(dtype=np.float64)) > _MOST_UNITS:
        return groups
    ends = np.cumsum(parts)
    made = np.repeat(step, parts)
    made[ends - 1] = sizes - (parts - 1) * step
    first = np.concatenate([np.zeros(1, np.int64), ends])
    return first[starts], made


def parts_of(group_rows: NDArray[np.int64], unit_rows: NDArray[np.int64]) -> list[Part] | None:
    """Find where the units of a shard lie in its file.

    Args:
        group_rows: of the file, shape [groups].
        unit_rows: of the shard, shape [units].

    Returns:
        one a unit; None if they are no parts of these row groups.

    >>> parts_of(np.array([5, 0, 2]), np.array([3, 2, 0, 2]))[1]
    Part(group=0, start=3, stop=5, whole=False, step=3)
    """
    found: list[Part] = []
    units = iter(unit_rows.tolist())
    for group, rows in enumerate(group_rows.tolist()):
        start = step = 0
        while not (found and step) or start < rows:
            unit = next(units, None)
            if unit is None or start + unit > rows or (not unit and rows):
                return None
            step = step or unit
            found.append(Part(group, start, start + unit, unit == rows, step))
            start += unit
            if not rows:
                break
    return found if next(units, None) is None else None
