"""Where a run is cut, and on how many ranks and in which manner it goes on: seeded choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from zephon import seeds
from zephon.verification.ranks import Manner

_BUDGETS = ("32mb", "512mb", "96mb")

Choose: TypeAlias = Callable[[int], int]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place of a run: whole steps, and the rows of the next that each rank has handed out."""

    step: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a run that is delivered in one manner; ``stop`` None: up to its end."""

    manner: Manner
    start: Place
    stop: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a cut run may go on with.

    rows: R. microbatch: rows of a batch at most; None where the recipe makes no batches. ranks,
    runners: to choose from.
    """

    rows: int
    microbatch: int | None
    ranks: Sequence[int]
    runners: Sequence[str]

    def manner(self, ranks: int) -> Manner:
        """Give the manner of the recipe itself, on so many ranks."""
        return Manner(ranks=ranks, microbatch=self.largest(self.rows // ranks))

    def largest(self, *numbers: int) -> int | None:
        """Give the largest microbatch that divides all of these."""
        sizes = self._sizes(*numbers)
        return sizes[0] if sizes else None

    def _sizes(self, *numbers: int) -> list[int]:
        if self.microbatch is None:
            return []
        whole = math.gcd(*numbers)
        return [b for b in range(min(self.microbatch, whole), 0, -1) if whole % b == 0]

    def other(self, now: Manner, ranks: int, rest: int, choose: Choose) -> Manner:
        """Choose a manner that is another one in everything that can be.

        Args:
            now: the manner before.
            ranks: D from now on.
            rest: rows that each rank has left of its share of a step.
            choose: gives a number below another.
        """
        sizes = self._sizes(self.rows // ranks, rest)[:2]
        runners = [each for each in self.runners if each != now.runner] or list(self.runners)
        budgets = [each for each in _BUDGETS if each != now.memory_budget]
        return Manner(
            ranks=ranks,
            microbatch=sizes[choose(len(sizes))] if sizes else None,
            runner=runners[choose(len(runners))],
            memory_budget=budgets[choose(len(budgets))],
            as_bytes=not now.as_bytes,
        )


def stretches(
    ranks: int, steps: int, cuts: int, choices: Choices, *, seed: int
) -> Iterator[Stretch]:
    """Cut a run of ``steps`` steps that begins on ``ranks`` ranks.

    Every second cut lies at the end of a step, where the run goes on with another number of ranks,
    and comes back at the next such cut. The others lie anywhere in the run; inside a step it goes
    on with as many ranks.
    """
    random = seeds.generator(seed, "verify", ranks)

    def choose(below: int) -> int:
        return int(random.integers(below))

    now, at = replace(choices.manner(ranks), as_bytes=bool(choose(2))), Place()
    for step, inside in _cut_places(cuts, steps, choose):
        share = choices.rows // now.ranks
        if inside:
            first = at.rows if at.step == step else 0
            size = now.microbatch or 1
            places = (share - first) // size - 1
            if places < 1:
                continue
            stop = Place(step, first + size * (1 + choose(places)))
            following, rest = now.ranks, share - stop.rows
        else:
            stop = Place(step)
            others = [each for each in choices.ranks if each != now.ranks] or [now.ranks]
            back = now.ranks != ranks
            following = ranks if back else others[choose(len(others))]
            rest = choices.rows // following
        yield Stretch(now, at, stop)
        now, at = choices.other(now, following, rest, choose), stop
    yield Stretch(now, at, None)


def _cut_places(cuts: int, steps: int, choose: Choose) -> list[tuple[int, bool]]:
    """Choose steps, and whether the cut lies inside each or before it; ascending."""
    places: list[tuple[int, bool]] = []
    for number in range(cuts if steps else 0):
        inside = steps == 1 or (number % 2 == 1 and choose(4) > 0)
        free = [(step, inside) for step in range(steps) if (step, inside) not in places]
        free = [place for place in free if place != (0, False)]
        if free:
            places.append(free[choose(len(free))])
    return sorted(places)
