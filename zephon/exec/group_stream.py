"""What a lane draws from that an operator of the user feeds: groups of rows, one a draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ExecutionError
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs


class GroupStream(LaneStream):
    """Remembers which weights were in force at each group; nothing can be drawn from it again."""

    __slots__ = ("_last", "_weights")

    def __init__(self) -> None:
        self._weights: dict[int, NDArray[np.float64] | None] = {}
        self._last = -1

    def add(self, group: int, weights: NDArray[np.float64] | None) -> None:
        """Take note of the next group.

        Args:
            group: its number.
            weights: those in force when its last row was finished, shape [components]; None:
                nobody knows.
        """
        self._weights[group] = weights
        self._last = group

    def add_like_last(self, group: int) -> None:
        """Take note of a group without rows: the weights are those of the one before."""
        self.add(group, self._weights.get(self._last))

    def weights(self, first: int, stop: int) -> NDArray[np.float64] | None:
        """Give the weights at groups [first, stop), shape [groups, components]; None: unknown."""
        found = [self._weights.get(group) for group in range(first, stop)]
        known = [weights for weights in found if weights is not None]
        return np.array(known) if known and len(known) == len(found) else None

    @property
    def length(self) -> int | None:
        """None: the lane below tells where the groups end."""
        return None

    def weights_at(self, ordinal: int) -> NDArray[np.float64] | None:
        """Give the weights in force at a group; None where nobody knows."""
        return self._weights.get(ordinal)

    def forget_before(self, ordinal: int) -> None:
        """Let go of the weights before a group, but for the latest."""
        for group in [each for each in self._weights if each < min(ordinal, self._last)]:
            del self._weights[group]

    def draw(self, start: int, count: int) -> Refs:
        """Refuse: who a group's documents are is written down with them."""
        raise ExecutionError(
            f"lane: groups {start} to {start + count} of an operator's rows cannot be drawn again; "
            "restore an earlier checkpoint"
        )
