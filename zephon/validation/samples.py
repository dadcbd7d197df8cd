"""The records that operators are checked with: those of the user, or three lanes of four."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zephon.batches.own_copies import own_copy
from zephon.errors import PlanError
from zephon.types import LaneId, SampleCursorKey, SampleMeta, SampleRecord

LANES = 3
IN_LANE = 4
_WORDS = ("one", "stone", "shows", "the", "whole", "wall")


def generic_records() -> list[SampleRecord]:
    """Make the records of the checks, lane after lane: ``{"text": str, "value": int}``.

    >>> generic_records()[5].payload
    {'text': 'lane 1, record 1: one stone', 'value': 5}
    """
    return [
        SampleRecord(
            SampleMeta(sample_id=(0, lane, i), lane_id=lane, chunk_id=lane, chunk_offset=i),
            {
                "text": f"lane {lane}, record {i}: {' '.join(_WORDS[: i + 1])}",
                "value": lane * IN_LANE + i,
            },
        )
        for lane in range(LANES)
        for i in range(IN_LANE)
    ]


def records_given(given: Any) -> list[SampleRecord] | None:
    """Read ``validation_samples``: a list of records, or a function that returns one.

    Returns:
        None if there is none.

    Raises:
        PlanError: there are no records in it, or something else.
    """
    found = given() if callable(given) else given
    if found is None:
        return None
    if not isinstance(found, list | tuple) or not found:
        raise PlanError(
            "validation_samples must give a list of SampleRecord, with one at least, got "
            f"{found!r}; return records as process_many takes them"
        )
    for each in found:
        if not isinstance(each, SampleRecord):
            raise PlanError(
                "validation_samples must give a list of SampleRecord, got one with a "
                f"{type(each).__name__}; write SampleRecord(meta, payload)"
            )
    return list(found)


def copies(records: Iterable[SampleRecord]) -> list[SampleRecord]:
    """Copy records with all that is in them, for a call to keep and to change."""
    return [
        SampleRecord(each.meta.with_lineage(each.meta.lineage), own_copy(each.payload))
        for each in records
    ]


def by_lane(records: Iterable[SampleRecord]) -> dict[LaneId, list[SampleRecord]]:
    """Sort records by lane, in the order in which lanes come."""
    lanes: dict[LaneId, list[SampleRecord]] = {}
    for each in records:
        lanes.setdefault(each.meta.lane_id, []).append(each)
    return lanes


def keys(records: Sequence[SampleRecord]) -> list[tuple[LaneId, SampleCursorKey]]:
    """Say which records these are."""
    return [(each.meta.lane_id, each.meta.as_cursor_key()) for each in records]
