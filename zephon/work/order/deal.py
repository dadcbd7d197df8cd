"""How the rows of each pass are dealt to lanes: arithmetic, no table, no state.

A pass of n rows is dealt in rounds, one granule of g consecutive rows to each lane, while at least
two rounds' worth of rows remain; the rest goes one row at a time. Large granules let a lane read
neighbouring rows; the single rows at the end keep lanes level: after any number of passes two
lanes differ by at most one row, however few rows a pass has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.order.permutation import places
from zephon.work.order.runs import Runs

GRANULES_PER_PASS = 16
"""A lane's share of a pass is cut into about this many granules, unless chunk_size cuts finer."""

_FEW = 2  # granules of a draw that are looked up one by one: the last serves the next draw too


@dataclass(frozen=True, slots=True)
class Deal:
    """One component's rows, dealt to ``lanes`` lanes pass after pass.

    rows: rows of one pass, >= 1.
    granule: consecutive rows that a lane takes in a round.
    rounds: of a pass; the last starts with at least two rounds' worth of rows left.
    turn_key: decides in which order the lanes take turns in a round; None: in lane order.
    fresh: each pass has turn orders of its own; otherwise all have those of pass 0.
    first_pass, first_row: passes that were dealt before, and their rows; what is asked for lies
        behind them.
    """

    rows: int
    lanes: int
    granule: int
    rounds: int
    turn_key: int | None
    fresh: bool
    first_pass: int = 0
    first_row: int = 0

    @classmethod
    def of(
        cls,
        *,
        rows: int,
        lanes: int,
        chunk_size: int,
        turn_key: int | None,
        fresh: bool,
        first_pass: int = 0,
        first_row: int = 0,
    ) -> Deal:
        """Choose the granule: chunk_size, or less where a pass is short."""
        granule = max(1, min(chunk_size, rows // (GRANULES_PER_PASS * lanes)))
        return cls(
            rows=rows,
            lanes=lanes,
            granule=granule,
            rounds=max(0, rows // (lanes * granule) - 1),
            turn_key=turn_key,
            fresh=fresh,
            first_pass=first_pass,
            first_row=first_row,
        )

    def rows_before(self, lane: int, passes: int) -> int:
        """Count the rows of a lane in the first ``passes`` passes.

        A round gives each lane the same number, and the single rows go around without a break from
        pass to pass, so the count is that of dealing every row singly.
        """
        return -((lane - self._row(passes)) // self.lanes)

    def pass_of(self, lane: int, number: int) -> int:
        """Say in which pass a lane takes its row ``number``."""
        return self.first_pass + (number * self.lanes + lane - self.first_row) // self.rows

    def _row(self, pass_index: int) -> int:
        """Count the rows of all lanes before a pass."""
        return self.first_row + (pass_index - self.first_pass) * self.rows

    def runs(self, lane: int, first: int, count: int) -> Runs:
        """Find the places of rows ``first`` to ``first + count - 1`` of a lane, >= 1 of them.

        Returns:
            Runs in the order taken, their starts ascending within a pass; no run is empty.
        """
        if self.lanes == 1:
            return self._whole_passes(first, count)
        first_run, offset = self._run_at(lane, first)
        last_run, last_offset = self._run_at(lane, first + count - 1)
        if first_run == last_run:
            pass_index = self.pass_of(lane, first)
            start = self._place(lane, pass_index, first - self.rows_before(lane, pass_index))
            return Runs(
                np.array([pass_index], dtype=np.int64),
                np.array([start], dtype=np.int64),
                np.array([count], dtype=np.int64),
            )
        runs = self._many_runs(lane, np.arange(first_run, last_run + 1, dtype=np.int64))
        runs.length[-1] = last_offset + 1
        runs.start[0] += offset
        runs.length[0] -= offset
        return runs

    def _run_at(self, lane: int, number: int) -> tuple[int, int]:
        """Number the run that holds a lane's row, over all passes, and find the row's place in it.

        If each run were one row, a pass would have rows - lanes * merged of them, dealt singly;
        so the formulas for rows hold for runs.
        """
        merged = self.rounds * (self.granule - 1)
        pass_index = self.pass_of(lane, number)
        row = number - self.rows_before(lane, pass_index)
        before = pass_index - self.first_pass
        if row >= self.rounds * self.granule:
            return number - (before + 1) * merged, 0
        turn, offset = divmod(row, self.granule)
        return number - row - before * merged + turn, offset

    def _place(self, lane: int, pass_index: int, row: int) -> int:
        """Find the position in its pass of the lane's row number ``row`` of that pass."""
        if row < self.rounds * self.granule:
            turn, offset = divmod(row, self.granule)
            return _slot(self, lane, pass_index, turn) * self.granule + offset
        single = row - self.rounds * self.granule
        turn = (lane - self._row(pass_index)) % self.lanes
        return self.rounds * self.lanes * self.granule + turn + single * self.lanes

    def _many_runs(self, lane: int, run: NDArray[np.int64]) -> Runs:
        """Do as ``_place`` does for the start of each run, given the runs' numbers."""
        units = self.rows - self.lanes * self.rounds * (self.granule - 1)
        lane_behind = lane - self.first_row
        before = (run * self.lanes + lane_behind) // units
        single = run + (lane_behind - before * units) // self.lanes - self.rounds
        turn = (lane_behind - before * self.rows) % self.lanes
        pass_index = before + self.first_pass
        start = self.rounds * self.lanes * self.granule + turn + single * self.lanes
        in_round = single < 0
        if in_round.any():
            slots = self._slots(lane, pass_index[in_round], single[in_round] + self.rounds)
            start[in_round] = slots * self.granule
        return Runs(pass_index, start, np.where(in_round, self.granule, 1))

    def _slots(
        self, lane: int, pass_index: NDArray[np.int64], turn: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Number the granules that a lane takes in these rounds, counted from the pass's start."""
        if self.turn_key is None:
            return turn * self.lanes + lane
        if 1 < len(turn) <= _FEW:
            pairs = zip(pass_index.tolist(), turn.tolist(), strict=True)
            return np.array([_slot(self, lane, *pair) for pair in pairs], dtype=np.int64)
        keys = seeds.subkeys(self.turn_key, pass_index if self.fresh else 0)
        return turn * self.lanes + places(
            np.full(len(turn), lane, dtype=np.int64),
            np.ones(len(turn), dtype=np.int64),
            np.full(len(turn), self.lanes, dtype=np.int64),
            seeds.subkeys(keys, turn),
        )

    def _whole_passes(self, first: int, count: int) -> Runs:
        """One lane takes everything, so its runs are passes."""
        first -= self.first_row
        last = first + count - 1
        pass_index = np.arange(first // self.rows, last // self.rows + 1, dtype=np.int64)
        start = np.zeros(len(pass_index), dtype=np.int64)
        length = np.full(len(pass_index), self.rows, dtype=np.int64)
        length[-1] = last % self.rows + 1
        start[0] = first % self.rows
        length[0] -= start[0]
        return Runs(pass_index + self.first_pass, start, length)


@lru_cache(maxsize=4096)
def _slot(deal: Deal, lane: int, pass_index: int, turn: int) -> int:
    # Remembered, because many draws of a lane fall into one granule.
    return int(deal._slots(lane, np.array([pass_index]), np.array([turn]))[0])
