"""How groups are formed: by count and lane, or not at all; and who writes down what it holds."""

import pytest

from tests.ops.records import offsets, records
from zephon.errors import PlanError
from zephon.ops import Accumulator, CountingAccumulator, PassthroughAccumulator
from zephon.ops.accumulators import writes_itself_down


def found(ready):
    assert all(waited == 0 for _, waited in ready)
    return [offsets(group) for group, _ in ready]


def test_groups_are_counted_lane_by_lane_and_leave_when_they_are_full():
    counting = CountingAccumulator(2)
    mixed = records(0) + records(1, lane=1) + records(2) + records(3, lane=1) + records(4)
    assert found(counting.push_many(mixed)) == [[0, 2], [1, 3]]
    assert counting.has_pending_data()
    assert counting.has_pending_data(0)
    assert not counting.has_pending_data(1)
    assert found(counting.push_many(records(5))) == [[4, 5]]
    assert not counting.has_pending_data()


def test_a_flush_gives_the_rest_of_one_lane_or_of_all():
    counting = CountingAccumulator(3)
    counting.push_many(records(0) + records(1, lane=1) + records(2, lane=2))
    assert found(counting.flush(reset=True, lane_id=1)) == [[1]]
    assert found(counting.flush(reset=True, lane_id=1)) == []
    assert found(counting.flush()) == [[0], [2]]
    assert not counting.has_pending_data()


def test_after_a_flush_a_lane_is_like_a_new_one():
    counting = CountingAccumulator(2)
    counting.push_many(records(0))
    counting.flush(reset=True, lane_id=0)
    assert found(counting.push_many(records(1))) == []


def test_drop_last_drops_what_is_not_full():
    counting = CountingAccumulator(2, drop_last=True)
    assert found(counting.push_many(records(0, 1, 2))) == [[0, 1]]
    assert counting.flush() == []
    assert not counting.has_pending_data()


def test_a_group_is_not_given_for_its_age():
    counting = CountingAccumulator(2, max_latency_ms=1)
    counting.push_many(records(0))
    assert counting.push_many([]) == []
    assert counting.max_latency_ms == 1


@pytest.mark.parametrize("numbers", [(0,), (-1,), (True,), (2.0,), (None,), (2, 0), (2, 1.5)])
def test_counts_that_form_no_group_are_refused(numbers):
    with pytest.raises(PlanError, match=r"^CountingAccumulator: max_\w+ must be an integer of at"):
        CountingAccumulator(*numbers)


def test_passing_through_keeps_groups_and_holds_nothing():
    passing = PassthroughAccumulator()
    assert found(passing.push_many(records(0) + records(1, lane=1))) == [[0, 1]]
    assert passing.push_many([]) == []
    assert passing.flush(reset=True, lane_id=0) == []
    assert not passing.has_pending_data()


class Held(Accumulator):
    """Holds everything; has the two methods that must be there."""

    def __init__(self):
        self.held = []

    def push_many(self, elems):
        self.held += elems
        return []

    def flush(self, *, reset=False, lane_id=None):
        return [(self.held, 0)]


def test_what_an_accumulator_need_not_say():
    held = Held()
    assert not held.has_pending_data()
    assert held.try_epoch_reset(3, lane_id=0)
    assert held.on_source_exhausted(0, 0) == []
    assert held.reads_payload is False
    counting = CountingAccumulator(2)
    counting.push_many(records(0))
    assert not counting.try_epoch_reset(3)
    assert not counting.try_epoch_reset(3, lane_id=0)
    assert counting.try_epoch_reset(3, lane_id=1)


def test_push_and_flush_must_be_written():
    with pytest.raises(TypeError, match="abstract"):
        Accumulator()  # pyright: ignore[reportAbstractUsage]


class Written(Held):
    """Writes down what it holds."""

    def snapshot(self):
        return [each.payload for each in self.held]

    def restore(self, saved):
        self.held = list(saved)


class Quieter(Written):
    """Holds nothing besides."""

    @property
    def reads_payload(self):
        return True


class HoldsMore(Written):
    """Holds what is not written down."""

    def push_many(self, elems):
        self.more = list(elems)
        return super().push_many(elems)


class Half(Held):
    """Writes down, and cannot read."""

    def snapshot(self):
        return None


@pytest.mark.parametrize(
    ("kind", "written"),
    [(Held, False), (Written, True), (Quieter, True), (HoldsMore, False), (Half, False)],
)
def test_a_snapshot_counts_where_it_covers_all_that_is_held(kind, written):
    assert writes_itself_down(kind()) is written
    assert not writes_itself_down(object())
    assert not writes_itself_down(CountingAccumulator(2))
    assert not writes_itself_down(PassthroughAccumulator())
