"""Draws to workers: every draw once and in order, memory bounded, errors in their place."""

import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import LAYOUT, Numbered, chain_of, lane_of, segment_of, where
from tests.exec.test_segment import Refuses
from zephon.errors import DataError
from zephon.exec.operator import Operator
from zephon.exec.runners import InlineRunner, ThreadsRunner
from zephon.exec.segment import Segment
from zephon.exec.supply import Supply

PLENTY = 1 << 40  # bytes that a lane may have waiting, where only the budget matters


def lanes_of(lengths, sizes, max_length=None):
    return [
        lane_of(lengths[:size], chain_of(max_length), lane=lane) for lane, size in enumerate(sizes)
    ]


def drain(supply, run):
    """Pull one lane to its end; give the rows of the documents in the order of their coming."""
    while not run.ended:
        supply.pull(run)
    return run.held.known(np.arange(run.held.next_seq)).refs.row.tolist()


LENGTHS = [int(n) for n in np.random.default_rng(3).integers(0, 30, 200)]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 120), min_size=1, max_size=5),
    budget=st.integers(1, 20_000),
    task=st.integers(1, 5_000),
    row=st.sampled_from([0.1, 1.0, 60.0, 1e6]),
    workers=st.integers(0, 3),
    ahead=st.sampled_from([1, 3000, PLENTY]),
    order=st.randoms(use_true_random=False),
)
def test_every_lane_gets_its_draws_once_and_in_order(
    sizes, budget, task, row, workers, ahead, order
):
    runs = lanes_of(LENGTHS, sizes)
    runner = ThreadsRunner(workers) if workers else InlineRunner()
    with closing(runner):
        supply = Supply(
            runner,
            segment_of(LENGTHS),
            runs,
            row_bytes=row,
            lane_bytes=ahead,
            budget=budget,
            task_bytes=task,
        )
        waiting = list(runs)
        while waiting:
            run = order.choice(waiting)
            supply.pull(run)
            if run.ended:
                waiting.remove(run)
    for run, size in zip(runs, sizes, strict=True):
        assert run.held.known(np.arange(run.held.next_seq)).refs.row.tolist() == list(range(size))
        assert run.rows_placed == size
        assert run.tokens_placed == sum(LENGTHS[:size])


def test_a_lane_without_draws_ends_at_once():
    (run,) = lanes_of(LENGTHS, [0])
    supply = Supply(
        InlineRunner(), segment_of(LENGTHS), [run], row_bytes=10, lane_bytes=PLENTY, budget=1000
    )
    supply.pull(run)
    assert run.ended


def test_nothing_runs_ahead_without_workers():
    runs = lanes_of([1] * 100, [100, 100])
    supply = Supply(
        InlineRunner(),
        segment_of([1] * 100),
        runs,
        row_bytes=10,
        lane_bytes=PLENTY,
        budget=10**6,
        task_bytes=50,
    )
    supply.refill()
    assert [run.intakes[0].next_draw for run in runs] == [0, 0]
    supply.pull(runs[1])
    assert runs[1].intakes[0].next_draw <= 5
    assert sum(run.intakes[0].next_draw for run in runs) <= 10


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("budget", [400, 4_000, 40_000])
def test_rows_in_flight_stay_within_the_budget(workers, budget):
    """Rows of 100 tokens, 400 bytes: what was asked for and not taken is never more."""
    lengths = [100] * 2000
    runs = lanes_of(lengths, [2000, 2000, 2000])
    task = min(3 << 20, budget // 4)
    with closing(ThreadsRunner(workers)) as runner:
        supply = Supply(
            runner, segment_of(lengths), runs, row_bytes=400, lane_bytes=PLENTY, budget=budget
        )
        for _ in range(60):
            for run in runs:
                supply.pull(run)
                out = sum(400 * (each.intakes[0].next_draw - each.rows_taken) for each in runs)
                assert out <= budget + len(runs) * max(400, task)
                run.take(run.rows_placed - run.rows_taken)
            supply.refill()
            out = sum(400 * (each.intakes[0].next_draw - each.rows_taken) for each in runs)
            assert out <= max(budget, 400 * len(runs))


def test_workers_are_kept_busy_while_memory_allows():
    lengths = [10] * 5000
    runs = lanes_of(lengths, [5000])
    gate, started = threading.Event(), threading.Semaphore(0)

    class Waits(Operator):
        label = "wait"

        def run(self, rows):
            started.release()
            assert gate.wait(30)
            return rows

    segment = Segment([[Numbered(lengths), Waits()]], LAYOUT, where)
    with closing(ThreadsRunner(2)) as runner:
        supply = Supply(
            runner, segment, runs, row_bytes=40, lane_bytes=PLENTY, budget=10**6, task_bytes=1000
        )
        supply.refill()
        assert started.acquire(timeout=30)
        assert started.acquire(timeout=30)
        gate.set()
        assert drain(supply, runs[0]) == list(range(5000))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_limit_bounds_what_is_read_ahead_and_nothing_else(workers):
    lengths = [10] * 500
    runs = lanes_of(lengths, [500, 500])
    with closing(ThreadsRunner(workers) if workers else InlineRunner()) as runner:
        supply = Supply(
            runner, segment_of(lengths), runs, row_bytes=40, lane_bytes=PLENTY, budget=10**6,
            limit=20,
        )  # fmt: skip
        supply.pull(runs[0])
        assert max(run.intakes[0].next_draw for run in runs) == 20
        assert drain(supply, runs[0]) == list(range(500))


def test_a_hungry_lane_gets_a_task_whatever_the_budget_says():
    lengths = [100] * 50
    runs = lanes_of(lengths, [50, 50])
    with closing(ThreadsRunner(1)) as runner:
        supply = Supply(
            runner, segment_of(lengths), runs, row_bytes=400, lane_bytes=PLENTY, budget=1
        )
        assert drain(supply, runs[0]) == list(range(50))
        assert drain(supply, runs[1]) == list(range(50))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("bad", [0, 1, 37, 119])
def test_an_error_comes_after_the_rows_before_it_and_comes_again(workers, bad):
    runs = lanes_of(LENGTHS, [120, 120])
    segment = segment_of(LENGTHS, Refuses({(0, bad)}, DataError))
    with closing(ThreadsRunner(workers) if workers else InlineRunner()) as runner:
        supply = Supply(runner, segment, runs, row_bytes=50, lane_bytes=PLENTY, budget=8000)
        for _ in range(2):
            with pytest.raises(DataError, match=rf"bad rows \[\(0, {bad}\)\]"):
                drain(supply, runs[0])
            assert runs[0].rows_placed == bad
            assert not runs[0].ended
        assert drain(supply, runs[1]) == list(range(120))


def test_tasks_begin_small_and_grow():
    lengths = [100] * 40_000
    sizes = []

    class Counts(Operator):
        label = "count"

        def run(self, rows):
            sizes.append(400 * len(rows.refs))
            return rows

    runs = lanes_of(lengths, [40_000])
    segment = Segment([[Numbered(lengths), Counts()]], LAYOUT, where)
    supply = Supply(InlineRunner(), segment, runs, row_bytes=400, lane_bytes=PLENTY, budget=1 << 30)
    drain(supply, runs[0])
    assert sizes[0] <= 128 << 10
    assert max(sizes) <= 3 << 20
    assert sizes[:3] == sorted(sizes[:3])
    assert max(sizes) > 2 << 20


def test_a_wrong_guess_of_the_size_of_rows_is_corrected():
    """Compressed data: rows look like 40 bytes and hold 4,000; only the first task is too big."""
    lengths = [1000] * 8000
    sizes = []

    class Counts(Operator):
        label = "count"

        def run(self, rows):
            sizes.append(4000 * len(rows.refs))
            return rows

    runs = lanes_of(lengths, [8000])
    segment = Segment([[Numbered(lengths), Counts()]], LAYOUT, where)
    budget = 4 << 20
    supply = Supply(InlineRunner(), segment, runs, row_bytes=40.0, lane_bytes=PLENTY, budget=budget)
    drain(supply, runs[0])
    assert len(sizes) > 10
    assert max(sizes[1:]) <= budget // 4


def test_many_lanes_share_a_task():
    """A task a lane would be 64 tiny tasks; one lane a task would be 64 waits."""
    lengths = [50] * 30
    tasks = []

    class Counts(Operator):
        label = "count"

        def run(self, rows):
            tasks.append(len(set(rows.refs.lane.tolist())))
            return rows

    runs = lanes_of(lengths, [30] * 16)
    segment = Segment([[Numbered(lengths), Counts()]], LAYOUT, where)
    supply = Supply(
        InlineRunner(),
        segment,
        runs,
        row_bytes=200,
        lane_bytes=PLENTY,
        budget=1 << 26,
        task_bytes=1 << 20,
    )
    for run in runs:
        assert drain(supply, run) == list(range(30))
    assert max(tasks) > 1
    assert all(count >= 1 for count in tasks)


@pytest.mark.parametrize("ahead", [4_000, 40_000])
def test_a_lane_runs_ahead_by_its_own_share_and_no_further(ahead):
    """Memory that the budget would allow is not filled where a lane has enough."""
    lengths = [100] * 5000
    runs = lanes_of(lengths, [5000, 5000])
    task = 2_000
    with closing(ThreadsRunner(2)) as runner:
        supply = Supply(
            runner,
            segment_of(lengths),
            runs,
            row_bytes=400,
            lane_bytes=ahead,
            budget=1 << 30,
            task_bytes=task,
        )
        for _ in range(50):
            for run in runs:
                supply.pull(run)
                run.take(run.rows_placed - run.rows_taken)
            supply.refill()
            for run in runs:
                assert 400 * (run.intakes[0].next_draw - run.rows_taken) <= ahead + 2 * task
