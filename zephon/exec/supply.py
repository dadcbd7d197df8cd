"""Hands draws to workers: which lanes need documents most, and how many fit into memory.

A task covers a run of draws in each of several lanes, or of strands of them, about ``TASK_BYTES``
of rows in all. How draws are grouped never shows in the data. Tasks start small, so that the first
batch comes soon.

How full a lane is, and what it needs, is in ``filling``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from zephon.exec import endings
from zephon.exec.block import Block
from zephon.exec.filling import Filling, Sizes, filling_of
from zephon.exec.lane_run import LaneRun
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.runners import Handle, Runner
from zephon.exec.segment import Drawn, Segment, Window
from zephon.exec.windows import whole_windows, windows_of
from zephon.work.source import LaneStream

TASK_BYTES = 3 << 20
MOST_TASK_BYTES = 12 << 20
FIRST_TASK_BYTES = 128 << 10
LANE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class _Portion:
    """Draws that a task makes for one intake of a lane, and which of the task's blocks they are."""

    intake: int
    draws: int
    index: int


@dataclass(frozen=True, slots=True)
class _Coming:
    """One lane's share of a task."""

    handle: Handle[Sequence[Block]]
    portions: Sequence[_Portion]


class Supply:
    """Keeps tasks in flight for the lanes of one engine; used by the pump's thread alone.

    Args:
        row_bytes: mean bytes of a row of the data, to size the first tasks; what comes back
            corrects it.
        component_bytes: the same for each component, where lanes merge strands.
        lane_bytes: bytes of rows that a lane should have in flight or waiting.
        budget: bytes of rows that all lanes may have together; a lane that has nothing gets a
            task whatever the budget says.
        task_bytes: bytes of rows in one task, once the run is warm.
        limit: draws of an intake that are read ahead at most; None: any number.
    """

    def __init__(
        self,
        runner: Runner,
        segment: Segment | RemoteSegment,
        lanes: Sequence[LaneRun],
        *,
        row_bytes: float,
        lane_bytes: int,
        budget: int,
        task_bytes: int = TASK_BYTES,
        component_bytes: Sequence[float] = (),
        limit: int | None = None,
    ) -> None:
        self._runner = runner
        self._segment = segment
        self._lane_bytes = lane_bytes
        self._budget = budget
        self._most_task_bytes = min(task_bytes, max(budget // 4, 1))
        self._task_bytes = min(FIRST_TASK_BYTES, self._most_task_bytes)
        self._tasks: list[Handle[Sequence[Block]]] = []
        self._coming: dict[int, deque[_Coming]] = {run.lane: deque() for run in lanes}
        bottoms = [run.bottom for run in lanes]
        self._merges = any(run.strands is not None for run in bottoms)
        kinds = max((len(run.intakes) for run in bottoms), default=1)
        self._sizes = Sizes(row_bytes, component_bytes or [row_bytes] * kinds)
        self._fillings = {
            run.lane: filling_of(run, self._sizes, lane_bytes, limit) for run in bottoms
        }

    def ensure(self, most: int, run: LaneRun, rows: int) -> bool:
        """Make a lane hold so many finished rows in all; false if its data end before.

        Args:
            most: rows of all datasets, after which a lane that gives nothing is given up.
            run: the lane.
            rows: from its beginning.
        """
        while run.rows_placed < rows:
            if run.ended:
                return False
            self.pull(run)
            for floor in run.floors():
                if endings.is_barren(floor, most):
                    raise endings.barren(floor)
        return True

    def pull(self, run: LaneRun) -> None:
        """Bring the lane on: push its next blocks, or end it; waits for a worker.

        Where an operator of the user stands under the lane, that gets the rows first which are
        there for it.

        Raises:
            Exception: what the lane's first bad row raises, once all rows before it are placed.
        """
        if run.failure is None and run.advance():
            return
        for floor in run.floors():
            if floor.failure is not None:
                raise floor.failure
        run = run.bottom
        coming, wanted = self._coming[run.lane], run.wants
        if run.failure is not None:
            raise run.failure
        if wanted is None:
            coming.clear()
            run.end()
            run.release()  # now: a lane that gives no row any more is not asked again
            return
        intake = run.intakes[wanted]
        if intake.read == intake.next_draw:
            self._issue(self._fillings[run.lane])
        self.refill()
        share = coming.popleft()
        blocks = share.handle.result()
        for portion in share.portions:
            block = blocks[portion.index]
            documents = len(block.refs)
            self._sizes.learn(portion.intake, portion.draws, block.tokens, documents)
            run.push(block, portion.intake, portion.draws)
        self._fillings[run.lane].measure()

    def refill(self) -> None:
        """Start tasks while workers are free and memory allows."""
        if not self._runner.lookahead:
            return
        self._tasks = [task for task in self._tasks if not task.done()]
        while len(self._tasks) <= self._runner.workers:
            held = [filling.held() for filling in self._fillings.values()]
            if sum(held) + self._task_bytes > self._budget:
                return
            # What a whole lane holds is what it can give.
            ahead = [f.ahead() for f in self._fillings.values()] if self._merges else held
            hungry = [
                (least, filling.run.lane)
                for least, filling in zip(ahead, self._fillings.values(), strict=True)
                if least < self._lane_bytes and filling.has_more()
            ]
            if not hungry:
                return
            self._issue(self._fillings[min(hungry)[1]])

    def _issue(self, first: Filling) -> None:
        """Start a task for ``first`` and for the lanes that have least, until it is full."""
        hungry = [f for f in self._fillings.values() if f is not first and f.has_more()]
        hungry.sort(key=lambda filling: filling.ahead())
        portion = max(self._task_bytes / (len(hungry) + 1), min(self._task_bytes, LANE_BYTES))
        lanes = [first, *hungry][: max(1, int(self._task_bytes / portion))]
        if self._merges and not self._has_room():
            # Only what the merge waits for: a lane that holds much may lack one strand.
            wanted = first.run.wants
            lanes = [first]
            plans = [[each for each in first.plan(portion) if each[0] == wanted]]
        else:
            plans = [filling.plan(portion) for filling in lanes]
        self._task_bytes = min(2 * self._task_bytes, self._most_task_bytes)
        # Strand after strand, so that the rows of a component lie side by side in the task.
        places = sorted(
            (intake, number, draws) for number, plan in enumerate(plans) for intake, draws in plan
        )
        ranges = []
        shares: list[list[_Portion]] = [[] for _ in lanes]
        for index, (number, place, draws) in enumerate(places):
            intake = lanes[place].run.intakes[number]
            draws = whole_windows(intake.next_draw, draws, intake.left, self._segment.window)
            ranges.append((intake.stream, intake.next_draw, draws))
            intake.next_draw += draws
            shares[place].append(_Portion(number, draws, index))
        draw = partial(_draw, tuple(ranges), self._segment.window)
        handle = self._segment.submit(self._runner, draw)
        if self._runner.lookahead:
            self._tasks.append(handle)
        for filling, portions in zip(lanes, shares, strict=True):
            self._coming[filling.run.lane].append(_Coming(handle, portions))
            filling.measure()

    def _has_room(self) -> bool:
        held = sum(filling.held() for filling in self._fillings.values())
        return held + self._task_bytes <= self._budget


def task_bytes_for(group_bytes: float) -> int:
    """Size tasks so that two that follow each other seldom wait for one row group."""
    return int(min(max(TASK_BYTES, group_bytes), MOST_TASK_BYTES))


def _draw(ranges: Sequence[tuple[LaneStream, int, int]], window: int) -> Drawn:
    if window == 1:
        return [stream.draw(first, draws) for stream, first, draws in ranges]
    found = []
    for stream, first, draws in ranges:  # an operator sees whole windows
        wanted = np.arange(first, first + draws)
        found.append(Window(windows_of(stream, wanted, window), first, first + draws))
    return found
