"""Runners: results and errors of tasks, cancelling, closing, one shared pool, and forks."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from tests.properties.recipes import packed, rows
from tests.threads_inside import counting
from zephon.exec.runners import InlineRunner, ThreadsRunner, threads, usable_cores
from zephon.exec.runners.threads import MOST_THREADS, THREAD_NAME

GUARD = 30  # seconds after which a test that hangs fails


def pool_threads():
    return [t for t in threading.enumerate() if t.name.startswith(THREAD_NAME)]


def until(condition):
    deadline = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert pool_threads() == []


@pytest.fixture(params=["inline", 1, 2, 5])
def runner(request):
    made = InlineRunner() if request.param == "inline" else ThreadsRunner(request.param)
    with closing(made):
        yield made


def test_each_handle_waits_for_its_own_task(runner):
    handles = [runner.submit(lambda i=i: i * i) for i in range(100)]
    assert [handle.result() for handle in reversed(handles)] == [
        i * i for i in reversed(range(100))
    ]
    assert all(handle.done() for handle in handles)
    assert handles[3].result() == 9


def test_a_task_runs_once_however_often_its_result_is_asked_for(runner):
    ran = []
    handle = runner.submit(lambda: ran.append(1))
    handle.result()
    handle.result()
    assert ran == [1]


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt])
def test_an_error_reaches_who_waits_and_nobody_else(runner, error):
    def fail():
        raise error("here")

    before, bad, after = runner.submit(lambda: 1), runner.submit(fail), runner.submit(lambda: 2)
    assert (after.result(), before.result()) == (2, 1)
    with pytest.raises(error, match="here"):
        bad.result()


def test_inline_runs_on_the_callers_thread_when_asked():
    runner = InlineRunner()
    ran = []
    handle = runner.submit(lambda: ran.append(threading.current_thread()))
    assert ran == []
    handle.result()
    assert ran == [threading.current_thread()]
    assert (runner.lookahead, runner.workers) == (False, 1)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_at_most_so_many_tasks_run_at_once(workers):
    task, most = counting(seconds=0.002)
    with closing(ThreadsRunner(workers)) as runner:
        for handle in [runner.submit(partial(task, row)) for row in range(40)]:
            handle.result()
    assert 1 <= most() <= workers
    assert most() == workers or usable_cores() < workers


def test_one_runner_cannot_crowd_out_another():
    gate = threading.Event()
    with closing(ThreadsRunner(1)) as greedy, closing(ThreadsRunner(1)) as other:
        held = [greedy.submit(lambda: gate.wait(GUARD)) for _ in range(50)]
        assert other.submit(lambda: "through").result() == "through"
        gate.set()
        assert all(handle.result() for handle in held)


def test_closing_cancels_what_waits_and_waits_for_what_runs():
    started, gate, ended = threading.Event(), threading.Event(), []

    def long():
        started.set()
        gate.wait(GUARD)
        ended.append(True)
        return "done"

    runner = ThreadsRunner(1)
    running = runner.submit(long)
    waiting = [runner.submit(lambda: ended.append("late")) for _ in range(5)]
    assert started.wait(GUARD)
    threading.Timer(0.05, gate.set).start()
    runner.close()
    assert ended == [True]
    assert running.result() == "done"
    for handle in waiting:
        with pytest.raises(CancelledError):
            handle.result()
    runner.close()


def test_closing_from_one_of_its_own_tasks_does_not_wait_for_itself():
    runner = ThreadsRunner(2)
    handle = runner.submit(runner.close)
    assert handle.result(GUARD) is None
    until(lambda: not pool_threads())


def test_after_close_tasks_are_cancelled_not_lost():
    runner = ThreadsRunner(1)
    runner.close()
    with pytest.raises(CancelledError):
        runner.submit(lambda: 1).result(GUARD)


def test_the_pool_is_shared_and_ends_with_the_last_runner():
    runners = [ThreadsRunner(2) for _ in range(30)]
    for runner in runners:
        runner.submit(lambda: 1).result()
    assert 1 <= len(pool_threads()) <= max(2, min(usable_cores(), MOST_THREADS))
    for runner in runners[:-1]:
        runner.close()
    assert runners[-1].submit(lambda: 2).result() == 2
    assert pool_threads()
    runners[-1].close()
    assert pool_threads() == []
    with closing(ThreadsRunner(1)) as again:
        assert again.submit(lambda: 3).result() == 3


def test_a_runner_without_tasks_starts_no_thread():
    with closing(ThreadsRunner(4)):
        assert pool_threads() == []


def test_many_pipelines_share_one_pool():
    """Fifty components must not mean fifty pools."""
    pipes = [packed(runner="threads", prefetch_batches=2) for _ in range(8)]
    items = [iter(pipe) for pipe in pipes]
    for each in items:
        next(each)
    assert len(pool_threads()) <= max(2, min(usable_cores(), MOST_THREADS))
    for each in items:
        each.close()


# Forks


def in_child(work):
    """Run ``work`` in a forked child; give its exit code, or fail after the guard."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    deadline = time.monotonic() + GUARD / 3
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_a_pool_of_its_own():
    wanted = rows(packed())
    pipe = packed(runner="threads")
    items = iter(pipe)
    next(items)
    assert pool_threads()
    assert in_child(lambda: int(rows(packed(runner="threads")) != wanted)) == 0
    assert len(list(items)) + 1 == len(wanted) // 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_begins_the_parents_pipeline_anew():
    pipe = packed(runner="threads")
    wanted = rows(pipe)
    assert in_child(lambda: int(rows(pipe) != wanted)) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_goes_on_with_the_parents_iterator_is_told_so():
    """The threads that fill it are not in the child: waiting for them would be for ever."""
    pipe = packed(runner="threads", prefetch_batches=1)
    items = iter(pipe)
    next(items)

    def work():
        try:
            for _ in range(5):
                next(items)
        except RuntimeError:
            return 7
        return 8

    with closing(items):
        assert in_child(work) == 7
        assert next(items)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("lock", ["queue", "runner", "pool", "engine"])
def test_a_fork_while_another_thread_holds_a_lock_is_told_so_too(lock):
    """In the child nobody will ever give the lock back."""
    pipe = packed(runner="threads", prefetch_batches=1)
    with closing(iter(pipe)) as items:
        next(items)
        engine = pipe._engine
        held = {
            "queue": engine._ahead._changed,
            "runner": engine._runner._lock,
            "pool": threads._POOL._lock,
            "engine": engine._lock,
        }[lock]
        taken, over = threading.Event(), threading.Event()

        def hold():
            with held:
                taken.set()
                over.wait(GUARD)

        holder = threading.Thread(target=hold)
        holder.start()
        assert taken.wait(GUARD)

        def work():
            try:
                next(items)
            except RuntimeError:
                return 7
            return 8

        try:
            assert in_child(work) == 7
        finally:
            over.set()
            holder.join()


def test_a_fork_before_the_first_thread_works():
    script = (
        "import os\n"
        "from tests.properties.recipes import packed, rows\n"
        "wanted = rows(packed())\n"
        "child = os.fork()\n"
        "code = int(rows(packed(runner='threads')) != wanted)\n"
        "if not child: os._exit(code)\n"
        "raise SystemExit(code + os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], timeout=2 * GUARD, capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_closing_cancels_what_the_pool_was_handed_and_had_not_begun():
    """Whoever waits for such a task must wake up: the pool itself forgets it in silence."""
    go = threading.Event()
    busy, closed = ThreadsRunner(16), ThreadsRunner(4)
    try:
        for _ in range(16):
            busy.submit(lambda: go.wait(30))
        handle = closed.submit(lambda: 1)
        closed.close()
        with pytest.raises(CancelledError):
            handle.result(timeout=30)
    finally:
        go.set()
        busy.close()


def test_an_interrupt_while_a_task_is_handed_over_leaves_nothing_to_wait_for(monkeypatch):
    runner = ThreadsRunner(2)
    submit = ThreadPoolExecutor.submit

    def interrupted(pool, *arguments):
        submit(pool, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.submit(lambda: 1)
    closing = threading.Thread(target=runner.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
