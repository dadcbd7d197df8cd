"""Groups of rows that lanes hold become batches: several at once, in buffers that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from zephon.exec.assemble import Assembler, GatheredRows, stack
from zephon.exec.block import Bad
from zephon.exec.delivery import Group, Together, joined, standing
from zephon.exec.finished_rows import Placed
from zephon.exec.lane_run import LaneRun
from zephon.exec.lanes import LaneRows, Topology
from zephon.exec.towers import Ground, read_in_lane
from zephon.exec.weights import WeightsInForce


class Gathering:
    """Takes rows off lanes, whose documents it reads where they were not read yet.

    Args:
        ground: reads documents.
        assembler: copies rows into buffers.
        weights: names the weights in force.
        topology: of the rank.
        lanes: that it runs.
        apart: gather each row by itself and copy it into the batch afterwards.
    """

    def __init__(
        self,
        ground: Ground,
        assembler: Assembler,
        weights: WeightsInForce,
        topology: Topology,
        lanes: Mapping[int, LaneRun],
        *,
        apart: bool,
    ) -> None:
        self._ground = ground
        self._assembler = assembler
        self._weights = weights
        self._topology = topology
        self._lanes = lanes
        self._apart = apart
        self._bad: list[Bad] = []  # rows that count before the next batch that is handed out here

    def together(self, groups: Sequence[Group]) -> Together | None:
        """Make a batch of each group that is not handed out elsewhere.

        The rows of all groups are finished, and leave their lanes. None: all are.
        """
        ours = [group for group in groups if not group.elsewhere]
        taken = [
            (self._lanes[rows.lane], placed) for rows in joined(ours) for placed in self._take(rows)
        ]
        for run, placed in taken:
            read_in_lane(self._ground, run, placed.rows.seq)
        for lane, after in standing(groups, self._topology, self._lanes):
            run = self._lanes[lane]
            read = partial(read_in_lane, self._ground, run)
            run.pass_row(after.rows_of(lane, self._topology), self._assembler.tokens_field, read)
        made = self._made(ours, taken) if ours else None
        bad = self._bad_rows(groups)
        if made is not None and any(bad):
            made = replace(made, bad=bad)
        for lane, stop in {rows.lane: rows.stop for group in groups for rows in group.rows}.items():
            run = self._lanes[lane]
            run.take(stop - run.rows_taken)  # what is handed out elsewhere
            run.release()
        return made

    def _bad_rows(self, groups: Sequence[Group]) -> list[list[Bad]]:
        """List the bad rows that count with each group that is handed out here."""
        found: list[list[Bad]] = []
        if not self._bad and not any(run.bottom.bad for run in self._lanes.values()):
            return found
        for group in groups:
            for lane, after in standing([group], self._topology, self._lanes):
                run = self._lanes[lane]
                self._bad += _bad_rows_until(run, after.rows_of(lane, self._topology))
            if not group.elsewhere:
                found.append(self._bad)
                self._bad = []
        return found

    def left_over(self, rows: Mapping[int, int]) -> list[Bad]:
        """Take the bad rows that count at the end of the data, where lanes have so many rows."""
        bad, self._bad = self._bad, []
        for lane, count in rows.items():
            bad += _bad_rows_until(self._lanes[lane], count, at_end=True)
        return bad

    def _made(self, groups: Sequence[Group], taken: Sequence[tuple[LaneRun, Placed]]) -> Together:
        gathered = self._one_by_one(taken) if self._apart else self._assembler.gather(taken)
        stops = np.cumsum([group.size for group in groups])
        marks, lanes = gathered.mark[stops - 1].tolist(), gathered.lane[stops - 1].tolist()
        return Together(
            rows=self._assembler.batch(gathered),
            stops=stops.tolist(),
            after=[group.after for group in groups],
            mixtures=[
                self._weights.at(self._lanes[lane], *mark)
                for lane, mark in zip(lanes, marks, strict=True)
            ],
        )

    def _one_by_one(self, taken: Sequence[tuple[LaneRun, Placed]]) -> GatheredRows:
        return stack(
            [
                self._assembler.gather([(run, placed.some(i, i + 1))])
                for run, placed in taken
                for i in range(len(placed))
            ]
        )

    def _take(self, rows: LaneRows) -> list[Placed]:
        """Take rows off a lane; rows before them belong to other ranks."""
        run = self._lanes[rows.lane]
        run.take(rows.first - run.rows_taken)
        return run.take(rows.stop - rows.first)


def _bad_rows_until(run: LaneRun, rows: int, *, at_end: bool = False) -> list[Bad]:
    """Take the bad rows that the state of a lane at ``rows`` rows counts.

    Args:
        run: the lane; its top floor.
        rows: as ``LaneRun.state_at`` takes it, and so is ``at_end``.
        at_end: no other is to be delivered.
    """
    while run.below is not None:
        last_draw, _ = run.history.behind(rows, at_end=at_end)
        rows, final = run.below.rows_until(last_draw)
        run, at_end = run.below.lower, at_end or final
    last_draw, ended = run.history.behind(rows, at_end=at_end)
    return run.bad.until(None if ended else last_draw)
