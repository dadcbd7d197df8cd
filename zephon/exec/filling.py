"""How full a lane is, and what to read for it next: whole, or strand by strand.

A lane that merges strands needs the next document of each whose share has come. So each strand gets
the part of the lane's bytes that its share of the coming tokens asks for, the emptiest first; the
strand that the merge waits for always gets a document, whatever its share is.

The file is long because both ways of filling a lane stand here, side by side.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from zephon.exec.lane_run import LaneRun
from zephon.exec.strands import Strands

_BYTES_PER_TOKEN = 4
_BYTES_PER_WAITING = 256  # what a document that waits to be merged holds beside its tokens
_LEAST_DRAWS, _MOST_DRAWS = 16, 1 << 16
_LEAST_LEFT = 1 / 8  # of rows that filters leave, as far as sizes go by it


class Sizes:
    """Bytes and tokens of a row, as guessed from the data and corrected by what comes back.

    Args:
        row_bytes: mean bytes of a row of the data.
        kinds: mean bytes of a row of each component, or of all where they are not told apart.
    """

    def __init__(self, row_bytes: float, kinds: Sequence[float]) -> None:
        self.row_bytes = max(row_bytes, 1.0)
        self._guesses = [max(each, 1.0) for each in kinds]
        self._draws = [0] * len(self._guesses)
        self._tokens = [0] * len(self._guesses)
        self._documents = [0] * len(self._guesses)

    def learn(self, kind: int, draws: int, tokens: int, documents: int) -> None:
        """Take note of what came back."""
        self._draws[kind] += draws
        self._tokens[kind] += tokens
        self._documents[kind] += documents

    def knows(self, kind: int) -> bool:
        """Whether any token came back."""
        return self._tokens[kind] > 0

    def row(self, kind: int) -> float:
        """Give the bytes that a row becomes.

        Where filters leave hardly any row, that may change with the next task: so it never says
        less than an eighth of what a row was guessed to be.
        """
        draws, guess = self._draws[kind], self._guesses[kind]
        left = self._documents[kind] / draws if draws else 1.0
        if not self._tokens[kind]:
            return guess * min(max(left, _LEAST_LEFT), 1.0)
        found = max(1.0, _BYTES_PER_TOKEN * self._tokens[kind] / draws)
        return max(found, guess * _LEAST_LEFT) if left < _LEAST_LEFT else found

    def waiting(self, kind: int) -> float:
        """Give the bytes of a row that waits to be merged."""
        return self.row(kind) + _BYTES_PER_WAITING

    def tokens(self, kind: int) -> float:
        """Give the tokens that a row becomes."""
        return max(1.0, self.row(kind) / _BYTES_PER_TOKEN)


class Filling(ABC):
    """How full one lane is."""

    def __init__(self, run: LaneRun, sizes: Sizes, limit: int | None = None) -> None:
        """Keep what to look at; limit: draws of an intake that are read ahead at most."""
        self.run = run
        self._sizes = sizes
        self._limit = limit

    @abstractmethod
    def held(self) -> float:
        """Count bytes of rows that the lane has in flight or waiting."""

    @abstractmethod
    def ahead(self) -> float:
        """Count bytes of rows that the lane can give before it needs another task."""

    @abstractmethod
    def has_more(self) -> bool:
        """Whether anything is left to be read for the lane."""

    @abstractmethod
    def plan(self, portion: float) -> list[tuple[int, int]]:
        """Say how many draws of which intakes make so many bytes; at least one draw."""

    def _left(self, number: int) -> int | None:
        """Count the draws of an intake that may be read ahead; None: it never ends."""
        intake = self.run.intakes[number]
        if self._limit is None:
            return intake.left
        within = max(self._limit - intake.next_draw, 0)
        return within if intake.left is None else min(within, intake.left)

    def _at_most(self, number: int, draws: float) -> int:
        """Give so many draws of an intake, or what is left; what is asked for has no limit."""
        left = self._left(number) or self.run.intakes[number].left
        count = max(1, min(_MOST_DRAWS, int(draws)))
        return count if left is None else min(count, left)

    def measure(self) -> None:  # noqa: B027 - a whole lane is measured when it is asked
        """See how full the lane is, after something came or was asked for."""


class WholeLane(Filling):
    """A lane whose draws come in order."""

    def held(self) -> float:
        """Do as ``ahead``."""
        return self.ahead()

    def ahead(self) -> float:
        """Count bytes of rows that are placed, and of those to come."""
        run, sizes = self.run, self._sizes
        intake = run.intakes[0]
        coming = (intake.next_draw - intake.read) * sizes.row(0)
        if not sizes.knows(0):  # rows without tokens wait too
            coming += (run.rows_placed - run.rows_taken) * sizes.row_bytes
        return run.tokens_placed * _BYTES_PER_TOKEN + coming

    def has_more(self) -> bool:
        """Whether a draw is left; a lane may end after a restore without having read all."""
        return not self.run.ended and self._left(0) != 0

    def plan(self, portion: float) -> list[tuple[int, int]]:
        """Say how many draws make so many bytes."""
        return [(0, self._at_most(0, portion / self._sizes.row(0)))]


@dataclass(frozen=True, slots=True)
class _Level:
    """How full a strand is that has draws left.

    time: tokens of the lane that it lasts for. tokens: those that wait in it or come to it.
    """

    time: float
    strand: int
    tokens: float
    share: float


class MergedLane(Filling):
    """A lane that merges strands.

    Args:
        run: the lane.
        strands: its strands.
        sizes: of the rows of each component.
        lane_bytes: bytes of rows that a lane should have in flight or waiting.
        limit: draws of a strand that are read ahead at most; None: any number.
    """

    def __init__(
        self,
        run: LaneRun,
        strands: Strands,
        sizes: Sizes,
        lane_bytes: int,
        limit: int | None = None,
    ) -> None:
        super().__init__(run, sizes, limit)
        self._strands = strands
        self._horizon = lane_bytes / _BYTES_PER_TOKEN
        self._held, self._ahead = 0.0, math.inf
        self.measure()

    def held(self) -> float:
        """Count bytes of rows that are merged, wait to be, or come."""
        return self.run.tokens_placed * _BYTES_PER_TOKEN + self._held

    def ahead(self) -> float:
        """Count bytes that the emptiest strand lasts for; infinity: none has draws left."""
        return self.run.tokens_placed * _BYTES_PER_TOKEN + self._ahead

    def has_more(self) -> bool:
        """Whether a strand has draws left."""
        return not self.run.ended and self._ahead < math.inf

    def measure(self) -> None:
        """Add up what waits in the strands and comes to them."""
        held = 0.0
        for strand in self._strands.live():
            intake = self.run.intakes[strand]
            tokens = intake.tokens - int(self.run.counts.tokens[strand])
            held += tokens * _BYTES_PER_TOKEN
            held += self._strands.waiting(strand) * _BYTES_PER_WAITING
            held += (intake.next_draw - intake.read) * self._sizes.waiting(strand)
        levels = self._levels()
        self._held = held
        self._ahead = levels[0].time * _BYTES_PER_TOKEN if levels else math.inf

    def plan(self, portion: float) -> list[tuple[int, int]]:
        """Fill the emptiest strands with so many bytes, or little more."""
        levels = self._levels()
        height = self._height(levels, portion)
        order = {level.strand: level for level in levels}
        lacking = self.lacking()
        if lacking is not None:
            order = {lacking: order.get(lacking, _Level(0.0, lacking, 0.0, 0.0))} | order
        plan: dict[int, int] = {}
        for strand, level in order.items():
            if plan and portion <= 0.0:
                break
            tokens = self._sizes.tokens(strand)
            draws = (height * level.share - level.tokens) / tokens
            # Rather a few draws of few strands than one of each.
            whole = (self._horizon * level.share - level.tokens) / tokens
            size = self._sizes.waiting(strand)
            draws = min(max(draws, min(whole, _LEAST_DRAWS)), portion / size)
            if draws < 1.0 and not self._is_empty(strand):
                continue
            plan[strand] = self._at_most(strand, draws)
            portion -= plan[strand] * size
        return list((plan or {levels[0].strand: 1}).items())

    def lacking(self) -> int | None:
        """Return the strand that the merge waits for, if nothing of it is on its way."""
        wanted = self._strands.wants
        if wanted is None:
            return None
        intake = self.run.intakes[wanted]
        return wanted if intake.read == intake.next_draw else None

    def _is_empty(self, strand: int) -> bool:
        intake = self.run.intakes[strand]
        return intake.read == intake.next_draw and not self._strands.waiting(strand)

    def _levels(self) -> list[_Level]:
        """List the strands that have draws left, emptiest first."""
        levels = []
        for strand, share in enumerate(self._strands.shares()):
            intake = self.run.intakes[strand]
            if share > 0.0 and self._left(strand) != 0:
                tokens = intake.tokens - int(self.run.counts.tokens[strand])
                tokens += (intake.next_draw - intake.read) * self._sizes.tokens(strand)
                levels.append(_Level(tokens / share, strand, tokens, share))
        levels.sort(key=lambda level: (level.time, level.strand))
        return levels

    def _height(self, levels: Sequence[_Level], portion: float) -> float:
        """Say up to which time so many bytes fill strands, the emptiest first."""
        filled, width = portion, 0.0
        for level in levels:
            if width and filled <= level.time * width:
                break
            cost = self._sizes.waiting(level.strand) / self._sizes.tokens(level.strand)
            filled += cost * level.tokens
            width += cost * level.share
        return filled / width if width else 0.0


def filling_of(run: LaneRun, sizes: Sizes, lane_bytes: int, limit: int | None = None) -> Filling:
    """Return what knows how full a lane is."""
    if run.strands is None:
        return WholeLane(run, sizes, limit)
    return MergedLane(run, run.strands, sizes, lane_bytes, limit)
