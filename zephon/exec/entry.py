"""The way into a floor that an operator of the user feeds: the operator, and how it takes a group.

A group is 64 finished rows of the floor below, as records; the last one of a lane may be shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ExecutionError
from zephon.exec.assemble import Assembler
from zephon.exec.block import DROPPED, Block, Buffer, Lost
from zephon.exec.custom_steps import CustomStep
from zephon.exec.policies import Chain
from zephon.exec.relay_rows import RowsOfRecords
from zephon.exec.segment import Segment
from zephon.exec.user_calls import is_row
from zephon.types import SampleMeta, SampleRecord
from zephon.work.refs import Refs

SNAPSHOT_GROUPS = 16
"""Groups after which an operator that can write its memory down does so."""


_RECORD, _TOKENS = "\0record", "\0tokens"
"""What is noted of rows beside the measures of the user, whose names have no such letter."""


class StoppedAt(Exception):
    """A record of a group was bad, for an operator that takes them one by one.

    made: what came of the records before it. error: what is wrong with it.
    """

    def __init__(self, made: list[SampleRecord], error: Exception) -> None:
        super().__init__(made, error)
        self.made = made
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An operator of the user, and what surrounds it; shared by all lanes.

    every: groups after which the operator's memory is flushed and begun anew; 0: it writes it down.
    assembler: of the rows below. rows: makes rows of what the operator gives. segment: the steps
    that these run through. chain, measures: the policies above, and what they are told of rows.
    carries_tokens: rows above have none, and those below do: then it is noted of each document how
    many tokens its record says to hold.
    """

    step: CustomStep
    every: int
    assembler: Assembler
    rows: RowsOfRecords
    segment: Segment
    chain: Chain
    measures: tuple[str, ...] = ()
    carries_tokens: bool = False

    def __post_init__(self) -> None:
        if not self.every and not self.step.snapshots:
            raise ExecutionError(
                f"{self.step.label}: what it remembers must be flushed every few records, or be "
                "written down by snapshot and restore; it does neither"
            )

    @property
    def noted(self) -> tuple[str, ...]:
        """Names of all that is known of the documents above: ``measures``, then their tokens."""
        if not self.carries_tokens:
            return self.measures
        return (*self.measures, *(f"{_TOKENS}{n}" for n in range(len(self.rows.component_id))))

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

        Raises:
            StoppedAt: a record is bad, and the operator takes them one by one.
        """
        made: list[SampleRecord] = []
        if records:
            memory, made, error = self.step.push_until(memory, records)
            if error is not None:
                raise StoppedAt(made, error)
        if last:
            for component in self.rows.component_ids:
                made = [*made, *self.step.source_exhausted(memory, component)]
        if last or self.flushes(group + 1):
            return None, [*made, *self.step.finish(memory)]
        return memory, made

    def block(self, lane: int, group: int, made: Sequence[SampleRecord]) -> Block:
        """Take what the operator gave for a group through the steps above it."""
        return self.through(lane, group, made)[0]

    def through(
        self, lane: int, group: int, made: Sequence[SampleRecord]
    ) -> tuple[Block, list[SampleMeta]]:
        """Do as ``block``; give the metas of the records, too, of which something is left."""
        records = [record for record in made if is_row(record)]
        if records:
            rows = self.rows.rows(lane, group, records)
            rows = replace(rows, measures={_RECORD: np.arange(len(records))})
            block = self.segment.run_rows(rows)
            left = _metas_of(block, records)
            kept = {n: found for n, found in block.measures.items() if n != _RECORD}
            block = replace(block, measures={**kept, **self._tokens(left)})
            if len(block.refs) or block.failure is not None or len(block.lost):
                return block, left
        zero = np.zeros(1, np.int64)
        narrow = zero.astype(np.int32)
        draw = Refs.of(narrow, zero, zero, narrow, zero + group, lane)
        lost = Lost(draw, np.array([DROPPED], np.int8))
        nothing = Block(Refs.empty(), Buffer({}, 0, 0), zero, None, lost=lost)
        return replace(nothing, measures=self._tokens([])), []

    def _tokens(self, metas: Sequence[SampleMeta]) -> dict[str, NDArray[np.int64]]:
        """Give the tokens that each document's record says to hold, by component."""
        if not self.carries_tokens:
            return {}
        counts = [meta.component_token_counts or {} for meta in metas]
        found = {}
        seen: set[int] = set()  # several components may go by one id: the first counts
        for number, component in enumerate(self.rows.component_id.tolist()):
            tokens = [0 if component in seen else each.get(component, 0) for each in counts]
            found[f"{_TOKENS}{number}"] = np.array(tokens, np.int64)
            seen.add(component)
        return found


def _metas_of(block: Block, records: Sequence[SampleRecord]) -> list[SampleMeta]:
    """Give the metas of the documents of a block that was made of records."""
    if _RECORD in block.measures:
        return [records[at].meta for at in block.measures[_RECORD].tolist()]
    if block.payload is not None and block.payload.has_metas:
        return [block.payload.meta(at) for at in range(len(block.refs))]
    return [record.meta for record in records] if len(block.refs) else []
