"""Iterating over a pipeline: beginnings, ends, changes on the way, and states between items."""

import copy
import itertools
import threading
import time

import pytest

from tests.properties.recipes import packed, rows, rows_of, source, two_datasets
from zephon import Pipeline, SampleRecord
from zephon.errors import ExecutionError
from zephon.exec.gathering import Gathering

WRAP = {"algorithm": "wrap"}


def lists():
    return Pipeline(source(two_datasets()))


def test_without_batch_records_come_one_by_one():
    records = list(lists().options(runner="inline"))
    assert all(isinstance(record, SampleRecord) for record in records)
    assert [list(record.payload) for record in records[:3]] == [["input_ids"]] * 3
    packed_records = list(lists().pack_flat(33, **WRAP).options(runner="inline"))
    batches = list(lists().pack_flat(33, **WRAP).batch(1).options(runner="inline"))
    assert packed_records == [record for batch in batches for record in batch.records]
    assert all(len(record.payload["input_ids"]) == 33 for record in packed_records)


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_each_iteration_begins_anew(runner):
    pipe = packed(runner=runner)
    wanted = rows(pipe)
    for stop in (1, 3, 40):
        found = []
        for batch in pipe:
            found += rows_of(batch)
            if len(found) >= stop:
                break
        assert found == wanted[: len(found)]
    assert rows(pipe) == wanted


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_a_second_iterator_is_refused_and_the_first_goes_on(runner):
    pipe = packed(runner=runner)
    wanted = rows(packed())
    first, second = iter(pipe), iter(pipe)
    found = rows_of(next(first))
    with pytest.raises(RuntimeError, match="Pipeline is already being iterated"):
        next(second)
    with pytest.raises(ExecutionError, match="close the first iterator, or build a second"):
        next(iter(pipe))
    for batch in first:
        found += rows_of(batch)
    assert found == wanted
    assert rows(pipe) == wanted


def test_two_pipelines_run_side_by_side():
    one, two = iter(packed(runner="threads")), iter(packed(runner="threads"))
    for left, right in itertools.islice(zip(one, two, strict=True), 30):
        assert rows_of(left) == rows_of(right)


def test_a_closed_iterator_is_at_its_end_and_the_next_one_begins_anew():
    pipe = packed(runner="threads")
    items = iter(pipe)
    first = rows_of(next(items))
    items.close()
    assert next(items, None) is None
    assert rows_of(next(iter(pipe))) == first


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("change", ["prefetch", "restore", "fetch_parallelism"])
def test_a_changed_graph_ends_what_is_running(runner, change):
    """A loop that goes on with an old plan, or ends as if the data did, trains on wrong data."""
    pipe = packed(runner=runner)
    state = pipe.checkpoint()
    items = iter(pipe)
    next(items)
    {
        "prefetch": pipe.prefetch,
        "restore": lambda: pipe.restore(state),
        "fetch_parallelism": lambda: pipe.fetch_parallelism(2),
    }[change]()
    assert [t.name for t in threading.enumerate() if t.name.startswith("zephon-pump")] == []
    with pytest.raises(ExecutionError):
        next(items)
    assert rows(pipe) == rows(packed())


def test_a_run_that_is_stopped_while_it_makes_a_batch_says_only_that(monkeypatch):
    """Whatever it stumbles over then: its parts are taken away under it."""
    pipe, inside = packed(runner="inline"), threading.Event()

    def stumble(gathering, groups):
        inside.set()
        while not pipe._running._stopped:
            time.sleep(0.001)
        return {}[0]

    def change():
        inside.wait(30)
        pipe._running.stop()

    monkeypatch.setattr(Gathering, "together", stumble)
    other = threading.Thread(target=change)
    other.start()
    with pytest.raises(ExecutionError, match="changed or restored while it was being iterated"):
        next(iter(pipe))
    other.join()
    monkeypatch.undo()
    assert rows(pipe) == rows(packed())


def test_the_options_of_a_copy_are_its_own():
    pipe = packed(global_batch_size=4, microbatch=1)
    ranks = [copy.copy(pipe).options(dp_degree=2, dp_group_id=group) for group in range(2)]
    ones = [rows(rank, 2) for rank in ranks]
    assert ones[0] + ones[1] == rows(pipe, 4)


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("change", ["restore", "prefetch"])
def test_an_iterator_of_before_takes_nothing_from_what_follows(change, others):
    """Asked for its first item late, it must neither run nor use up the restored position."""
    pipe = packed()
    wanted = rows(pipe)
    items = iter(pipe)
    for _ in range(5):
        next(items)
    state = pipe.checkpoint()
    items.close()
    stale = [iter(pipe) for _ in range(1 + others)]
    if change == "restore":
        pipe.restore(state)
    else:
        pipe.restore(state).prefetch()
    for each in stale:
        with pytest.raises(ExecutionError, match="changed or restored after this iterator"):
            next(each)
    assert rows(pipe) == wanted[10:]


def test_a_call_after_a_run_changes_the_next_run():
    pipe = lists().pack_flat(33, **WRAP).options(runner="inline")
    records = list(pipe)
    batches = list(pipe.batch(2, drop_last=False))
    assert [record for batch in batches for record in batch.records] == records


@pytest.mark.parametrize("size", [1, 2, 7, 500])
@pytest.mark.parametrize("lanes", [1, 3])
def test_drop_last_decides_what_becomes_of_short_batches(size, lanes):
    records = list(lists().pack_flat(33, **WRAP).options(runner="inline", canonical_replicas=lanes))
    of_lane = [[r for r in records if r.meta.lane_id == lane] for lane in range(lanes)]

    def batches(drop_last):
        pipe = lists().pack_flat(33, **WRAP).batch(size, drop_last=drop_last)
        return list(pipe.options(runner="inline", canonical_replicas=lanes))

    for lane, wanted in enumerate(of_lane):
        whole = len(wanted) // size * size
        kept = [b for b in batches(False) if b.lane_ids[0] == lane]
        assert [r for b in kept for r in b.records] == wanted
        assert [len(b) for b in kept] == [size] * (whole // size) + [len(wanted) - whole] * (
            whole < len(wanted)
        )
        dropped = [b for b in batches(True) if b.lane_ids[0] == lane]
        assert [r for b in dropped for r in b.records] == wanted[:whole]
        assert all(len(b) == size for b in dropped)


def test_a_checkpoint_before_the_first_item_is_the_beginning():
    pipe = packed()
    state = pipe.checkpoint()
    assert rows(packed().restore(state)) == rows(pipe)


def test_a_restored_pipeline_that_has_not_begun_gives_its_state_back():
    pipe = packed()
    items = iter(pipe)
    for _ in range(5):
        next(items)
    state, data = pipe.checkpoint(), pipe.checkpoint(as_bytes=True)
    items.close()
    other = packed().restore(data)
    assert other.checkpoint() == state
    assert other.checkpoint(as_bytes=True) == data


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_a_checkpoint_of_an_iterator_that_has_not_begun(runner):
    """A trainer makes its iterator, and saves before its first step."""
    pipe = packed(runner=runner)
    items = iter(pipe)
    for _ in range(5):
        next(items)
    state = pipe.checkpoint()
    items.close()
    again = packed(runner=runner).restore(state)
    items = iter(again)
    assert again.checkpoint() == state
    rest = [row for batch in items for row in rows_of(batch)]
    assert rest == rows(packed())[10:]


def test_a_restored_position_is_used_once():
    pipe = packed()
    wanted = rows(pipe)
    items = iter(pipe)
    for _ in range(5):
        next(items)
    pipe.restore(pipe.checkpoint())
    items.close()
    assert rows(pipe) == wanted[10:]
    assert rows(pipe) == wanted


def test_a_restore_that_is_refused_may_be_tried_again_with_what_fits():
    pipe = packed(canonical_replicas=2)
    items = iter(pipe)
    for _ in range(5):
        next(items)
    state = pipe.checkpoint()
    items.close()
    other = packed(canonical_replicas=3).restore(state)
    with pytest.raises(RuntimeError, match="canonical_replicas=2, options say 3"):
        iter(other)
    other.options(canonical_replicas=2)
    assert rows(other) == rows(packed(canonical_replicas=2))[10:]


CALLS = []


def noted(row):
    CALLS.append(len(row["input_ids"]))
    return {**row, "input_ids": row["input_ids"][:9]}


def test_what_is_held_when_functions_change_is_made_again_once():
    """By the account, by an iterator that is made, or by the first batch."""

    def make(function):
        pipe = lists().map_transform(function).shuffle(40).pack_flat(33, **WRAP)
        return pipe.batch(2).options(runner="inline", prefetch_batches=0)

    before = make(lambda row: {**row, "input_ids": row["input_ids"][:5]})
    rows(before, 3)
    state = before.checkpoint()

    def run(count):
        pipe = make(noted).restore(state, allow="functions")
        CALLS.clear()
        counted = [pipe.accounting() for _ in range(count)]
        items = iter(pipe)
        if count:
            assert pipe.accounting() == counted[0] == counted[-1]
        found = [row for batch in items for row in rows_of(batch)]
        return found, sorted(CALLS), pipe

    wanted, calls, _ = run(0)
    assert len(calls) > 40
    for count in (1, 2):
        found, called, pipe = run(count)
        assert (found, called) == (wanted, calls)
        assert rows(pipe) != found  # the next begins anew
    pipe = make(noted).restore(state, allow="functions")
    pipe.accounting()
    assert rows(copy.deepcopy(pipe)) == rows(pipe.options(memory_budget="64mb")) == wanted
