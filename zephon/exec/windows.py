"""Draws in whole windows: for operators that see the rows of so many draws as one group.

An edit of the run ends a window, and begins one. What was drawn before it had seen its whole
window, with draws that came to nothing: it sees them again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs


def whole_windows(first: int, draws: int, left: int | None, window: int) -> int:
    """Round a number of draws up such that they end with a window, or with the lane.

    >>> whole_windows(100, 10, None, 64), whole_windows(0, 10, 20, 64), whole_windows(5, 3, None, 1)
    (28, 20, 3)
    """
    rounded = -(-(first + draws) // window) * window - first
    return rounded if left is None else min(rounded, left)


def windows_of(stream: LaneStream, draws: NDArray[np.int64], window: int) -> Refs:
    """Draw all windows that some draws are in.

    Args:
        stream: of a lane, or of one strand of it.
        draws: ascending, of one part of the stream, shape [draws].
        window: draws of each.
    """
    begin, stream = stream.part(int(draws[0])) if len(draws) else (0, stream)
    numbers = np.unique(draws // window)
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    parts = []
    for run in np.split(numbers, breaks) if len(numbers) else []:
        first, stop = max(int(run[0]) * window, begin), (int(run[-1]) + 1) * window
        if stream.length is not None:
            stop = min(stop, stream.length)
        parts.append(stream.draw(first, stop - first))
    return Refs.concat(parts)
