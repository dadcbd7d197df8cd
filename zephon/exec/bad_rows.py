"""Bad rows that a lane has met, until the position where they count is handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from zephon.exec.block import Bad

_MOST = 1 << 12
"""Rows to be written down that wait in a lane; of more, the first are written early."""


class BadRows:
    """Bad rows of one lane, in the order of its draws.

    Of those that are skipped, one of each component is kept: messages name the first.

    early: takes rows that are too many to wait. Nobody is misled by that: a row is as bad before
    its turn, and is written once, whoever meets it again.
    """

    early: Callable[[Sequence[Bad]], None] | None = None

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Bad]] = deque()
        self._told: set[int] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, rows: Iterable[tuple[int, Bad]]) -> None:
        """Keep rows, each with the draw at which it counts; none of these falls."""
        for draw, bad in rows:
            if not bad.quarantined:
                if bad.component in self._told:
                    continue
                self._told.add(bad.component)
            self._waiting.append((draw, bad))
        if len(self._waiting) > _MOST and self.early is not None:
            self.early([bad for _, bad in self._waiting if bad.quarantined])
            self._waiting = deque(each for each in self._waiting if not each[1].quarantined)

    def of_strand(self) -> BadRows:
        """Make what holds the rows of one strand of the lane, until it is merged so far."""
        made = BadRows()
        made.early = self._write_early
        return made

    def _write_early(self, rows: Sequence[Bad]) -> None:
        if self.early is not None:
            self.early(rows)

    def until(self, draw: int | None) -> list[Bad]:
        """Take the rows up to a draw; None: all."""
        found = []
        while self._waiting and (draw is None or self._waiting[0][0] <= draw):
            found.append(self._waiting.popleft()[1])
        return found
