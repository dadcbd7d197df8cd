"""Calls on single rows, on records that stand in the order of their lane, such as packed ones."""

from __future__ import annotations

from zephon.errors import DataError, ExecutionError
from zephon.exec.bad_row import BadRow
from zephon.exec.custom_steps.step import CustomStep
from zephon.exec.operator import RowError
from zephon.exec.operators.row_calls import DROPPED, RowCalls
from zephon.io.made_rows import part_of
from zephon.planner.logical.functions import RowStep
from zephon.types import SampleRecord


class RowByRowStep(CustomStep):
    """Replaces payloads; the state of a lane is its number, since nothing is remembered."""

    row_by_row = True

    def __init__(self, node: RowStep) -> None:
        self._calls = RowCalls((node,))
        self.label = node.call

    def make_state(self, lane: int) -> int:
        """Give the lane's number."""
        return lane

    def push(self, state: int, records: list[SampleRecord]) -> tuple[int, list[SampleRecord]]:
        """Call on the payload of each record; a row that stays one keeps its meta."""
        state, made, error = self.push_until(state, records)
        if error is not None:
            raise error
        return state, made

    def push_until(
        self, state: int, records: list[SampleRecord]
    ) -> tuple[int, list[SampleRecord], Exception | None]:
        """Do as ``push``, up to the first bad record."""
        made: list[SampleRecord] = []
        try:
            with self._located(state, records):
                for row, record in enumerate(records):
                    made += self._called(row, record)
        except (DataError, ExecutionError) as exc:
            return state, made, exc
        return state, made, None

    def _called(self, row: int, record: SampleRecord) -> list[SampleRecord]:
        try:
            return self._become(record)
        except BadRow as exc:
            error = RowError(row, exc.problem, exc.way_out, step=exc.step, kind=exc.kind)
            raise error from exc.__cause__

    def finish(self, state: int) -> list[SampleRecord]:
        """Return nothing: nothing is held."""
        return []

    def _become(self, record: SampleRecord) -> list[SampleRecord]:
        meta = record.meta
        if not self._calls.expands:
            payload = self._calls.one(record.payload)
            return [] if payload is DROPPED else [SampleRecord(meta, payload)]
        parts = self._calls.several(record.payload)
        return [
            SampleRecord(part_of(meta, path, closes=number == len(parts)), payload)
            for number, (path, payload) in enumerate(parts, start=1)
        ]
