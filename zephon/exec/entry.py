"""The way into a floor that an operator of the user feeds: the operator, and how it takes a group.

A group is 64 finished rows of the floor below, as records; the last one of a lane may be shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.errors import ExecutionError
from zephon.exec.assemble import Assembler
from zephon.exec.block import DROPPED, Block, Buffer, Lost
from zephon.exec.custom_steps import CustomStep
from zephon.exec.policies import Chain
from zephon.exec.relay_rows import RowsOfRecords
from zephon.exec.segment import Segment
from zephon.types import SampleRecord
from zephon.work.refs import Refs

SNAPSHOT_GROUPS = 16
"""Groups after which an operator that can write its memory down does so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An operator of the user, and what surrounds it; shared by all lanes.

    every: groups after which the operator's memory is flushed and begun anew; 0: it writes it down.
    assembler: of the rows below. rows: makes rows of what the operator gives. segment: the steps
    that these run through. chain, measures: the policies above, and what they are told of rows.
    """

    step: CustomStep
    every: int
    assembler: Assembler
    rows: RowsOfRecords
    segment: Segment
    chain: Chain
    measures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.every and not self.step.snapshots:
            raise ExecutionError(
                f"{self.step.label}: what it remembers must be flushed every few records, or be "
                "written down by snapshot and restore; it does neither"
            )

    @property
    def span(self) -> int:
        """Groups of an interval, at whose beginning the operator's memory is known."""
        return self.every or SNAPSHOT_GROUPS

    def flushes(self, groups: int) -> bool:
        """Say whether the operator's memory is flushed after so many groups."""
        return self.every > 0 and groups % self.every == 0

    def remembers(self, groups: int) -> bool:
        """Say whether the operator has a memory after so many groups, if more follow."""
        return groups > 0 and not self.flushes(groups)

    def begin(self, lane: int, snapshot: Any) -> Any:
        """Give the operator's memory where an interval begins."""
        if snapshot is None:
            return self.step.make_state(lane)
        return self.step.restore(lane, snapshot)

    def take(
        self, memory: Any, group: int, records: list[SampleRecord], *, last: bool
    ) -> tuple[Any, list[SampleRecord]]:
        """Let the operator have a group of records.

        Args:
            memory: of the operator before it.
            group: its number.
            records: given away.
            last: the lane has no more.

        Returns:
            the memory behind it, None where it is flushed; and the records that leave.
        """
        made: list[SampleRecord] = []
        if records:
            memory, made = self.step.push(memory, records)
        if last:
            for component in self.rows.component_ids:
                made = [*made, *self.step.source_exhausted(memory, component)]
        if last or self.flushes(group + 1):
            return None, [*made, *self.step.finish(memory)]
        return memory, made

    def block(self, lane: int, group: int, made: Sequence[SampleRecord]) -> Block:
        """Take what the operator gave for a group through the steps above it."""
        records = [r for r in made if not (r.meta.tombstone or r.meta.is_sentinel)]
        if records:
            block = self.segment.run_rows(self.rows.rows(lane, group, records))
            if len(block.refs) or block.failure is not None or len(block.lost):
                return block
        zero = np.zeros(1, np.int64)
        narrow = zero.astype(np.int32)
        draw = Refs.of(narrow, zero, zero, narrow, zero + group, lane)
        lost = Lost(draw, np.array([DROPPED], np.int8))
        return Block(Refs.empty(), Buffer({}, 0, 0), zero, None, lost=lost)
