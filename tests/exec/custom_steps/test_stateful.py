"""Functions with a state in each lane: when they are called, with what, and what is refused."""

import pytest

from tests.ops.records import offsets, record, records
from zephon.errors import ExecutionError
from zephon.exec.custom_steps import OpServices, custom_step
from zephon.ops.arguments import stateful
from zephon.planner.logical import Stateful
from zephon.types import SampleRecord


def push_all(state, elems):
    return [*state, *elems], []


def through(state, elems):
    return state, elems


def step_of(**changes):
    fields = stateful("s", **{"init_state": list, "push": through, **changes})
    return custom_step(Stateful(**fields), OpServices())


def run(step, *groups):
    state = step.make_state(0)
    left = []
    for group in groups:
        state, made = step.push(state, records(*group))
        left.append(offsets(made))
    return [*left, offsets(step.finish(state))]


def test_a_state_is_handed_on_and_flushed_at_the_end():
    assert run(step_of(push=push_all, flush=list), [0, 1], [2]) == [[], [], [0, 1, 2]]


def test_without_flush_nothing_comes_at_the_end():
    assert run(step_of(), [0, 1], [2]) == [[0, 1], [2], []]


def test_each_state_is_made_anew():
    step = step_of(push=push_all, flush=list)
    assert run(step, [0]) == run(step, [0]) == [[], [0]]


def test_a_full_state_is_flushed_and_begun_anew():
    begun = []

    def begin():
        begun.append(1)
        return []

    step = step_of(
        init_state=begin, push=push_all, flush=list, should_flush=lambda state: len(state) >= 3
    )
    assert run(step, [0, 1], [2, 3], [4]) == [[], [0, 1, 2, 3], [], [4]]
    assert len(begun) == 2


def test_should_flush_without_flush_begins_anew():
    def count(state, elems):
        state += elems
        return state, elems[:1] if len(state) == len(elems) else []

    step = step_of(push=count, should_flush=lambda state: len(state) == 2)
    assert run(step, [0], [1], [2]) == [[0], [], [2], []]


def test_transform_gets_the_groups_that_push_and_flush_gave():
    seen = []

    def transform(group):
        seen.append(offsets(group))
        return [SampleRecord(each.meta, {"changed": each.payload["n"]}) for each in group]

    def push(state, elems):
        return [elems[-1]], [*state, *elems[:-1]]

    step = step_of(
        push=push,
        flush=list,
        transform=transform,
        should_flush=lambda s: s[0].meta.chunk_offset == 4,
    )
    state = step.make_state(0)
    state, first = step.push(state, records(0, 1))
    state, second = step.push(state, records(2, 3, 4))
    assert [each.payload for each in first] == [{"changed": 0}]
    assert offsets(second) == [1, 2, 3, 4]
    assert seen == [[0], [1, 2, 3], [4]]


def test_an_empty_group_calls_nothing():
    step = step_of(push=lambda state, elems: 1 / 0)
    state = step.make_state(0)
    assert step.push(state, []) == (state, [])


@pytest.mark.parametrize("name", ["push", "flush", "should_flush", "transform", "init_state"])
def test_what_a_function_raises_is_told_with_its_cause(name):
    def fail(*given):
        raise ValueError("boom")

    step = step_of(**{name: fail})
    where = (
        "on lane 0" if name in ("flush", "init_state") else r".* on sample \(0, 0, 5\) of lane 0"
    )
    message = f"^stateful_transform 's': {name} raised ValueError: boom,? ?{where}; mend"
    with pytest.raises(ExecutionError, match=message) as caught:
        state, _ = step.push(step.make_state(0), [record(5)])
        step.finish(state)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"push": lambda s, elems: elems[:1]},
            r"push must return \(state, records\), got \[Sample",
        ),
        (
            {"push": lambda s, elems: (s, None)},
            r"push must return a list of SampleRecord, got a No",
        ),
        (
            {"flush": lambda s: [1]},
            r"flush must return a list of SampleRecord, got a int as item 0",
        ),
        ({"transform": lambda group: group[0]}, r"transform must return a list .* a SampleRecord"),
        ({"transform": lambda group: records(9)}, r"records must be made of those that went in"),
    ],
)
def test_what_functions_must_not_give_is_refused(changes, message):
    step = step_of(**changes)
    with pytest.raises(ExecutionError, match=f"^stateful_transform 's': {message}"):
        state, _ = step.push(step.make_state(0), records(5, 6))
        step.finish(state)


def test_a_state_that_is_written_down_goes_on_where_it_was():
    def push(state, elems):
        state["seen"] += len(elems)
        return state, [SampleRecord(each.meta, state["seen"]) for each in elems]

    step = step_of(init_state=lambda: {"seen": 0}, push=push, snapshot=dict, restore=dict)
    assert step.snapshots
    assert not step_of().snapshots
    state, _ = step.push(step.make_state(0), records(0, 1))
    saved = step.snapshot(state)
    assert saved == {"state": {"seen": 2}, "latest": [0, 1]}
    for again in (state, step.restore(0, saved), step.restore(0, saved)):
        _, (made,) = step.push(again, records(2))
        assert made.payload == 3
    assert saved == {"state": {"seen": 2}, "latest": [0, 1]}


def test_a_snapshot_that_is_no_json_is_refused():
    step = step_of(init_state=set, snapshot=lambda state: [state], restore=list)
    message = r"^stateful_transform 's': snapshot must return JSON values .*, got a set; convert it"
    with pytest.raises(ExecutionError, match=message):
        step.snapshot(step.make_state(0))


def test_records_must_leave_in_the_order_in_which_they_came():
    """That of arrival: behind a shuffle places mean nothing."""

    def backwards(state, elems):
        return state, elems[::-1]

    with pytest.raises(ExecutionError, match=r"'s'.* pass preserves_cursor_order=False"):
        run(step_of(push=backwards), [0, 1])
    free = step_of(push=backwards, flush=list, preserves_cursor_order=False)
    assert run(free, [0, 1]) == [[1, 0], []]
    assert run(step_of(), [5, 1, 3]) == [[5, 1, 3], []]
