"""Calls on single rows, on records that stand in the order of their lane, such as packed ones."""

from __future__ import annotations

from zephon.exec.custom_steps.step import CustomStep
from zephon.exec.operator import RowError
from zephon.exec.operators.bad_row import BadRow
from zephon.exec.operators.row_calls import DROPPED, RowCalls
from zephon.io.made_rows import part_of
from zephon.planner.logical.functions import DecodeText, ExpandChat, MapTransform
from zephon.types import SampleRecord


class RowByRowStep(CustomStep):
    """Replaces payloads; the state of a lane is its number, since nothing is remembered."""

    def __init__(self, node: MapTransform | DecodeText | ExpandChat) -> None:
        self._calls = RowCalls((node,))
        self.label = node.call

    def make_state(self, lane: int) -> int:
        """Give the lane's number."""
        return lane

    def push(self, state: int, records: list[SampleRecord]) -> tuple[int, list[SampleRecord]]:
        """Call on the payload of each record; a row that stays one keeps its meta."""
        made: list[SampleRecord] = []
        with self._located(state, records):
            for row, record in enumerate(records):
                try:
                    made += self._become(record)
                except BadRow as exc:
                    error = RowError(row, exc.problem, exc.way_out, step=exc.step, kind=exc.kind)
                    raise error from exc.__cause__
        return state, made

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
