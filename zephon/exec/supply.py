"""Hands draws to workers: which lanes need documents most, and how many fit into memory.

A task covers a run of draws in each of several lanes, about ``TASK_BYTES`` of rows in all. How
draws are grouped never shows in the data. Tasks start small, so that the first batch comes soon.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from zephon.exec.lane_run import LaneRun
from zephon.exec.rows import Block
from zephon.exec.runners import Handle, Runner
from zephon.exec.segment import Segment
from zephon.work.refs import Refs
from zephon.work.source import LaneStream

TASK_BYTES = 3 << 20
MOST_TASK_BYTES = 12 << 20
FIRST_TASK_BYTES = 128 << 10
LANE_BYTES = 256 << 10
_BYTES_PER_TOKEN = 4
_MOST_DRAWS = 1 << 16


@dataclass(frozen=True, slots=True)
class _Coming:
    """One lane's share of a task."""

    handle: Handle[Sequence[Block]]
    index: int
    draws: int


class Supply:
    """Keeps tasks in flight for the lanes of one engine; used by the pump's thread alone.

    Args:
        row_bytes: mean bytes of a row of the data, to size the first tasks; what comes back
            corrects it.
        lane_bytes: bytes of rows that a lane should have in flight or waiting.
        budget: bytes of rows that all lanes may have together; a lane that has nothing gets a
            task whatever the budget says.
        task_bytes: bytes of rows in one task, once the run is warm.
    """

    def __init__(
        self,
        runner: Runner,
        segment: Segment,
        lanes: Sequence[LaneRun],
        *,
        row_bytes: float,
        lane_bytes: int,
        budget: int,
        task_bytes: int = TASK_BYTES,
    ) -> None:
        self._runner = runner
        self._segment = segment
        self._lanes = lanes
        self._row_bytes = max(row_bytes, 1.0)
        self._lane_bytes = lane_bytes
        self._budget = budget
        self._most_task_bytes = min(task_bytes, max(budget // 4, 1))
        self._task_bytes = min(FIRST_TASK_BYTES, self._most_task_bytes)
        self._tasks: list[Handle[Sequence[Block]]] = []
        self._coming: dict[int, deque[_Coming]] = {run.lane: deque() for run in lanes}
        self._draws_coming = {run.lane: 0 for run in lanes}
        self._draws_seen = 0
        self._tokens_seen = 0

    def pull(self, run: LaneRun) -> None:
        """Push the lane's next block into its policy, or end the lane; waits for a worker.

        Raises:
            Exception: what the lane's first bad row raises, once all rows before it are placed.
        """
        if run.failure is not None:
            raise run.failure
        coming = self._coming[run.lane]
        if not coming and not _exhausted(run):
            self._issue(run)
        self.refill()
        if not coming:
            run.end()
            return
        share = coming.popleft()
        block = share.handle.result()[share.index]
        self._draws_coming[run.lane] -= share.draws
        self._draws_seen += share.draws
        self._tokens_seen += block.tokens
        run.push(block)

    def refill(self) -> None:
        """Start tasks while workers are free and memory allows."""
        if not self._runner.lookahead:
            return
        self._tasks = [task for task in self._tasks if not task.done()]
        while len(self._tasks) <= self._runner.workers:
            waiting = {run.lane: self._bytes_waiting(run) for run in self._lanes}
            if sum(waiting.values()) + self._task_bytes > self._budget:
                return
            hungry = [
                run
                for run in self._lanes
                if waiting[run.lane] < self._lane_bytes and not _exhausted(run)
            ]
            if not hungry:
                return
            self._issue(min(hungry, key=lambda run: waiting[run.lane]))

    def _issue(self, first: LaneRun) -> None:
        """Start a task for ``first`` and for the lanes that have least, until it is full."""
        hungry = [run for run in self._lanes if run is not first and not _exhausted(run)]
        hungry.sort(key=self._bytes_waiting)
        portion = max(self._task_bytes / (len(hungry) + 1), min(self._task_bytes, LANE_BYTES))
        lanes = [first, *hungry][: max(1, int(self._task_bytes / portion))]
        self._task_bytes = min(2 * self._task_bytes, self._most_task_bytes)
        wanted = max(1, min(_MOST_DRAWS, int(portion / self._bytes_per_draw())))
        ranges = []
        for run in lanes:
            length = run.stream.length
            draws = wanted if length is None else min(wanted, length - run.next_draw)
            ranges.append((run.stream, run.next_draw, draws))
            run.next_draw += draws
        handle = self._segment.submit(self._runner, partial(_draw, tuple(ranges)))
        if self._runner.lookahead:
            self._tasks.append(handle)
        for index, (run, (_, _, draws)) in enumerate(zip(lanes, ranges, strict=True)):
            self._coming[run.lane].append(_Coming(handle, index, draws))
            self._draws_coming[run.lane] += draws

    def _bytes_waiting(self, run: LaneRun) -> float:
        coming = self._draws_coming[run.lane] * self._bytes_per_draw()
        if not self._tokens_seen:  # rows without tokens wait too
            coming += (run.rows_placed - run.rows_taken) * self._row_bytes
        return run.tokens_waiting * _BYTES_PER_TOKEN + coming

    def _bytes_per_draw(self) -> float:
        if not self._tokens_seen:
            return self._row_bytes
        return max(1.0, _BYTES_PER_TOKEN * self._tokens_seen / self._draws_seen)


def _exhausted(run: LaneRun) -> bool:
    return run.stream.length is not None and run.next_draw >= run.stream.length


def _draw(ranges: Sequence[tuple[LaneStream, int, int]]) -> list[Refs]:
    return [stream.draw(first, draws) for stream, first, draws in ranges]
