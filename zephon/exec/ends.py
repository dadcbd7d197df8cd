"""Ranks that share steps end together: a step is handed out once every rank surely has it.

Where nobody knows beforehand how many steps the data give, ranks ask each other, on the thread of
the caller and only when they come to a step that was not agreed on: each says how many steps all of
its lanes surely hold by now, or where they end. The least number holds for all. How far ahead ranks
have read decides how often they ask, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from zephon.errors import ExecutionError
from zephon.exec.delivery import Position

T = TypeVar("T")


class Outlook(IntEnum):
    """What is behind the steps that a rank surely has; of two ranks, the lesser one counts."""

    END = 0
    FAILURE = 1
    MORE = 2


@dataclass(frozen=True, slots=True)
class _Said:
    """How many steps a rank surely has, what follows them there, and which rank it is."""

    steps: int
    outlook: Outlook
    rank: int

    def number(self, ranks: int) -> int:
        """Write it as a number that is less where the run ends earlier."""
        return (self.steps * len(Outlook) + self.outlook) * ranks + self.rank

    @classmethod
    def of(cls, number: int, ranks: int) -> _Said:
        """Read what ``number`` wrote."""
        rest, rank = divmod(number, ranks)
        steps, outlook = divmod(rest, len(Outlook))
        return cls(steps, Outlook(outlook), rank)


class Ends:
    """The agreement of ranks on how many steps there are.

    Args:
        rank: this one, of all that take part.
        ranks: how many do.
        least: gives the least of all ranks' numbers; see ``Coordinator.least``.
        name: says how messages call a rank.
    """

    def __init__(
        self, rank: int, ranks: int, least: Callable[[int], int], name: Callable[[int], str]
    ) -> None:
        self._rank = rank
        self._ranks = ranks
        self._least = least
        self._name = name
        self._agreed = 0
        self._last: _Said | None = None  # where the run ends, or a rank failed, once all know

    def has(self, step: int, sure: int, outlook: Outlook) -> bool:
        """Say whether the run comes to a step; false: it ends before, on every rank.

        Args:
            step: that this rank comes to; with another outlook than MORE, ``sure``.
            sure: steps that it surely has.
            outlook: what follows them here.

        Raises:
            ExecutionError: another rank failed there.
        """
        while step >= self._agreed and self._last is None:
            said = _Said(sure, outlook, self._rank)
            found = _Said.of(self._least(said.number(self._ranks)), self._ranks)
            # No rank has less: so an end is that of all, and where one fails the others cannot go.
            self._last = found if found.outlook is not Outlook.MORE else None
            self._agreed = found.steps
        if self._last is None or step < self._last.steps:
            return True
        if self._last.outlook is Outlook.FAILURE and self._last.rank != self._rank:
            raise ExecutionError(
                f"step {self._last.steps}: {self._name(self._last.rank)} failed there, and no rank "
                "can go on without it; it says more where it runs"
            )
        return self._last.outlook is Outlook.FAILURE


def ending_together(
    items: Iterator[tuple[T, Position]], ends: Ends, start: Position, sure: Callable[[], int]
) -> Iterator[tuple[T, Position]]:
    """Yield what a rank delivers while every rank has the step that it belongs to.

    Args:
        items: what it delivers, each with the position after it.
        ends: the agreement.
        start: the position before.
        sure: counts the steps, from the beginning of the run, that all lanes of this rank hold.

    Raises:
        Exception: what ``items`` raises, unless the run ends before that step.
        ExecutionError: another rank failed.
    """
    step = start.step
    while True:
        try:
            item, after = next(items)
        except StopIteration:
            step = max(step, sure())
            ends.has(step, step, Outlook.END)
            return
        except Exception:
            step = max(step, sure())
            if ends.has(step, step, Outlook.FAILURE):
                raise
            return
        # Where several processes hand out a rank's batches, this may lie behind steps of others.
        step = after.step if after.delivered else after.step - 1
        if not ends.has(step, max(sure(), step + 1), Outlook.MORE):
            return
        yield item, after
        step = after.step
