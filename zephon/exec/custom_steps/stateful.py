"""A transformation with a state of its own in each lane, as ``stateful_transform`` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zephon.exec.arrival_order import ArrivalOrder
from zephon.exec.custom_steps.step import CustomStep, json_values
from zephon.exec.operator import RowError
from zephon.exec.origins import LatestOrigin, ManyOrigins
from zephon.exec.user_calls import called, is_row, lead_over, records_of
from zephon.planner.logical.custom import Stateful
from zephon.types import SampleRecord


@dataclass(slots=True)
class OpenState:
    """What functions of the user remember of one lane; records are known by ``origins``.

    order: in which they came; None: they may leave in any.
    """

    value: Any
    origins: ManyOrigins | LatestOrigin
    order: ArrivalOrder | None


class StatefulStep(CustomStep):
    """Calls functions that hand a state on; what they give together stays together."""

    def __init__(self, node: Stateful) -> None:
        self._node = node
        self.label = f"stateful_transform {node.name!r}"
        self.gives_all_back = node.flush is not None

    @property
    def snapshots(self) -> bool:
        """Where the call said how."""
        return self._node.snapshot is not None and self._node.restore is not None

    def make_state(self, lane: int) -> OpenState:
        """Call ``init_state``."""
        origins = LatestOrigin(lane) if self.snapshots else ManyOrigins(lane)
        return OpenState(self._begun(lane), origins, self._order(from_beginning=True))

    def push(
        self, state: OpenState, records: list[SampleRecord]
    ) -> tuple[OpenState, list[SampleRecord]]:
        """Push records; flush, and begin anew, where the state is said to be full."""
        node, count = self._node, len(records)
        if not records:
            return state, []
        lane = state.origins.lane
        for record in records:
            state.origins.add(record.meta)
            if state.order is not None:
                state.order.add(record.meta)
        with self._located(lane, records):
            given = called("push", count, node.push, state.value, list(records))
            if not isinstance(given, tuple | list) or len(given) != 2:
                problem = f"push must return (state, records), got {given!r:.80}"
                error = RowError(0, f"{problem}{lead_over(count)}", "return both")
                raise error from TypeError(problem)
            state.value, pushed = given
            made = self._transformed(state, records_of("push", count, pushed))
            full = node.should_flush is not None and called(
                "should_flush", count, node.should_flush, state.value
            )
            if full:
                made += self._flushed(state, count)
        if full:
            state.value = self._begun(lane)
        return state, made

    def finish(self, state: OpenState) -> list[SampleRecord]:
        """Call ``flush``."""
        with self._located(state.origins.lane, ()):
            return self._flushed(state, 0)

    def snapshot(self, state: OpenState) -> Any:
        """Write the state down, and the last place that it has seen."""
        if self._node.snapshot is None or not isinstance(state.origins, LatestOrigin):
            return super().snapshot(state)
        with self._located(state.origins.lane, ()):
            saved = called("snapshot", 0, self._node.snapshot, state.value)
        return {"state": json_values(self.label, saved), "latest": list(state.origins.latest)}

    def restore(self, lane: int, saved: Any) -> OpenState:
        """Call ``restore`` with a copy of what was written down."""
        if self._node.restore is None:
            return super().restore(lane, saved)
        chunk, offset = saved["latest"]
        with self._located(lane, ()):
            own = json_values(self.label, saved["state"])
            value = called("restore", 0, self._node.restore, own)
        origins = LatestOrigin(lane, (chunk, offset))
        return OpenState(value, origins, self._order(from_beginning=False))

    def _order(self, *, from_beginning: bool) -> ArrivalOrder | None:
        kept = self._node.preserves_cursor_order
        return ArrivalOrder(from_beginning=from_beginning) if kept else None

    def _begun(self, lane: int) -> Any:
        with self._located(lane, ()):
            return called("init_state", 0, self._node.init_state)

    def _flushed(self, state: OpenState, count: int) -> list[SampleRecord]:
        if self._node.flush is None:
            return []
        held = called("flush", count, self._node.flush, state.value)
        return self._transformed(state, records_of("flush", count, held))

    def _transformed(self, state: OpenState, group: list[SampleRecord]) -> list[SampleRecord]:
        """Take the rows that a call gave through ``transform``, and check where all comes from."""
        function, rows = self._node.transform, [record for record in group if is_row(record)]
        if function is not None and rows:
            made = called("transform", len(rows), function, rows)
            gone = [record for record in group if not is_row(record)]
            group = records_of("transform", len(rows), made) + gone
        for record in group:
            state.origins.rows_of(record.meta)
            if state.order is not None and not record.meta.tombstone:
                state.order.check(record.meta)
        return group
