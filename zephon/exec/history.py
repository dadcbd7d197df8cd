"""What a lane remembers of its past, so that the state at a delivered row can be written down.

A tick is a snapshot of the policy after every 1,024 draws. The state at row n is the last tick
before the draw that finished row n - 1, and the lengths of all documents drawn from there to that
draw: rolling the policy over these lengths gives the exact state without reading a token. So the
bytes of a state depend on the position alone, never on how far ahead the lane has run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import NO_INTS, Pieces, Placements
from zephon.exec.policies.token_merge import MergePoint
from zephon.work.refs import Refs

TICK = 1024


@dataclass(frozen=True, slots=True)
class Counts:
    """What a lane has drawn of each component; arrays of shape [components], int64."""

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tick:
    """The lane right before draw ``ordinal``.

    rows: rows finished so far. held: pieces the policy holds;
    held_refs, held_lengths and held_positions: reference, tokens and draw of its strand of the
    document of each piece. merge: where the merge stands, in a lane that merges strands.
    """

    ordinal: int
    rows: int
    held: Pieces
    held_refs: Refs
    held_lengths: NDArray[np.int64]
    held_positions: NDArray[np.int64]
    counts: Counts
    merge: MergePoint | None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Documents that were pushed at once; arrays of shape [docs].

    ordinal: the draw of the lane. position: the draw of the strand; in a lane that merges none,
    the same.
    """

    ordinal: NDArray[np.int64]
    component: NDArray[np.int32]
    length: NDArray[np.int64]
    position: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane at a delivered row: all that a restore needs, integers only.

    rows: rows delivered. last_draw: the draw that finished the last of them, -1 before the first.
    log: documents drawn from the tick to that draw. source: JSON values with which the work source
    draws again from the tick on, where it needs any.
    """

    rows: int
    last_draw: int
    tick: Tick
    log: Arrivals
    source: Any = None


NO_ARRIVALS = Arrivals(NO_INTS, np.empty(0, np.int32), NO_INTS, NO_INTS)


class LaneHistory:
    """Ticks, arrivals and finished rows that some undelivered position may still need."""

    def __init__(self, first: Tick) -> None:
        self._ticks: deque[Tick] = deque([first])
        self._log: deque[Arrivals] = deque()
        self._finishing: deque[tuple[int, NDArray[np.int64]]] = deque()
        self.rows = first.rows

    @property
    def oldest(self) -> int:
        """The first draw that a state may still ask for."""
        return self._ticks[0].ordinal

    def add_tick(self, tick: Tick) -> None:
        """Remember a snapshot."""
        self._ticks.append(tick)

    def add(self, arrivals: Arrivals, first_seq: int, placed: Placements) -> None:
        """Remember what was pushed and which rows it finished.

        Args:
            arrivals: the documents pushed.
            first_seq: arrival number of the first of them.
            placed: rows finished by this push; triggers are arrival numbers.
        """
        self._log.append(arrivals)
        if len(placed):
            self._finishing.append((self.rows, arrivals.ordinal[placed.trigger - first_seq]))
            self.rows += len(placed)

    def state_at(self, rows: int) -> LaneState:
        """Return the lane's state when ``rows`` rows of it are delivered."""
        last_draw = self._finished_by(rows)
        tick = self._ticks[0]
        for later in self._ticks:
            if later.ordinal > last_draw:
                break
            tick = later
        wanted = [
            Arrivals(a.ordinal[keep], a.component[keep], a.length[keep], a.position[keep])
            for a in self._log
            for keep in [(a.ordinal >= tick.ordinal) & (a.ordinal <= last_draw)]
        ]
        log = NO_ARRIVALS if not wanted else Arrivals(*map(np.concatenate, _columns(wanted)))
        return LaneState(rows=rows, last_draw=last_draw, tick=tick, log=log)

    def forget_before(self, rows: int) -> None:
        """Drop what no state at ``rows`` or later needs."""
        last_draw = self._finished_by(rows)
        while len(self._ticks) > 1 and self._ticks[1].ordinal <= last_draw:
            self._ticks.popleft()
        oldest = self._ticks[0].ordinal
        while self._log and (not len(self._log[0].ordinal) or self._log[0].ordinal[-1] < oldest):
            self._log.popleft()
        while self._finishing and self._finishing[0][0] + len(self._finishing[0][1]) < rows:
            self._finishing.popleft()

    def _finished_by(self, rows: int) -> int:
        if rows == 0:
            return -1
        for first, draws in self._finishing:
            if rows <= first + len(draws):
                return int(draws[rows - 1 - first])
        raise AssertionError(f"row {rows} of {self.rows} is not in the history")


def _columns(arrivals: list[Arrivals]) -> list[list[NDArray]]:
    return [
        [a.ordinal for a in arrivals],
        [a.component for a in arrivals],
        [a.length for a in arrivals],
        [a.position for a in arrivals],
    ]
