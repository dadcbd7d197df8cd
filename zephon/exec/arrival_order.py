"""Whether records leave an operator in the order in which they came, as it promised.

What counts is the order of arrival, not that of cursors: behind a shuffle these differ.
"""

from __future__ import annotations

from collections import deque

from zephon.errors import LineageError
from zephon.exec.operator import RowError
from zephon.exec.origins import Place
from zephon.types import SampleMeta


class ArrivalOrder:
    """The records that came, back to the one that left last.

    A record that is not among them came before that one. Several may come of one place, as parts of
    a row do: then the last of these counts.

    Args:
        from_beginning: no record came before this was made; else those that are unknown pass.
    """

    def __init__(self, *, from_beginning: bool = True) -> None:
        self._from_beginning = from_beginning
        self._came: deque[tuple[Place, int]] = deque()
        self._numbers: dict[Place, int] = {}
        self._next = 0
        self._left = -1

    def add(self, meta: SampleMeta) -> None:
        """Take in a record that goes in."""
        place = (meta.chunk_id, meta.chunk_offset)
        self._numbers[place] = self._next
        self._came.append((place, self._next))
        self._next += 1

    def check(self, meta: SampleMeta) -> None:
        """Refuse a record that leaves behind one that came after it.

        Raises:
            RowError: it does; with the cause.
        """
        number = self._numbers.get((meta.chunk_id, meta.chunk_offset))
        if number is None:
            if self._left >= 0 and self._from_beginning:
                raise out_of_order(meta)
            return
        if number < self._left:
            raise out_of_order(meta)
        self._left = number
        while self._came[0][1] < number:
            place, earlier = self._came.popleft()
            if self._numbers.get(place) == earlier:
                del self._numbers[place]


def out_of_order(meta: SampleMeta) -> RowError:
    """Say that a record left behind one that came after it."""
    problem = (
        "records must leave in the order in which they came, as preserves_cursor_order=True "
        f"promises, got sample {meta.sample_id} after a later one"
    )
    way_out = "pass preserves_cursor_order=False"
    error = RowError(0, f"{problem}, from the records that begin", way_out)
    error.__cause__ = LineageError(f"{problem}; {way_out}")
    return error
