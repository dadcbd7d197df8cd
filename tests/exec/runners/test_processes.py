"""Worker processes: answers, errors, deaths, and ends that leave nothing behind."""

import gc
import os
import re
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.cells import cell
from zephon.errors import ExecutionError, TokenizerError
from zephon.exec.runners import ProcessesRunner, WorkerPool, worker_process_ids

GUARD = 60  # seconds after which a test that hangs fails


def calls():
    """Make what answers a task that is a function and its arguments."""
    return lambda task: task[0](*task[1:])


def nowhere():
    return "row 3"


def gone(process_ids):
    """Wait until no process has these ids; a zombie is there for who has not waited for it."""
    end = time.monotonic() + GUARD
    while any(Path(f"/proc/{each}").exists() for each in process_ids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def workers(factory=calls, count=1, retries=3):
    pool = WorkerPool(factory, count, retries)
    try:
        yield pool
    finally:
        left = pool.process_ids()
        pool.close()
        assert gone(left)


@pytest.fixture(scope="module")
def pool():
    """Give a pool of one worker that tests share; none may end its worker."""
    with workers() as made:
        yield made
        assert len(made.process_ids()) == 1


def test_tasks_are_answered_in_another_process(pool):
    first = pool.ask((os.getpid,), nowhere)
    assert first != os.getpid()
    assert pool.process_ids() == [first]
    assert first in worker_process_ids()
    assert pool.ask((os.getpid,), nowhere) == first


def test_what_a_task_raises_is_raised_here(pool):
    def fails(text):
        raise TokenizerError(text)

    with pytest.raises(TokenizerError, match=r"^no good$"):
        pool.ask((fails, "no good"), nowhere)
    with pytest.raises(SystemExit, match="4"):
        pool.ask((sys.exit, 4), nowhere)


def test_what_a_function_raises_shows_where_it_stands(pool):
    """That of a notebook stands in no file; only this process has its lines."""
    here, there = cell("def f(row):\n    return [row[n] for n in 'a']\n", "f"), lambda row: row["a"]
    for function, line in ((here, "[row[n] for n in 'a']"), (there, 'lambda row: row["a"]')):
        with pytest.raises(KeyError) as caught:
            pool.ask((function, {}), nowhere)
        file = function.__code__.co_filename
        *_, frame = "".join(caught.value.__notes__).split("  File ")
        assert frame.startswith(f'"{file}", line ')
        assert line in frame


def test_what_cannot_be_sent_back_is_an_error_of_its_task(pool):
    with pytest.raises(TypeError, match="pickle"):
        pool.ask((threading.Lock,), nowhere)
    assert pool.ask((abs, -3), nowhere) == 3


class Unmade:
    """Can be written down anywhere, and be made again nowhere else."""

    def __reduce__(self):
        return _made_only_in, (os.getpid(),)


def _made_only_in(process):
    if os.getpid() != process:
        raise AttributeError("this process\nlacks it")
    return Unmade()


def test_what_cannot_be_made_again_here_is_an_error_with_its_place(pool):
    message = (
        r"^options: runner='process' needs rows and warnings .*, on row 3 got AttributeError: this "
        r"process lacks it; keep objects out of rows .* or use runner='threads'$"
    )
    with pytest.raises(ExecutionError, match=message) as caught:
        pool.ask((Unmade,), nowhere)
    assert isinstance(caught.value.__cause__, AttributeError)
    assert pool.ask((abs, -3), nowhere) == 3


def test_a_warning_that_cannot_be_made_again_is_an_error_with_its_place():
    def warns():
        import warnings

        class Odd(UserWarning):
            pass

        Odd.__module__, Odd.__qualname__ = "no_such_module_here", "Odd"
        sys.modules["no_such_module_here"] = type("Module", (), {"Odd": Odd})
        warnings.warn("careful", Odd, stacklevel=1)

    with workers() as own:
        with pytest.raises(ExecutionError, match=r"on row 3 got ModuleNotFoundError: No module"):
            own.ask((warns,), nowhere)
        assert own.ask((abs, -3), nowhere) == 3


def test_large_values_go_both_ways(pool):
    numbers = np.arange(300_000)
    assert (pool.ask((lambda n: n * 2, numbers), nowhere) == numbers * 2).all()


def test_a_warning_is_shown_here_once(pool):
    def warns(text):
        import warnings

        warnings.warn(text, FutureWarning, stacklevel=1)
        return text

    with pytest.warns(FutureWarning, match="careful") as found:
        assert [pool.ask((warns, text), nowhere) for text in ("careful", "careful")] == [
            "careful",
            "careful",
        ]
    assert len(found) == 1


def test_a_worker_sees_the_path_the_arguments_and_one_thread(pool):
    def seen():
        import os
        import sys

        import pyarrow

        return sys.path, sys.argv, pyarrow.cpu_count(), os.environ["OMP_NUM_THREADS"]

    assert pool.ask((seen,), nowhere) == (sys.path, sys.argv, 1, "1")


def test_workers_leave_ctrl_c_to_the_parent(pool):
    (worker,) = [pool.ask((os.getpid,), nowhere)]
    os.kill(worker, signal.SIGINT)
    assert pool.ask((os.getpid,), nowhere) == worker


def test_as_many_work_at_once_as_there_are():
    """Two tasks that wait for each other end only if both run."""
    ours, theirs = os.pipe(), os.pipe()
    with workers(count=2) as pool, ThreadPoolExecutor(3) as threads:

        def meet(mine, other, parent):
            import os

            with open(f"/proc/{parent}/fd/{mine}", "wb", buffering=0) as file:
                file.write(b"x")
            with open(f"/proc/{parent}/fd/{other}", "rb", buffering=0) as file:
                return file.read(1), os.getpid()

        asked = [
            threads.submit(pool.ask, (meet, mine, other, os.getpid()), nowhere)
            for mine, other in [(ours[1], theirs[0]), (theirs[1], ours[0])]
        ]
        met = [each.result(GUARD) for each in asked]
        more = [threads.submit(pool.ask, (os.getpid,), nowhere) for _ in range(20)]
        assert [byte for byte, _ in met] == [b"x", b"x"]
        ids = {number for _, number in met}
        assert len(ids) == 2
        assert {each.result(GUARD) for each in more} <= ids
    for end in (*ours, *theirs):
        os.close(end)


def dies_at_first(folder, *hows):
    """Make a task that ends its worker in each of these ways, and is done after that."""

    def task():
        import os

        been = len(os.listdir(folder))
        open(os.path.join(folder, str(been)), "w").close()
        if been < len(hows):
            hows[been]()
        return been

    return task


def test_a_task_whose_worker_dies_is_run_again(tmp_path):
    ways = [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL)]
    with workers(retries=2) as pool:
        assert pool.ask((dies_at_first(str(tmp_path), *ways),), nowhere) == 2
        assert len(pool.process_ids()) == 1


def test_a_worker_that_dies_between_tasks_is_replaced():
    with workers() as pool:
        first = pool.ask((os.getpid,), nowhere)
        os.kill(first, signal.SIGKILL)
        assert pool.ask((os.getpid,), nowhere) != first
        assert gone([first])


@pytest.mark.parametrize(
    ("retries", "how", "said"),
    [
        (0, lambda: os._exit(3), "one ended with exit code 3 on row 3, once"),
        (1, lambda: os.abort(), "one was killed by SIGABRT on row 3, 2 times in a row"),
    ],
)
def test_after_some_deaths_the_error_says_how_and_where(tmp_path, retries, how, said):
    with workers(retries=retries) as pool:
        with pytest.raises(ExecutionError, match=re.escape(said)):
            pool.ask((dies_at_first(str(tmp_path), *[how] * 4),), nowhere)
        assert len(list(tmp_path.iterdir())) == retries + 1


def test_a_worker_whose_children_live_on_is_seen_to_die():
    """A child that it forked holds the worker's end of the socket open."""

    def forks():
        import os
        import time

        if not os.fork():
            time.sleep(5)
            os._exit(0)
        os._exit(3)

    with workers(retries=0) as pool, pytest.raises(ExecutionError, match="exit code 3"):
        pool.ask((forks,), nowhere)


def test_what_a_worker_cannot_build_is_told_with_the_task():
    def broken():
        raise ImportError("no module of that name")

    def refused():
        raise TokenizerError("no such tokenizer")

    with workers(broken) as pool:
        with pytest.raises(ExecutionError, match="ImportError: no module of that name"):
            pool.ask(1, nowhere)
        assert len(pool.process_ids()) == 1
    with workers(refused) as pool, pytest.raises(TokenizerError, match=r"^no such tokenizer$"):
        pool.ask(1, nowhere)


def test_what_cannot_be_pickled_is_refused_before_a_worker_starts():
    lock = threading.Lock()
    pool = WorkerPool(lambda: lock, 1, 3)
    with pytest.raises(ExecutionError, match="cloudpickle takes, got TypeError: cannot pickle"):
        ProcessesRunner(pool)
    assert pool.process_ids() == []


def test_closing_ends_workers_and_those_who_wait_for_them(tmp_path):
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    begun = tmp_path / "begun"

    def endless():
        import time

        open(begun, "w").close()
        while True:
            time.sleep(0.001)

    pool = WorkerPool(calls, 1, 3)
    runner = ProcessesRunner(pool)
    asked = [runner.submit(lambda: pool.ask((endless,), nowhere)) for _ in range(3)]
    while not begun.exists():
        time.sleep(0.01)
    ids = pool.process_ids()
    runner.close()
    runner.close()
    for each in asked:
        with pytest.raises(CancelledError):
            each.result()
    assert gone(ids)
    with pytest.raises(CancelledError):
        pool.ask((abs, 1), nowhere)
    gc.collect()
    assert sorted(os.listdir("/proc/self/fd")) == before
