"""Each promise of an accumulator is broken by a small one, and kept by healthy ones."""

from dataclasses import replace

import pytest

from tests.validation.operators import Pairs, codes, grouped_by, only, same
from zephon.ops import CountingAccumulator, PassthroughAccumulator, pack_meta
from zephon.types import ContributorRef, SampleRecord
from zephon.validation import validate_pipeline


class Threes(Pairs):
    size = 3


class Reversing(Pairs):
    """Holds a lane until it is flushed."""

    size = 99

    def flush(self, *, reset=False, lane_id=None):
        return [(group[::-1], 0) for group, _ in super().flush(reset=reset, lane_id=lane_id)]


class Merging(Pairs):
    """Gives one record for two."""

    def push_many(self, elems):
        return [([_merged(group)], wait) for group, wait in super().push_many(elems)]


def _merged(records):
    meta = pack_meta(
        records[0].meta.cursor,
        [ContributorRef(r.meta.cursor) for r in records],
        lane_id=records[0].meta.lane_id,
        component_sample_counts={0: len(records)},
    )
    return SampleRecord(meta, [r.payload for r in records])


@pytest.mark.parametrize(
    "factory",
    [
        Pairs,
        Threes,
        Reversing,
        Merging,
        PassthroughAccumulator,
        lambda: CountingAccumulator(3),
        lambda: CountingAccumulator(64),
        lambda: CountingAccumulator(64, drop_last=True),
        lambda deterministic, ctx: CountingAccumulator(2, drop_last=deterministic),
        lambda **services: CountingAccumulator(3),
    ],
)
def test_healthy_accumulators_give_no_issue(factory):
    assert codes(grouped_by(factory, process_many=same)) == []


def test_a_factory_gets_what_it_takes():
    got = {}

    def factory(*, ctx):
        got["context"] = ctx
        return Pairs()

    assert codes(grouped_by(factory)) == []
    assert got["context"].get("get_component_id") is not None


def test_a_factory_that_fails():
    for factory in (lambda: 1 / 0, lambda: None):
        assert codes(grouped_by(factory)) == ["ACC_FACTORY_RAISED"]
    assert "got ZeroDivisionError: division by zero" in only(grouped_by(lambda: 1 / 0)).message
    assert "got a NoneType without push_many" in only(grouped_by(lambda: None)).message


def test_pushes_and_flushes_that_fail_or_give_no_groups():
    class FailsToPush(Pairs):
        def push_many(self, elems):
            raise ValueError("full")

    class FailsToFlush(Pairs):
        def flush(self, *, reset=False, lane_id=None):
            raise ValueError("closed")

    class GivesRecords(Pairs):
        def push_many(self, elems):
            return list(elems)

    class GivesNothing(Pairs):
        def push_many(self, elems):
            super().push_many(elems)

    for factory in (FailsToPush, FailsToFlush, GivesRecords, GivesNothing):
        assert codes(grouped_by(factory)) == ["ACC_PUSH_OR_FLUSH_RAISED"]
    assert (
        "must return a list of (records, nanoseconds) pairs"
        in only(grouped_by(GivesRecords)).message
    )


def test_a_flush_that_loses_records():
    class Forgets(Threes):
        def flush(self, *, reset=False, lane_id=None):
            super().flush(reset=reset, lane_id=lane_id)
            return []

    lost = only(grouped_by(Forgets))
    assert lost.code == "ACC_FLUSH_LOSES_SAMPLES"
    assert "got 3 of 12 missing" in lost.message


def test_records_that_come_out_twice():
    class Repeats(Threes):
        def flush(self, *, reset=False, lane_id=None):
            given = super().flush(reset=reset, lane_id=lane_id)
            return given + given

    assert "got 3 of 12 more than once" in only(grouped_by(Repeats)).message


def test_a_reset_of_one_lane_that_clears_all():
    class ClearsAll(Threes):
        def flush(self, *, reset=False, lane_id=None):
            given = super().flush(reset=reset, lane_id=lane_id)
            if reset:
                self.held.clear()
            return given

    class Fives(ClearsAll):
        size = 5

    assert codes(grouped_by(ClearsAll)) == []  # each lane is at the end of a group just then
    assert codes(grouped_by(Fives)) == ["ACC_FLUSH_LOSES_SAMPLES"]


def test_a_reset_that_fails():
    class OnlyAtTheEnd(Pairs):
        def flush(self, *, reset=False, lane_id=None):
            if reset:
                raise NotImplementedError("reset")
            return super().flush()

    assert codes(grouped_by(OnlyAtTheEnd)) == ["ACC_RESET_RAISED"]


@pytest.mark.parametrize("period", [2, 3, 5])
def test_a_reset_that_leaves_a_count(period):
    class Counts(Pairs):
        """Gives what it holds of a lane at every so many records of the lane."""

        def __init__(self):
            super().__init__()
            self.counts = {}

        def push_many(self, elems):
            ready = []
            for record in elems:
                lane = record.meta.lane_id
                self.held.setdefault(lane, []).append(record)
                self.counts[lane] = self.counts.get(lane, 0) + 1
                if self.counts[lane] % period == 0:
                    ready.append((self.held.pop(lane), 0))
            return ready

    assert codes(grouped_by(Counts)) == ["ACC_RESET_NOT_FRESH"]


def test_pending_records_that_are_denied():
    class Denies(Threes):
        def has_pending_data(self, lane_id=None):
            return False

    class Claims(Threes):
        def has_pending_data(self, lane_id=None):
            return True

    denied = only(grouped_by(Denies))
    assert denied.code == "ACC_HAS_PENDING_LIES"
    assert "has_pending_data(0) must be True while records are held, got False" in denied.message
    assert "ACC_HAS_PENDING_LIES" in codes(grouped_by(Claims))


def test_a_record_that_changes_its_lane():
    class ToLaneNine(Pairs):
        def push_many(self, elems):
            super().push_many(elems)
            moved = [SampleRecord(replace(r.meta, lane_id=9), r.payload) for r in elems]
            self.held.clear()
            return [(moved, 0)]

    wrong = validate_pipeline(grouped_by(ToLaneNine))[0]
    assert wrong.code == "ACC_MUTATES_LANE_ID"
    assert "in lane 9" in wrong.message


def test_a_group_of_several_lanes():
    class Mixes(Pairs):
        def push_many(self, elems):
            self.held.setdefault("all", []).extend(elems)
            full = len(self.held["all"]) >= 3
            return [(self.held.pop("all"), 0)] if full else []

        def has_pending_data(self, lane_id=None):
            held = self.held.get("all", [])
            return any(lane_id in (None, r.meta.lane_id) for r in held)

    assert "ACC_BATCH_NOT_LANE_PURE" in codes(grouped_by(Mixes))


def test_a_flush_that_takes_no_lane():
    class Whole(Pairs):
        def flush(self, *, reset=False):
            return super().flush()

    assert codes(grouped_by(Whole)) == ["ACC_NO_PER_LANE_FLUSH"]


def test_a_flush_of_a_lane_that_leaves_records():
    class AtTheEndAlone(Threes):
        def flush(self, *, reset=False, lane_id=None):
            return [] if reset else super().flush()

    class Fives(AtTheEndAlone):
        size = 5

    assert "ACC_PER_LANE_FLUSH_NOT_DRAINED" in codes(grouped_by(Fives))


def test_a_flush_of_a_lane_that_gives_others():
    class All(Pairs):
        def flush(self, *, reset=False, lane_id=None):
            return super().flush()

    assert codes(grouped_by(All)) == ["ACC_FLUSH_LEAKS_OTHER_LANES"]


def test_groups_that_chance_forms():
    class ByAClock(Pairs):
        made = 0

        def __init__(self):
            super().__init__()
            type(self).made += 1
            self.size = 2 + type(self).made % 2

    assert "OP_NONDETERMINISTIC" in codes(grouped_by(ByAClock))
