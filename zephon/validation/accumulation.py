"""What an accumulator does with records: the checks that push into it and flush it.

Records come as in a run: some of one lane, then some of the next. Three uses are tried: all lanes
to the end of the data; a flush of one lane amid it; and that lane again after its reset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from zephon.types import LaneId, SampleRecord
from zephon.validation.report import Issue, issue
from zephon.validation.samples import by_lane, keys
from zephon.validation.trial import BURST, Group, Make, Refused, Trial, bursts

Lanes: TypeAlias = dict[LaneId, list[SampleRecord]]


def check_accumulator(name: str, make: Make, records: Sequence[SampleRecord]) -> list[Issue]:
    """Try an accumulator out, and list what is wrong with it; one issue of a code at most."""
    found: dict[str, Issue] = {}
    lanes = by_lane(records)
    try:
        for use in (_to_the_end, _flush_of_a_lane, _after_a_reset):
            for each in use(name, make, lanes):
                found.setdefault(each.code, each)
    except Refused as refused:
        found.setdefault(refused.found.code, refused.found)
    return list(found.values())


def groups_formed(name: str, make: Make, records: Sequence[SampleRecord]) -> list[Group]:
    """Return the groups that an accumulator without issues makes of some records."""
    trial = Trial(name, make)
    trial.push_in_bursts(by_lane(records))
    trial.flush()
    return [group for group in trial.groups if group]


def _to_the_end(name: str, make: Make, lanes: Lanes) -> Iterator[Issue]:
    trial = Trial(name, make)
    for burst in bursts(lanes):
        trial.push(burst)
        if not trial.drops and not _moved(trial):
            yield from _pending_lies(name, trial, burst[0].meta.lane_id)
    trial.flush()
    moved = _moved(trial)
    if moved is not None:
        yield issue(
            "ACC_MUTATES_LANE_ID",
            name,
            f"records must leave the accumulator in their own lane, got sample "
            f"{moved.meta.sample_id} in lane {moved.meta.lane_id}; keep the meta as it is",
        )
        return
    mixed = next((g for g in trial.groups if len(by_lane(g)) > 1), None)
    if mixed is not None:
        yield issue(
            "ACC_BATCH_NOT_LANE_PURE",
            name,
            f"a group must hold records of one lane, got lanes {sorted(by_lane(mixed))} in one; "
            "hold each lane's records apart",
        )
    yield from _not_once_each(name, trial)
    if not trial.drops and trial.pending():
        yield issue(
            "ACC_HAS_PENDING_LIES",
            name,
            "has_pending_data() must be False after flush(), got True; say what is held",
        )


def _flush_of_a_lane(name: str, make: Make, lanes: Lanes) -> Iterator[Issue]:
    trial = Trial(name, make)
    if not trial.flushes_lanes:
        yield issue(
            "ACC_NO_PER_LANE_FLUSH",
            name,
            "flush must take reset and lane_id by name, and does not; define it as "
            "flush(self, *, reset=False, lane_id=None)",
        )
        return
    lane = next(iter(lanes))
    # An odd number: whoever makes pairs still holds one of each lane.
    trial.push_in_bursts({each: records[: BURST + 1] for each, records in lanes.items()})
    given = trial.flush_lane(lane)
    foreign = {each for group in given for each in by_lane(group)} - {lane}
    if foreign:
        yield issue(
            "ACC_FLUSH_LEAKS_OTHER_LANES",
            name,
            f"flush(lane_id={lane}) must give records of that lane alone, got lanes "
            f"{sorted(foreign)}; leave what other lanes hold",
        )
    left = set() if trial.drops else trial.held(lane)
    waits = not trial.drops and trial.pending(lane)
    trial.flush()
    if left - trial.held(lane) or (waits and not trial.gives_whole_records):
        yield issue(
            "ACC_PER_LANE_FLUSH_NOT_DRAINED",
            name,
            f"flush(reset=True, lane_id={lane}) must give all that the lane holds, got "
            f"{len(left) or 'parts of'} records left behind; return them",
        )
    yield from _not_once_each(name, trial)


def _after_a_reset(name: str, make: Make, lanes: Lanes) -> Iterator[Issue]:
    lane, records = next(iter(lanes.items()))
    if not Trial(name, make).flushes_lanes:
        return
    wanted = _formed(Trial(name, make), lane, records)
    if _formed(Trial(name, make), lane, records) != wanted:
        yield issue(
            "OP_NONDETERMINISTIC",
            name,
            "an accumulator must form equal groups of equal records, got others from a second "
            "one; decide by records alone",
        )
        return
    # Two numbers, so that what counts in twos or in threes is caught amid its count.
    for used in (BURST + 1, BURST + 2):
        trial = Trial(name, make)
        trial.push_in_bursts({lane: records[:used]})
        trial.flush_lane(lane)
        trial.groups.clear()
        if _formed(trial, lane, records) != wanted:
            yield issue(
                "ACC_RESET_NOT_FRESH",
                name,
                f"after flush(reset=True, lane_id={lane}) the lane must be as in a new "
                "accumulator, got other groups of the same records; forget all that it remembers "
                "of the lane",
            )
            return


def _formed(trial: Trial, lane: LaneId, records: list[SampleRecord]) -> list[object]:
    """Say which groups an accumulator makes of the records of a lane."""
    trial.push_in_bursts({lane: records})
    trial.flush_lane(lane)
    return [keys(group) for group in trial.groups]


def _pending_lies(name: str, trial: Trial, lane: LaneId) -> Iterator[Issue]:
    """Compare what is said to be held of a lane with what has not come out."""
    holds, says = bool(trial.held(lane)), trial.pending(lane)
    if holds != says and (holds or trial.gives_whole_records):
        yield issue(
            "ACC_HAS_PENDING_LIES",
            name,
            f"has_pending_data({lane}) must be {holds} while "
            f"{'records are' if holds else 'nothing is'} held, got {says}; say what is held",
        )


def _not_once_each(name: str, trial: Trial) -> Iterator[Issue]:
    """Say if a record is missing after a flush of everything, or came out twice."""
    lost = set() if trial.drops else trial.held()
    counts = Counter(key for group in trial.groups for key in keys(group))
    twice = [key for key, count in counts.items() if count > 1 and trial.gives_whole_records]
    if lost or twice:
        got = (
            f"{len(lost)} of {len(trial.pushed)} missing"
            if lost
            else f"{len(twice)} of {len(trial.pushed)} more than once"
        )
        yield issue(
            "ACC_FLUSH_LOSES_SAMPLES",
            name,
            f"after flush() each record must have come out once, got {got}; return all that is "
            "held, and forget what was returned",
        )


def _moved(trial: Trial) -> SampleRecord | None:
    """Find a record that came out in another lane than it went in."""
    lanes: dict[object, set[LaneId]] = {}
    for record in trial.pushed:
        lanes.setdefault(record.meta.as_cursor_key(), set()).add(record.meta.lane_id)
    for record in (record for group in trial.groups for record in group):
        if record.meta.lane_id not in lanes.get(record.meta.as_cursor_key(), {record.meta.lane_id}):
            return record
    return None
