"""What a lane remembers of its past, so that the state at a delivered row can be written down.

A tick is a snapshot of the policies after every 1,024 draws, or after as many as they hold
documents, rounded up to that. The state at row n is the last tick
before the draw that finished row n - 1, and what came of all draws from there to that
draw: rolling the policies over these lengths gives the exact state without reading a token. So the
bytes of a state depend on the position alone, never on how far ahead the lane has run. Rows that
only the end of the lane lets go come after its last draw: their state says that it has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Arrivals, Counts
from zephon.exec.block import Known
from zephon.exec.carried import Carried
from zephon.exec.half_used import NO_HALVES, Halves
from zephon.exec.kept_rows import Interval
from zephon.exec.ledger import Account
from zephon.exec.policies.merge_point import MergePoint
from zephon.exec.policies.policy import Held

TICK = 1024


def next_tick(ordinal: int, pieces: int, draws: int) -> int:
    """Say before which draw a tick follows the one before draw ``ordinal``.

    As many draws further as pieces are held: so a tick costs a draw one copy at most, ticks are
    never much more than what is held, and a log is not longer than a tick is large.

    Args:
        ordinal: of that tick.
        pieces: that policies held there.
        draws: from one tick to the next where they hold little.
    """
    return (ordinal // draws + max(1, -(-pieces // TICK))) * draws


@dataclass(frozen=True, slots=True)
class Tick:
    """The lane right before draw ``ordinal``.

    rows: rows finished so far. stages: what each policy remembers; where an edit of the run stands
    here, there may be one more, the rows that were finished and are not delivered, which ``rows``
    leaves out. known: the document of each piece in it, policy after policy. merge: where the merge
    stands, in a lane that merges strands.
    """

    ordinal: int
    rows: int
    stages: tuple[Held, ...]
    known: Known
    counts: Counts
    merge: MergePoint | None

    def alone(self, rows: int) -> LaneState:
        """Return the state at so many delivered rows that this tick says all of."""
        log = Arrivals.none(measures=len(self.known.measures), merged=self.merge is not None)
        return LaneState(rows, self.ordinal - 1, replace(self, rows=rows), log)


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane at a delivered row: all that a restore needs, integers only.

    rows: rows delivered. last_draw: the draw that finished the last of them, -1 before the first.
    log: what came of the draws from the tick to that one. ended: the end of the lane finished the
    last row; last_draw is its last draw then. source: JSON values with which the work source draws
    again from the tick on, where it needs any. drawn: what the lane has drawn in all, where it
    merges strands and has ended: their last draws may give no document, and are in no log.
    stopped: the last rows are of the draw behind ``last_draw``, of which not all came. below: what
    feeds the lane, where that is an operator of the user. halves: documents of which a part is
    delivered. carried: what was counted before an edit; None: there was none.
    """

    rows: int
    last_draw: int
    tick: Tick
    log: Arrivals
    ended: bool = False
    source: Any = None
    drawn: Counts | None = None
    stopped: bool = False
    below: Below | None = None
    halves: Halves = NO_HALVES
    carried: Carried | None = None

    def counts(self) -> Counts:
        """Count what the lane had drawn."""
        return self.tick.counts.after(self.log) if self.drawn is None else self.drawn

    def bottom(self) -> LaneState:
        """Return the state of the floor that draws from the work source."""
        return self if self.below is None else self.below.lane.bottom()


@dataclass(frozen=True, slots=True)
class Below:
    """What lies under a lane that an operator of the user feeds; a draw of such is a group of rows.

    lane: the lane below, behind the rows of the last group that ``last_draw`` of the lane above
    names. intervals: those from which documents that may be wanted come, and the one under way.
    final: no group follows. weights: those in force at each group from the tick above on, shape
    [groups, components]; None where nobody knows. account: of the rows that it got.
    """

    lane: LaneState
    intervals: tuple[Interval, ...]
    final: bool
    weights: NDArray[np.float64] | None
    account: Account


class LaneHistory:
    """Ticks, arrivals and finished rows that some undelivered position may still need."""

    def __init__(self, first: Tick, delivered: int = 0, ready: int = 0) -> None:
        self._begun = first.rows + ready  # rows that were finished before the first tick
        self._delivered = delivered  # rows, some of which may have to come once more
        self._ticks: deque[Tick] = deque([first])
        self._log: deque[Arrivals] = deque()
        self._finishing: deque[tuple[int, NDArray[np.int64]]] = deque()
        self._last_draw = first.ordinal - 1
        self._ended_at: int | None = None  # rows finished before the end of the lane
        self._stopped: int | None = None  # the draw of which a part alone came
        self._drawn: Counts | None = None  # in all, once a lane that merges strands has ended
        self._before = first.ordinal - 1
        self.rows = first.rows + ready

    @property
    def oldest(self) -> int:
        """The first draw that a state may still ask for."""
        return self._ticks[0].ordinal

    @property
    def next_draw(self) -> int:
        """The draw behind the last one that is remembered."""
        return self._last_draw + 1

    def add_tick(self, tick: Tick) -> None:
        """Remember a snapshot, instead of one at the same draw; the first of all stays."""
        if len(self._ticks) > 1 and self._ticks[-1].ordinal == tick.ordinal:
            self._ticks.pop()
        self._ticks.append(tick)

    def _drop_idle_tick(self) -> None:
        """Forget the snapshot before the last one, if no row between them was finished.

        Those to come need the last one, and those that are there the ones before: so a lane that
        finishes no row for long stays small. Not before a draw follows the last one: rows that the
        end of the lane lets go are of the draw before it.
        """
        if len(self._ticks) < 3 or self._ticks[-2].rows < self._ticks[-1].rows:
            return
        idle = self._ticks[-2].ordinal
        del self._ticks[-2]
        while self._log and not self._starts_before(self._log[-1], idle):
            self._log.pop()

    @staticmethod
    def _starts_before(arrivals: Arrivals, ordinal: int) -> bool:
        return bool(len(arrivals)) and int(arrivals.ordinal[0]) < ordinal

    def add(self, arrivals: Arrivals, finishing: NDArray[np.int64]) -> None:
        """Remember what was pushed, and the draw that finished each row that came of it."""
        if len(arrivals) and self._last_draw < self._ticks[-1].ordinal:
            self._drop_idle_tick()
        self._log.append(arrivals)
        if len(arrivals):
            self._last_draw = int(arrivals.ordinal[-1])
        if len(finishing):
            self._finishing.append((self.rows, finishing))
            self.rows += len(finishing)

    def end(self, rows: int, drawn: Counts | None = None) -> None:
        """Remember that no draw follows, how many rows came of that, and what is drawn then."""
        self._ended_at = self.rows
        self._drawn = drawn
        self.add(Arrivals.none(), np.full(rows, self._last_draw))

    def stop_at(self, draw: int) -> None:
        """Remember that of a draw only the first documents came."""
        self._stopped = draw

    def state_at(self, rows: int, *, at_end: bool = False) -> LaneState:
        """Return the lane's state when ``rows`` rows of it are delivered.

        Args:
            rows: how many.
            at_end: no other is to be delivered, and whoever had them knows that no draw follows.
        """
        last_draw, ended = self.behind(rows, at_end=at_end)
        tick = self._ticks[0]
        for later in self._ticks:
            if later.ordinal > last_draw or later.rows > rows:
                break
            tick = later
        wanted = [
            _within(arrivals, tick.ordinal, last_draw)
            for arrivals in self._log
            if len(arrivals) and arrivals.ordinal[0] <= last_draw
        ]
        return LaneState(
            rows=rows,
            last_draw=last_draw,
            tick=tick,
            log=_joined(wanted, tick),
            ended=ended,
            drawn=self._drawn if ended else None,
            stopped=rows > self.rows or self._finished_by(rows) > last_draw,
        )

    def behind(self, rows: int, *, at_end: bool = False) -> tuple[int, bool]:
        """Say which draw the state at so many rows stands behind, and whether none follows."""
        last_draw = self._last_draw if at_end else self.finished_by(rows)
        return last_draw, at_end or (self._ended_at is not None and rows > self._ended_at)

    def forget_before(self, rows: int) -> None:
        """Drop what no state at ``rows`` or later needs."""
        last_draw = self.finished_by(rows)
        while len(self._ticks) > 1 and self._ticks[1].ordinal <= last_draw:
            self._ticks.popleft()
        oldest = self._ticks[0].ordinal
        while self._log and (not len(self._log[0]) or self._log[0].ordinal[-1] < oldest):
            self._log.popleft()
        while self._finishing and self._finishing[0][0] + len(self._finishing[0][1]) < rows:
            self._finishing.popleft()

    def finished_by(self, rows: int) -> int:
        """Return the draw that finished the last of so many rows; -1 of none.

        Of a draw that gave a part of its documents no state knows: who goes on from one of its
        rows draws it again, and skips the rows that are delivered.
        """
        if self.rows < rows <= self._delivered:
            return self._last_draw
        last_draw = self._finished_by(rows)
        return last_draw if self._stopped is None else min(last_draw, self._stopped - 1)

    def _finished_by(self, rows: int) -> int:
        if rows <= self._begun:
            return self._before
        for first, draws in self._finishing:
            if rows <= first + len(draws):
                return int(draws[rows - 1 - first])
        raise AssertionError(f"row {rows} of {self.rows} is not in the history")

    def documents(self) -> NDArray[np.int64]:
        """List the draws whose documents some state may name."""
        held = [tick.known.refs.ordinal for tick in self._ticks]
        drawn = [arrivals.documents().ordinal for arrivals in self._log]
        return np.concatenate([*held, *drawn])


def _within(arrivals: Arrivals, first: int, last: int) -> Arrivals:
    """Return the entries of some draws, whose numbers never fall."""
    begin, end = np.searchsorted(arrivals.ordinal, (first, last + 1)).tolist()
    return arrivals if end - begin == len(arrivals) else arrivals.some(slice(begin, end))


def _joined(parts: list[Arrivals], tick: Tick) -> Arrivals:
    parts = [part for part in parts if len(part)]
    if not parts:
        merged = tick.merge is not None
        return Arrivals.none(measures=len(tick.known.measures), merged=merged)
    return parts[0] if len(parts) == 1 else Arrivals.concat(parts)
