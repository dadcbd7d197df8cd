"""What the engine asks of one lane: which rows it draws, by position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.work.refs import Refs


class LaneStream(ABC):
    """The draws of one lane: a pure function of position, safe in any thread."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> int | None:
        """How many draws the lane has; None if it never ends, or nobody knows yet where."""

    @abstractmethod
    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the lane's end.

        Returns:
            References with ordinals from ``start`` on, new memory; none if the lane ended before.
            Fewer than ``count`` mean that the lane ends with them; ``length`` then says where.

        Raises:
            ValueError: ``start`` or ``count`` is negative.
        """

    @property
    def failure(self) -> Exception | None:
        """What ended the lane before its time; to be raised once all its draws are used."""
        return None

    def weights_at(self, ordinal: int) -> NDArray[np.float64] | None:
        """Give the weights in force at a draw, shape [components]; None where nobody knows."""
        return None

    def part(self, ordinal: int) -> tuple[int, LaneStream]:
        """Give the draws among which a draw was made, and the first of them.

        An edit of a run begins a new part. Of an earlier one, draws are given too that came to
        nothing, since the edit stands before them: whoever saw a draw may have seen those.
        """
        return 0, self

    def finished_before(self, ordinal: int) -> NDArray[np.bool_] | None:
        """Tell which components no draw from ``ordinal`` on has, shape [components].

        None where nobody knows. A component that was never drawn from counts as finished.
        """
        return None

    def state_at(self, ordinal: int) -> Any:
        """Give JSON values from which ``WorkSource.lane_stream(..., state=)`` draws again.

        Args:
            ordinal: the first draw that will be wanted; not before what was forgotten.

        Returns:
            None where a lane needs nothing to begin anywhere.
        """
        return None

    def forget_before(self, ordinal: int) -> None:  # noqa: B027 - most lanes remember nothing
        """Let go of what is only needed for draws before ``ordinal``: none is wanted again."""
