"""An operator that ``add_op`` added, in the order of its lane: its accumulator forms the groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from zephon.errors import ExecutionError
from zephon.exec.arrival_order import ArrivalOrder
from zephon.exec.custom_steps.step import CustomStep, json_values
from zephon.exec.group_calls import GroupCalls, Worker
from zephon.exec.operator import RowError
from zephon.exec.origins import LatestOrigin, ManyOrigins
from zephon.exec.user_calls import called, lead_over
from zephon.ops import Accumulator, StageInfo
from zephon.ops.accumulators import SourceExhaustion, writes_itself_down
from zephon.ops.context import OpServices
from zephon.planner.logical.custom import CustomOp
from zephon.types import SampleRecord


@dataclass(slots=True)
class OpenGroups:
    """What one lane has waiting; records are known by ``origins``.

    order: in which they came; None: they may leave in any. worker: the lane's own copy of an
    operator that remembers by itself; None: any will do.
    """

    accumulator: Accumulator[SampleRecord] | None
    origins: ManyOrigins | LatestOrigin
    order: ArrivalOrder | None = None
    worker: Worker | None = None


class GroupsStep(CustomStep):
    """Pushes records into an accumulator, and calls the operator on each group that comes out."""

    def __init__(
        self, op: CustomOp, services: OpServices, stage_info: StageInfo | None = None
    ) -> None:
        self._op = op
        self._ended: dict[int, SourceExhaustion] = {}  # by lane; nothing has ended in the others
        services = replace(services, source_exhaustion=self._exhaustion)
        self._calls = GroupCalls(op, services, stage_info)
        self.label = self._calls.label
        self._snapshots: bool | None = None

    @property
    def snapshots(self) -> bool:
        """Whether the accumulator writes itself down; asks one that is made for this, once.

        One that can only be made after ``setup()`` is taken not to.
        """
        if self._snapshots is None:
            self._snapshots = False
            if self._op.remembers and not self._op.requires_serial_state:
                with contextlib.suppress(ExecutionError):  # said where a lane begins
                    made = self._calls.idle_worker().accumulator()
                    self._snapshots = writes_itself_down(made)
        return self._snapshots

    def make_state(self, lane: int) -> OpenGroups:
        """Make an accumulator; and a copy of the operator, where that remembers by itself."""
        self._ended.pop(lane, None)  # it is gone through again
        origins = LatestOrigin(lane) if self.snapshots else ManyOrigins(lane)
        worker = self._calls.new_worker() if self._op.requires_serial_state else None
        order = self._order(from_beginning=True)
        return OpenGroups(self._accumulator(worker), origins, order, worker)

    def push(
        self, state: OpenGroups, records: list[SampleRecord]
    ) -> tuple[OpenGroups, list[SampleRecord]]:
        """Take records; return what the operator makes of the groups that are complete."""
        for record in records:
            state.origins.add(record.meta)
            if state.order is not None:
                state.order.add(record.meta)
        groups: Iterable[list[SampleRecord]] = [records]
        if state.accumulator is not None:
            with self._located(state.origins.lane, records):
                groups = _groups("push_many", len(records), state.accumulator.push_many, records)
        return state, self._made(state, groups)

    def finish(self, state: OpenGroups) -> list[SampleRecord]:
        """Return what the operator makes of the groups that are held."""
        made: list[SampleRecord] = []
        if state.accumulator is not None:
            with self._located(state.origins.lane, ()):
                groups = _groups("flush", 0, state.accumulator.flush)
            made = self._made(state, groups)
        self.discard(state)
        return made

    def discard(self, state: OpenGroups) -> None:
        """Let the lane's own copy of the operator go."""
        if state.worker is not None:
            self._calls.release(state.worker)

    def source_exhausted(self, state: OpenGroups, component: int) -> list[SampleRecord]:
        """Tell the accumulator; return what the operator makes of the groups that it gives."""
        lane = state.origins.lane
        ended = self._exhaustion(lane).exhausted | {component}
        self._ended[lane] = SourceExhaustion(exhausted=ended, final_component=component)
        hears = getattr(state.accumulator, "on_source_exhausted", None)
        if hears is None:
            return []
        with self._located(lane, ()):
            groups = _groups("on_source_exhausted", 0, hears, lane, component)
        return self._made(state, groups)

    def snapshot(self, state: OpenGroups) -> Any:
        """Write down what the accumulator holds, and the last place that it has seen."""
        accumulator, origins = state.accumulator, state.origins
        if accumulator is None or not isinstance(origins, LatestOrigin):
            return super().snapshot(state)
        with self._located(origins.lane, ()):
            saved = called("snapshot", 0, accumulator.snapshot)
        return {"held": json_values(self.label, saved), "latest": list(origins.latest)}

    def restore(self, lane: int, saved: Any) -> OpenGroups:
        """Make an accumulator that holds what was written down."""
        self._ended.pop(lane, None)
        chunk, offset = saved["latest"]
        accumulator = self._calls.worker().accumulator()
        with self._located(lane, ()):
            called("restore", 0, accumulator.restore, saved["held"])
        order = self._order(from_beginning=False)
        return OpenGroups(accumulator, LatestOrigin(lane, (chunk, offset)), order)

    def close(self) -> None:
        """Take back all copies of the operator."""
        self._calls.close()

    def _order(self, *, from_beginning: bool) -> ArrivalOrder | None:
        kept = self._op.preserves_cursor_order
        return ArrivalOrder(from_beginning=from_beginning) if kept else None

    def _exhaustion(self, lane: int) -> SourceExhaustion:
        return self._ended.get(lane, SourceExhaustion())

    def _accumulator(self, worker: Worker | None) -> Accumulator[SampleRecord] | None:
        op = self._op
        if not op.remembers or (op.instance is None and op.accumulator is None):
            return None
        return (worker or self._calls.worker()).accumulator()

    def _made(self, state: OpenGroups, groups: Iterable[list[SampleRecord]]) -> list[SampleRecord]:
        worker = state.worker or self._calls.worker()
        made: list[SampleRecord] = []
        for group in groups:
            if not group:
                continue
            with self._located(state.origins.lane, group):
                leave = worker.process(group)
                for record in leave:
                    state.origins.rows_of(record.meta)
                    if state.order is not None and not record.meta.tombstone:
                        state.order.check(record.meta)
            made += leave
        return made


def _groups(name: str, count: int, function: Any, *given: Any) -> list[list[SampleRecord]]:
    """Ask an accumulator for groups, and check that they are groups of records."""
    what = f"accumulator.{name}"
    ready = called(what, count, function, *given)
    problem = f"{what} must return a list of (records, nanoseconds)"
    try:
        groups = [list(group) for group, _ in ready]
    except (TypeError, ValueError) as exc:
        problem = f"{problem}, got {ready!r:.80}{lead_over(count)}"
        raise RowError(0, problem, "return pairs, [] if no group is complete") from exc
    for group in groups:
        for each in group:
            if not isinstance(each, SampleRecord):
                came = f"{problem}, got a {type(each).__name__} in a group{lead_over(count)}"
                error = RowError(0, came, "give back records that were pushed")
                raise error from TypeError(problem)
    return groups
