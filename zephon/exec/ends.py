"""Ranks that share steps end together: a step is handed out once every rank surely has it.

Where nobody knows beforehand how many steps the data give, ranks ask each other, on the thread of
the caller: each says how many steps all of its lanes surely hold by now, or where they end. The
least number holds for all. How far ahead ranks have read decides how often they ask, and nothing
else.

They ask shortly before they come to a step that was not agreed on, and wait for the answer when
they are there: meanwhile it travels, and has come as a rule. When to ask follows from what was
agreed, so that all ranks ask as often, whoever hears the answer when. Where the least number is no
more than what was agreed, as of a rank that reads slowly, they ask again once they have that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from zephon.coordination import Asked
from zephon.errors import ExecutionError
from zephon.exec.delivery import Position

EARLY = 3
"""Steps from a question to the one that needs the answer, at most: where ranks meet in a store, the
leader answers a step after the question, and the others find that another step later.
"""

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
        ask: begins to find the least of all ranks' numbers; see ``Coordinator.ask``.
        name: says how messages call a rank.
    """

    def __init__(
        self, rank: int, ranks: int, ask: Callable[[int], Asked], name: Callable[[int], str]
    ) -> None:
        self._rank = rank
        self._ranks = ranks
        self._ask = ask
        self._name = name
        self._agreed = 0
        self._ask_at = 0
        self._asked: Asked | None = None
        self._looked_at = 0
        self._last: _Said | None = None  # where the run ends, or a rank failed, once all know

    @property
    def are_known(self) -> bool:
        """Whether all ranks know where the run ends, or come to hear it."""
        return self._last is not None

    def has(self, step: int, sure: int, outlook: Outlook) -> bool:
        """Say whether the run comes to a step; false: it ends before, on every rank.

        Args:
            step: that this rank comes to; with another outlook than MORE, ``sure``.
            sure: steps that it surely has.
            outlook: what follows them here.

        Raises:
            ExecutionError: another rank failed there.
        """
        while self._last is None and step >= self._ask_at:
            if self._asked is None:
                said = _Said(sure, outlook, self._rank)
                self._asked, self._looked_at = self._ask(said.number(self._ranks)), step
            if step >= self._agreed:
                self._hear(self._asked.least())
            elif step == self._looked_at:  # once a step is enough
                break
            else:
                self._looked_at = step
                least = self._asked.look()
                if least is None:
                    break
                self._hear(least)
        if self._last is None or step < self._last.steps:
            return True
        if self._last.outlook is Outlook.FAILURE and self._last.rank != self._rank:
            raise ExecutionError(
                f"step {self._last.steps}: {self._name(self._last.rank)} failed there, and no rank "
                "can go on without it; it says more where it runs"
            )
        return self._last.outlook is Outlook.FAILURE

    def _hear(self, least: int) -> None:
        found = _Said.of(least, self._ranks)
        self._asked = None
        # No rank has less: so an end is that of all, and where one fails the others cannot go.
        self._last = found if found.outlook is not Outlook.MORE else None
        # Half of few steps: who has read no further by then would say nothing new. And never
        # before the step that needs this answer, wherever it is heard.
        self._ask_at = found.steps - min(EARLY, (found.steps - self._agreed) // 2)
        self._agreed = found.steps


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
