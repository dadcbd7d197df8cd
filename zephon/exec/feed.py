"""What feeds a lane from the one below it: an operator of the user, as the lane above sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from zephon.exec.history import Below, LaneHistory, LaneState
from zephon.exec.ledger import Ledger
from zephon.exec.rows import HeldRows

if TYPE_CHECKING:
    from zephon.exec.lane_run import LaneRun


class Feed(Protocol):
    """An operator of the user that feeds a lane from the one below; see ``relay``."""

    lower: LaneRun
    ledger: Ledger

    def advance(self, upper: LaneRun, /) -> bool:
        """Push the next group of rows into the lane above, or end it; false: there is none."""
        ...

    def read_again(self, held: HeldRows, seqs: NDArray[np.int64], /) -> None:
        """Give unread documents of the lane above their tokens."""
        ...

    def state_at(
        self, state: LaneState, also: NDArray[np.int64], /, *, at_end: bool = False
    ) -> Below:
        """Say what lies under the lane above."""
        ...

    def rows_until(self, last_draw: int, /) -> tuple[int, bool]:
        """Count the rows below up to a draw of the lane above, and say whether none follows."""
        ...

    def forget_before(self, history: LaneHistory, rows: int, also: NDArray[np.int64], /) -> None:
        """Drop what no state of the lane above needs."""
        ...
