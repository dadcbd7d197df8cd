"""However a run ends, its threads end too: break, error, close, collection, Ctrl-C, exit."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

from tests.properties.recipes import packed, rows, rows_of
from zephon import Dataset, InMemoryShard
from zephon.errors import DataError

GUARD = 30  # seconds after which a test that hangs fails
RUNS = {
    "threads": {"runner": "threads"},
    "no queue": {"runner": "threads", "prefetch_batches": 0},
    "queue": {"runner": "threads", "prefetch_batches": 8},
    "full queue": {"runner": "threads", "prefetch_batches": 1},
    "inline": {"runner": "inline"},
}


def ours():
    return [t.name for t in threading.enumerate() if t.name.startswith("zephon-")]


def until_no_thread_is_left():
    deadline = time.monotonic() + GUARD
    while ours():
        assert time.monotonic() < deadline, f"left: {ours()}"
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    gc.collect()  # what a test that failed before may have left
    assert ours() == []
    yield
    until_no_thread_is_left()


@pytest.fixture(params=RUNS)
def run(request):
    return packed(canonical_replicas=2, **RUNS[request.param])


def test_the_end_of_the_data(run):
    items = iter(run)
    assert len(list(items)) > 50
    assert ours() == []
    assert next(items, "end") == "end"


def test_break(run):
    for _ in run:
        break
    assert ours() == []


def test_an_exception_in_the_loop(run):
    with pytest.raises(ZeroDivisionError):
        for number, _ in enumerate(run):
            1 / (3 - number)
    gc.collect()  # the traceback that pytest keeps holds the iterator
    until_no_thread_is_left()


def test_close(run):
    items = iter(run)
    next(items)
    items.close()
    assert ours() == []
    items.close()


def test_close_before_the_first_item(run):
    items = iter(run)
    items.close()
    assert ours() == []
    assert len(rows(run)) > 100


def test_an_exception_thrown_into_the_iterator(run):
    items = iter(run)
    next(items)
    with pytest.raises(KeyError):
        items.throw(KeyError("from outside"))
    assert ours() == []
    assert len(rows(run)) > 100


def test_letting_go_of_the_iterator(run):
    items = iter(run)
    next(items)
    del items
    gc.collect()
    assert ours() == []


def test_letting_go_of_pipeline_and_iterator_in_a_cycle(run):
    class Trainer:
        pass

    trainer = Trainer()
    trainer.pipeline = packed(**RUNS["threads"])
    trainer.items = iter(trainer.pipeline)
    trainer.self = trainer
    next(trainer.items)
    gone = weakref.ref(trainer.pipeline)
    del trainer
    gc.collect()
    assert gone() is None
    assert ours() == []


def test_an_iterator_that_never_began_holds_nothing(run):
    gone = weakref.ref(packed(**RUNS["threads"]))
    gc.collect()
    assert gone() is None
    iter(run)
    assert ours() == []


def test_an_error_in_the_data_ends_the_run():
    own = [{"input_ids": [1, 2, 3]}] * 50 + [{"input_ids": "none"}] + [{"input_ids": [1]}] * 500
    data = Dataset.from_dict("own", {0: InMemoryShard(own)})
    for settings in RUNS.values():
        pipe = packed([data], max_length=5, work={"shuffle_within_shard": False}, **settings)
        with pytest.raises(DataError, match="row 50"):
            list(pipe)
        assert ours() == []


def test_many_rounds_leave_nothing_behind():
    before = threading.active_count()
    for _ in range(40):
        items = iter(packed(**RUNS["threads"]))
        next(items)
        items.close()
    assert threading.active_count() == before


def test_batches_outlive_their_run(run):
    items = iter(run)
    batches = [next(items) for _ in range(5)]
    items.close()
    del items
    gc.collect()
    kept = [row for batch in batches for row in rows_of(batch)]
    assert kept == rows(run, 5)


def test_a_run_may_be_ended_from_another_thread(run):
    """A trainer's evaluation thread makes the last batch of the main thread's iterator."""
    items = iter(run)
    next(items)
    other = threading.Thread(target=items.close)
    other.start()
    other.join(GUARD)
    assert not other.is_alive()
    assert next(items, None) is None


# In a process of its own

RECIPE = """
import signal, sys, time, threading
from collections.abc import Mapping
from zephon import *

class Slow(Mapping):
    '''A row that takes its time, as one on a busy disk does.'''
    def __init__(self, number):
        self.number = number
    def __getitem__(self, key):
        if threading.current_thread().name.startswith("zephon-") or INLINE:
            time.sleep(0.05)
        return [self.number] * 8000
    def __contains__(self, key):
        return key == "input_ids"
    def __iter__(self):
        return iter(["input_ids"])
    def __len__(self):
        return 1

INLINE = False

def pipe(rows, **options):
    data = Dataset.from_dict("own", {i: InMemoryShard(rows) for i in range(3)})
    work = StaticMixtureWorkSource([data], {"own": 1}, stop_after_passes=1000)
    return Pipeline(work).pack_flat(64, algorithm="wrap").batch(2).options(**options)

fast = [{"input_ids": [i] * 70} for i in range(500)]
"""


def start(body):
    return subprocess.Popen(
        [sys.executable, "-u", "-c", RECIPE + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )


def finish(process):
    try:
        return process.communicate(timeout=GUARD)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # where every thread stands goes to stderr
        _, trace = process.communicate()
        pytest.fail(f"it hangs:\n{trace}")


def interrupt_after(process, line):
    """Send Ctrl-C once the script has printed ``line``."""
    for said in process.stdout:
        if said.strip() == line:
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            return
    pytest.fail(f"it ended before: {process.stderr.read()}")


WAYS = ("runner='inline'", "runner='threads'", "runner='threads', prefetch_batches=9")


@pytest.mark.parametrize("options", WAYS)
def test_ctrl_c_while_the_training_loop_works(options):
    process = start(f"""
try:
    for number, batch in enumerate(pipe(fast, {options})):
        if number == 3:
            print("working")
            time.sleep(600)
except KeyboardInterrupt:
    del batch
    print("stopped", [t.name for t in threading.enumerate() if t.name.startswith("zephon-")])
""")
    interrupt_after(process, "working")
    out, err = finish(process)
    assert (out, err, process.returncode) == ("stopped []\n", "", 0)


@pytest.mark.parametrize("options", WAYS)
def test_ctrl_c_while_waiting_for_data(options):
    process = start(f"""
INLINE = {"inline" in options}
items = iter(pipe([Slow(i) for i in range(12)], {options}))
try:
    print("waiting")
    while True:
        next(items)
except KeyboardInterrupt:
    items.close()
    print("stopped", [t.name for t in threading.enumerate() if t.name.startswith("zephon-")])
""")
    interrupt_after(process, "waiting")
    out, err = finish(process)
    assert (out, err, process.returncode) == ("stopped []\n", "", 0)


@pytest.mark.parametrize("runner", ["threads", "inline"])
def test_ctrl_c_that_nobody_catches_gives_its_own_traceback_and_no_more(runner):
    process = start(f"""
for batch in pipe(fast, runner={runner!r}):
    print("working")
    time.sleep(600)
""")
    interrupt_after(process, "working")
    _, err = finish(process)
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in err


def test_the_pipeline_goes_on_after_ctrl_c():
    process = start("""
p = pipe(fast, runner="threads")
items = iter(p)
try:
    first = next(items).records[0].payload["input_ids"]
    print("working")
    time.sleep(600)
except KeyboardInterrupt:
    state = p.checkpoint()
    items.close()
again = next(iter(p)).records[0].payload["input_ids"]
resumed = next(iter(p.restore(state))).records[0].payload["input_ids"]
print(again == first, resumed != first)
""")
    interrupt_after(process, "working")
    out, err = finish(process)
    assert (out, err, process.returncode) == ("True True\n", "", 0)


ENDS = {
    "open iterator": "items = iter(pipe(fast)); next(items)",
    "open iterator, queue": "items = iter(pipe(fast, prefetch_batches=8)); next(items)",
    "open iterator, full queue": "items = iter(pipe(fast, prefetch_batches=1)); next(items); "
    "time.sleep(0.2)",
    "open iterator, no queue": "items = iter(pipe(fast, prefetch_batches=0)); next(items)",
    "two open iterators": "a, b = iter(pipe(fast)), iter(pipe(fast)); next(a); next(b)",
    "open iterator in a cycle": "items = iter(pipe(fast)); next(items); x = [items]; x.append(x)",
    "slow data": "items = iter(pipe([Slow(i) for i in range(12)])); next(items)",
    "never begun": "items = iter(pipe(fast))",
    "sys.exit in the loop": "for batch in pipe(fast): sys.exit()",
    "in a module's global": "import types; m = types.ModuleType('m'); sys.modules['m'] = m; "
    "m.items = iter(pipe(fast)); next(m.items)",
    "used up": "p = pipe(fast[:3], global_batch_size=8); print(next(iter(p)) is None)",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_interpreter(name):
    process = start(f"{ENDS[name]}\nprint('last line')\n")
    out, err = finish(process)
    assert err == ""
    assert process.returncode == 0
    assert out.endswith("last line\n") or name.startswith("sys.exit")


def test_an_error_that_nobody_catches_is_the_only_one_shown():
    process = start("for batch in pipe(fast): raise ValueError('mine')\n")
    _, err = finish(process)
    assert process.returncode == 1
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("ValueError: mine")
