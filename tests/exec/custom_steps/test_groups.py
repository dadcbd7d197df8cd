"""Operators of the user in the order of a lane: which groups they see, what may leave, errors."""

from typing import ClassVar

import pytest

from tests.ops.records import offsets, record, records
from zephon.errors import ExecutionError
from zephon.exec.custom_steps import OpServices, custom_step
from zephon.ops import (
    Accumulator,
    BaseOp,
    CountingAccumulator,
    OpTraits,
    pack_meta,
    spawn_child,
    tombstones_for_record,
)
from zephon.ops.accumulators import SourceExhaustion
from zephon.ops.arguments import custom_op
from zephon.planner.logical import CustomOp
from zephon.types import ContributorRef, SampleRecord


def step_of(op="f", **named):
    if op == "f":
        named = {"process_many": list, "preserves_cursor_order": True, **named}
    return custom_step(CustomOp(**custom_op(op, **named)), OpServices())


def run(step, *groups, lane=0):
    """Push groups of offsets; give what left by each, and at the end."""
    state = step.make_state(lane)
    left = []
    for group in groups:
        state, made = step.push(state, records(*group, lane=lane))
        left.append(offsets(made))
    return [*left, offsets(step.finish(state))]


def test_without_an_accumulator_groups_pass_as_they_come():
    seen = []

    def note(elems):
        seen.append(offsets(elems))
        return elems

    step = step_of(process_many=note)
    assert run(step, [0, 1], [2], []) == [[0, 1], [2], [], []]
    assert seen == [[0, 1], [2]]
    assert not step.snapshots


def test_an_accumulator_forms_the_groups_and_gives_the_rest_at_the_end():
    seen = []

    def note(elems):
        seen.append(offsets(elems))
        return elems

    step = step_of(process_many=note, accumulator=lambda: CountingAccumulator(3))
    assert run(step, [0, 1], [2, 3, 4, 5], [6]) == [[], [0, 1, 2, 3, 4, 5], [], [6]]
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]


def test_each_state_begins_anew():
    step = step_of(accumulator=lambda: CountingAccumulator(3))
    assert run(step, [0, 1]) == run(step, [0, 1]) == [[], [0, 1]]


def test_lanes_share_nothing():
    step = step_of(accumulator=lambda: CountingAccumulator(2))
    first, second = step.make_state(0), step.make_state(1)
    assert step.push(first, records(0))[1] == []
    assert step.push(second, records(0, lane=1))[1] == []
    assert offsets(step.finish(first)) == [0]
    assert [each.meta.lane_id for each in step.finish(second)] == [1]


def test_a_function_may_drop_split_and_merge():
    def change(elems):
        dropped, split, first, second = elems
        merged = pack_meta(
            first.meta.cursor,
            [ContributorRef(each.meta.cursor) for each in (first, second)],
            lane_id=0,
            component_sample_counts={0: 2},
        )
        return [
            *tombstones_for_record(dropped),
            SampleRecord(spawn_child(split.meta, 0), {"part": 0}),
            SampleRecord(spawn_child(split.meta, 1, is_last_child=True), {"part": 1}),
            SampleRecord(merged, {"n": [first.payload["n"], second.payload["n"]]}),
        ]

    step = step_of(process_many=change)
    _, (gone, *made) = step.push(step.make_state(0), records(0, 1, 2, 3))
    assert gone.meta.tombstone
    assert [each.payload for each in made] == [{"part": 0}, {"part": 1}, {"n": [2, 3]}]
    assert [each.meta.lineage for each in made] == [(0,), (1,), ()]


def test_what_leaves_is_made_of_what_came_since_the_beginning():
    held = records(0)
    step = step_of(process_many=lambda elems: held)
    state = step.make_state(0)
    assert step.push(state, records(0))[1] == held
    assert step.push(state, records(1))[1] == held
    message = (
        r"^add_op 'f': records must be made of those that went in, got one of sample \(0, 0, 0\) "
        r"at chunk 0, offset 0, from the records that begin on sample \(0, 0, 1\) of lane 0; keep"
    )
    with pytest.raises(ExecutionError, match=message):
        step.push(step.make_state(0), records(1))


def test_a_failing_function_is_told_with_the_first_record_and_the_cause():
    def fail(elems):
        raise ValueError("boom")

    step = step_of(process_many=fail)
    message = (
        r"^add_op 'f': process_many raised ValueError: boom, for the 2 records that begin on "
        r"sample \(0, 0, 5\) of lane 0; mend the function or the row$"
    )
    with pytest.raises(ExecutionError, match=message) as caught:
        step.push(step.make_state(0), records(5, 6))
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_is_no_record_is_refused():
    step = step_of(process_many=lambda elems: [each.payload for each in elems])
    message = r"^add_op 'f': process_many must return a list of SampleRecord, got a dict as item 0"
    with pytest.raises(ExecutionError, match=message):
        step.push(step.make_state(0), records(5))


class Broken(Accumulator):
    def __init__(self, ready=None, error=None):
        self.ready, self.error = ready, error

    def push_many(self, elems):
        if self.error is not None:
            raise self.error
        return self.ready

    def flush(self, *, reset=False, lane_id=None):
        raise RuntimeError("stuck")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"error": KeyError("x")}, r"accumulator.push_many raised KeyError: 'x', for the record o"),
        ({"ready": None}, r"accumulator.push_many must return a list of \(records, .*got None, fo"),
        ({"ready": [records(5)]}, r"accumulator.push_many must return a list of \(records, nano"),
        ({"ready": [([3], 0)]}, r"accumulator.push_many must return .*, got a int in a group, fo"),
    ],
)
def test_an_accumulator_that_fails_is_told(broken, message):
    step = step_of(accumulator=lambda: Broken(**broken))
    with pytest.raises(ExecutionError, match=f"^add_op 'f': {message}"):
        step.push(step.make_state(0), records(5))


def test_an_accumulator_that_fails_at_the_end_is_told_with_the_lane():
    step = step_of(accumulator=lambda: Broken([]))
    state, _ = step.push(step.make_state(4), records(5, lane=4))
    message = r"^add_op 'f': accumulator.flush raised RuntimeError: stuck on lane 4; mend"
    with pytest.raises(ExecutionError, match=message):
        step.finish(state)


class UntilEnd(CountingAccumulator):
    """Gives what it holds when a component ends."""

    def __init__(self):
        super().__init__(100)

    def on_source_exhausted(self, lane_id, component_id):
        return self.flush(lane_id=lane_id) if component_id == 1 else []


def test_an_accumulator_hears_that_a_component_has_ended():
    step = step_of(accumulator=UntilEnd)
    state, _ = step.push(step.make_state(0), records(5, 6))
    assert step.source_exhausted(state, 0) == []
    assert offsets(step.source_exhausted(state, 1)) == [5, 6]
    assert step.finish(state) == []
    plain = step_of()
    assert plain.source_exhausted(plain.make_state(0), 1) == []


def test_an_accumulator_may_ask_what_has_ended():
    asked = []

    def made(*, ctx):
        class Asking(CountingAccumulator):
            def flush(self, *, reset=False, lane_id=None):
                asked.append(ctx["get_source_exhaustion"](0))
                return super().flush(reset=reset, lane_id=lane_id)

        return Asking(100)

    step = step_of(accumulator=made)
    state = step.make_state(0)
    step.finish(state)
    for component in (0, 1):
        step.source_exhausted(state, component)
    step.finish(state)
    step.finish(step.make_state(0))  # the lane is gone through again
    nothing = SourceExhaustion()
    assert asked == [nothing, SourceExhaustion(frozenset({0, 1}), frozenset(), 1), nothing]


class Sorted(Accumulator):
    """Holds up to three records by offset, and gives the least of more."""

    def __init__(self):
        self.held = []

    def push_many(self, elems):
        self.held = sorted([*self.held, *elems], key=lambda each: -each.meta.chunk_offset)
        ready = self.held[3:]
        self.held = self.held[:3]
        return [(ready, 0)] if ready else []

    def flush(self, *, reset=False, lane_id=None):
        return [(self.held, 0)]

    def snapshot(self):
        return [each.meta.chunk_offset for each in self.held]

    def restore(self, saved):
        self.held = records(*saved)


def test_an_accumulator_that_writes_itself_down_goes_on_where_it_was():
    step = step_of(accumulator=Sorted, preserves_cursor_order=False)
    assert step.snapshots
    state, _ = step.push(step.make_state(0), records(4, 2, 9))
    saved = step.snapshot(state)
    assert saved == {"held": [9, 4, 2], "latest": [0, 9]}
    wanted = [offsets(step.push(state, records(3))[1]), offsets(step.finish(state))]
    again = step.restore(0, saved)
    assert [offsets(step.push(again, records(3))[1]), offsets(step.finish(again))] == wanted
    assert wanted == [[2], [9, 4, 3]]


def test_what_is_written_down_is_json_and_stays_as_it_was():
    class Odd(Sorted):
        def snapshot(self):
            return {1: "one"}

        def restore(self, saved):
            pass

    step = step_of(accumulator=Odd)
    message = (
        r"^add_op 'f': snapshot must return JSON values \(.*\), got a dict with the key 1; con"
    )
    with pytest.raises(ExecutionError, match=message):
        step.snapshot(step.make_state(0))
    step = step_of(accumulator=Sorted)
    state, _ = step.push(step.make_state(0), records(4))
    saved = step.snapshot(state)
    step.push(state, records(9))
    assert saved == {"held": [4], "latest": [0, 4]}


class Numbering(BaseOp):
    """Remembers by itself how many records it has seen; notes its end."""

    ended: ClassVar[list] = []

    def __init__(self):
        super().__init__()
        self.seen = 0

    def traits(self):
        return OpTraits(preserves_cursor_order=True, requires_serial_state=True)

    def teardown(self):
        self.ended.append(self.seen)

    def process_many(self, elems):
        for each in elems:
            each.payload["number"] = self.seen
            self.seen += 1
        return elems


def test_what_remembers_by_itself_begins_anew_with_each_state():
    Numbering.ended.clear()
    op = Numbering()
    step = step_of(op)
    first, second = step.make_state(0), step.make_state(1)
    step.push(first, [record(0), record(1)])
    _, (later,) = step.push(first, [record(2)])
    _, (other,) = step.push(second, [record(0, lane=1)])
    assert (later.payload["number"], other.payload["number"]) == (2, 0)
    assert not step.snapshots
    step.finish(first)
    assert Numbering.ended == [3]
    third = step.make_state(0)
    step.discard(third)
    assert Numbering.ended == [3, 0]
    step.close()
    assert Numbering.ended == [3, 0, 1]
    assert op.seen == 0
