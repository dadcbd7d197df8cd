"""The order in which a rank hands out rows, as groups that become one batch each.

A group's rows exist when it is yielded. Where ranks share a step, its first group comes only once
every lane that this rank runs surely holds the whole step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from zephon.exec.block import Bad
from zephon.exec.lanes import LaneRows, Topology
from zephon.types import BatchRows

if TYPE_CHECKING:  # who gets batches of another process loads nothing that makes them
    from zephon.exec.lane_run import LaneRun


@dataclass(frozen=True, slots=True)
class Position:
    """What has been handed to the caller.

    step, delivered: with a global batch, the step and the rows of this rank's share handed out.
    rows: without one, the rows handed out of each lane. turn: without one, whose turn is next.
    ended: somebody asked for what follows, and there is nothing.
    """

    step: int = 0
    delivered: int = 0
    rows: Mapping[int, int] = field(default_factory=dict)
    turn: int = 0
    ended: bool = False

    def rows_of(self, lane: int, topology: Topology) -> int:
        """Count rows of a lane that a state here stands behind."""
        if topology.global_batch_size is not None:
            return topology.rows_before(self.step)
        return self.rows.get(lane, 0)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are delivered together, and the position once they are.

    elsewhere: another process of this rank hands them out, or did.
    """

    rows: tuple[LaneRows, ...]
    after: Position
    elsewhere: bool = False

    @property
    def size(self) -> int:
        """How many rows these are."""
        size = 0
        for rows in self.rows:
            size += rows.stop - rows.first
        return size


class Handed(NamedTuple):
    """A batch as it is handed out, and the bad rows that count from then on."""

    batch: BatchRows
    bad: Sequence[Bad]


@dataclass(frozen=True, slots=True)
class Together:
    """Batches that follow each other and lie in the same buffers.

    rows: of all of them. stops: where each batch ends in ``rows``. after: the position once it is
    handed out. mixtures: the weights in force when its last row was finished; None: unknown. bad:
    rows that were left out before it; empty where no batch has such.
    """

    rows: BatchRows
    stops: Sequence[int]
    after: Sequence[Position]
    mixtures: Sequence[Mapping[str, float] | None]
    bad: Sequence[Sequence[Bad]] = ()

    def __len__(self) -> int:
        return len(self.stops)

    def some(self, first: int, stop: int) -> Together:
        """Give batches [first, stop), which share memory."""
        if stop - first == len(self):
            return self
        begin = self.stops[first - 1] if first else 0
        return Together(
            rows=self.rows.part(begin, self.stops[stop - 1], self.mixtures[stop - 1]),
            stops=[each - begin for each in self.stops[first:stop]],
            after=self.after[first:stop],
            mixtures=self.mixtures[first:stop],
            bad=self.bad[first:stop],
        )

    def __iter__(self) -> Iterator[tuple[Handed, Position]]:
        """Yield each batch, and the position after it."""
        first = 0
        bad = self.bad or [()] * len(self)
        for number, stop in enumerate(self.stops):
            batch = self.rows.part(first, stop, self.mixtures[number])
            yield Handed(batch, bad[number]), self.after[number]
            first = stop


MOST_TOGETHER = 256

Ensure: TypeAlias = "Callable[[LaneRun, int], bool]"


def steps(
    topology: Topology,
    lanes: Mapping[int, LaneRun],
    start: Position,
    *,
    size: int,
    last_step: int | None,
    ensure: Ensure,
) -> Iterator[Group]:
    """Yield this rank's groups of ``size`` rows, step after step.

    Args:
        last_step: steps that the run has, where that is known beforehand.
        ensure: makes a lane hold so many rows in all; false if its data end before.
    """
    step, delivered = start.step, start.delivered
    while last_step is None or step < last_step:
        need = topology.rows_before(step + 1)
        # Nothing of a step is out before all of it is sure; a state after the step stands behind
        # all rows of these lanes, whoever delivers them.
        if not all(ensure(run, need) for run in lanes.values()):
            return
        waiting: list[LaneRows] = []
        for rows in topology.share(step, delivered):
            first = rows.first
            while first < rows.stop:
                room = size - sum(r.stop - r.first for r in waiting)
                stop = min(rows.stop, first + room)
                waiting.append(LaneRows(rows.lane, first, stop))
                first = stop
                if stop - waiting[-1].first == room:
                    delivered += size
                    whole = delivered == topology.rows_per_group
                    yield Group(tuple(waiting), Position(step + whole, 0 if whole else delivered))
                    waiting = []
        step, delivered = step + 1, 0


def turns(
    lanes: Mapping[int, LaneRun],
    start: Position,
    *,
    size: int,
    drop_last: bool,
    ensure: Ensure,
) -> Iterator[Group]:
    """Yield groups of ``size`` rows of one lane, lane after lane; a lane that ends drops out."""
    order = sorted(lanes)
    rows = {lane: start.rows.get(lane, 0) for lane in order}
    live = list(order)
    at = next((i for i, lane in enumerate(live) if lane >= start.turn), 0)
    while live:
        at %= len(live)
        lane = live[at]
        first, stop = rows[lane], rows[lane] + size
        if not ensure(lanes[lane], stop):
            stop = first if drop_last else lanes[lane].rows_placed
            del live[at]
        else:
            at += 1
        if stop > first:
            rows[lane] = stop
            turn = order[(order.index(lane) + 1) % len(order)]
            yield Group((LaneRows(lane, first, stop),), Position(rows=dict(rows), turn=turn))


def few_at_first(
    groups: Iterator[Group], tokens: Callable[[Group], int], most: int
) -> Iterator[list[Group]]:
    """Join groups up to ``most`` tokens, fewer at first so that the first batch comes soon.

    When a bad row ends ``groups``, what stands before it is yielded before its error is raised.
    """
    size, held, together = 1, 0, []
    try:
        for group in groups:
            together.append(group)
            held += tokens(group)
            if len(together) == size or held >= most:
                yield together
                size, held, together = min(2 * size, MOST_TOGETHER), 0, []
    except Exception:
        if together:
            yield together
        raise
    if together:
        yield together


def joined(groups: Sequence[Group]) -> Iterator[LaneRows]:
    """Yield the rows of all groups, those that follow each other in a lane as one."""
    last: LaneRows | None = None
    for rows in (rows for group in groups for rows in group.rows):
        if last is not None and last.lane == rows.lane and last.stop == rows.first:
            last = LaneRows(rows.lane, last.first, rows.stop)
            continue
        if last is not None:
            yield last
        last = rows
    if last is not None:
        yield last


def standing(
    groups: Sequence[Group], topology: Topology, lanes: Iterable[int]
) -> Iterator[tuple[int, Position]]:
    """Yield where states of lanes may stand, once groups are delivered: lane and position.

    Args:
        groups: in order.
        topology: of the rank.
        lanes: that it runs.
    """
    for group in groups:
        if topology.global_batch_size is None:
            yield from ((rows.lane, group.after) for rows in group.rows)
        elif not group.after.delivered:  # within a step, lanes stand at its beginning
            yield from ((lane, group.after) for lane in lanes)
