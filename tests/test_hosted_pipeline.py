"""Pipelines whose engine is in a child process: the same batches and states, and no trace of it."""

import ctypes
import functools
import gc
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.properties.recipes import (
    lengths,
    packed,
    rows,
    rows_of,
    source,
    text_dataset,
    token_dataset,
    two_datasets,
)
from zephon import Dataset, InMemoryShard, Pipeline, SampleRecord
from zephon.errors import ExecutionError, PlanError
from zephon.exec.hosting import child as hosted_child
from zephon.exec.hosting import hosted as hosted_engine

ROOT = Path(__file__).parents[1]
GUARD = 60  # seconds after which a test that hangs fails


def gone(process_id):
    """Wait until no process has this id."""
    end = time.monotonic() + GUARD
    while Path(f"/proc/{process_id}").exists():
        assert time.monotonic() < end, "the process is still there"
        time.sleep(0.01)


def shared_memory():
    """Name what lies in shared memory, but for locks that any process may make meanwhile."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")}


@pytest.fixture(autouse=True)
def _nothing_stays_behind():
    shared = shared_memory()
    yield
    gc.collect()
    assert shared_memory() <= shared


def longer(payload):
    payload["input_ids"] = [*payload["input_ids"], 7]
    return payload


def all_but_long(payload):
    return payload if len(payload["text"]) < 60 else None


def marked(batch):
    for record in batch.records:
        record.payload["mark"] = record.meta.sample_id[2]
    return batch if len(batch.ids) else None


def emptied():
    return []


def keep_two(state, records):
    state = [*state, *records]
    return (state[-2:], state[:-2]) if len(state) > 2 else (state, [])


def flushed(state):
    return state


PLANS = {
    "steps": lambda: packed(global_batch_size=6, canonical_replicas=3, runner="threads"),
    "lanes": lambda: packed(canonical_replicas=3, microbatch=3, drop_last=False),
    "records": lambda: Pipeline(source(two_datasets())).map_transform(longer).shuffle(9, seed=3),
    "text": lambda: (
        Pipeline(source([text_dataset("words", 90)]))
        .map_transform(all_but_long)
        .batch(4, drop_last=False)
        .map_batch(marked)
    ),
    "remembering": lambda: (
        Pipeline(source(two_datasets()))
        .stateful_transform("two", init_state=emptied, push=keep_two, flush=flushed)
        .pack_flat(33, algorithm="best_fit", num_bins=2, pad_token_id=0)
        .batch(2)
        .options(flush_every_k_chunks=1)
    ),
}


def told(item):
    """Say all of an item, and the state after it."""
    if isinstance(item, SampleRecord):
        return repr((item.meta, item.payload))
    payload = item.records[0].payload
    arrays = []
    if "input_ids" in payload:
        found = item.to_training(return_labels=True, return_cu_seqlens=True, pad_to="longest")
        arrays = [(name, np.asarray(each).tolist()) for name, each in found.items()]
    about = (item.target_mixture, item.lane_ids, item.chunk_ids, item.ids, item.lineage_paths)
    return repr((about, [(r.meta, r.payload) for r in item.records], arrays))


def run(pipeline, every=5):
    """Give each item, the state after some of them, and what there is at the end."""
    items, states = [], []
    for item in pipeline:
        if len(items) % every == 0:
            states.append(pipeline.checkpoint())
        items.append(told(item))
    return items, states, pipeline.checkpoint(), pipeline.accounting()


@pytest.mark.parametrize("name", PLANS)
def test_batches_states_and_counts_are_those_of_this_process(name):
    wanted, found = run(PLANS[name]()), run(PLANS[name]().options(mtp_mode=True, mtp_buffer=7))
    assert len(wanted[0]) > 10
    for one, other in zip(wanted, found, strict=True):
        assert one == other


def test_states_go_from_one_to_the_other():
    there = packed(microbatch=1, mtp_mode=True)
    wanted = rows(packed(microbatch=1))
    items = iter(there)
    assert there.checkpoint() == packed(microbatch=1).checkpoint()
    for _ in range(31):
        next(items)
    state, data = there.checkpoint(), there.checkpoint(as_bytes=True)
    items.close()
    assert there.checkpoint() == state
    assert rows(packed(microbatch=1).restore(data)) == wanted[31:]
    again = packed(microbatch=1, mtp_mode=True).restore(state)
    assert again.checkpoint() == state
    items = iter(again)
    assert again.checkpoint() == state
    assert [row for batch in items for row in rows_of(batch)] == wanted[31:]
    ended = again.checkpoint()
    assert list(packed(microbatch=1).restore(ended)) == []


def test_a_child_is_opened_when_there_is_something_to_ask_it():
    pipe = packed(mtp_mode=True)
    assert pipe.mtp_queue_stats() is None
    assert pipe.checkpoint() == packed().checkpoint()
    assert pipe._engine is None
    counts = pipe.accounting()  # of an engine that the next run begins with
    process = pipe._ready.process_id
    assert counts == packed().accounting()
    iter(pipe)
    assert pipe._engine.process_id == process


def test_the_queue_tells_how_full_it_is_and_keeps_its_bounds():
    pipe = packed(microbatch=1, mtp_mode=True, mtp_buffer=6, mtp_buffer_bytes=20_000)
    items = iter(pipe)
    assert pipe.mtp_queue_stats() is None
    next(items)
    end = time.monotonic() + GUARD
    while pipe.mtp_queue_stats().depth < 5:
        assert time.monotonic() < end
    time.sleep(0.2)
    stats = pipe.mtp_queue_stats()
    assert stats.capacity == 6
    assert 5 <= stats.depth <= 6
    assert 0 < stats.staged_bytes < 40_000
    assert stats.prefetch_depth >= 0
    items.close()
    assert pipe.mtp_queue_stats() is None


def small_rows(count):
    return source([token_dataset("prose", [3] * count)], shuffle_shards=False)


def large_rows(count):
    """Give rows so large that a task reads few of them."""
    rows = [{"number": number, "text": "x" * 4000} for number in range(count)]
    return source([Dataset.from_dict("words", {0: InMemoryShard(rows)})], shuffle_shards=False)


def marking(act, marker, row, payload):
    """Do something at one row, and let others know."""
    if payload["number"] == row:
        Path(marker).touch()
        act()
    return payload


def acting(act, marker="/dev/null", row=70, **options):
    function = functools.partial(marking, act, str(marker), row)
    pipe = Pipeline(large_rows(120)).map_transform(function, fingerprint="acts")
    return pipe.options(runner="inline", **options)


def until_marked(items, marker):
    """Take items until the function is in the row; return how many."""
    for count, _ in enumerate(items, 1):
        time.sleep(0.02)
        if marker.exists():
            return count
    raise AssertionError("the function never came to its row")


def nothing():
    pass


def sleeps():
    time.sleep(120)


def fails():
    raise ValueError("no good")


def exits():
    os._exit(7)


def holds_the_interpreter():
    ctypes.PyDLL(None).usleep(5_000_000)


def test_a_state_is_exact_though_the_child_is_in_a_slow_function(tmp_path, monkeypatch):
    monkeypatch.setattr(hosted_engine, "_LEAVING_SECONDS", 0.2)
    marker = tmp_path / "marker"
    pipe = acting(sleeps, marker, mtp_mode=True)
    items = iter(pipe)
    count = until_marked(items, marker)
    items.close()
    began = time.monotonic()
    state = pipe.checkpoint()
    assert time.monotonic() - began < GUARD
    here = acting(nothing)
    for _ in itertools.islice(here, count):
        pass
    assert state == here.checkpoint()
    process = pipe._engine.process_id
    del pipe, items
    gone(process)


def test_an_error_comes_after_the_batches_before_it_with_its_class_and_place():
    found = []
    for options in ({}, {"mtp_mode": True}):
        pipe, records = acting(fails, **options), []
        with pytest.raises(ExecutionError, match="no good") as caught:
            for record in pipe:
                records.append(record.meta.sample_id)
        assert isinstance(caught.value.__cause__, ValueError)
        found.append((records, str(caught.value), pipe.checkpoint(), pipe.accounting()))
    assert found[0] == found[1]
    assert len(records) == 70
    assert "in marking" in "".join(caught.value.__cause__.__notes__)


def test_what_cannot_be_opened_says_so_where_it_is_iterated():
    plan = packed(global_batch_size=5, canonical_replicas=5, mtp_mode=True)
    with pytest.raises(PlanError) as here:
        iter(packed(global_batch_size=5, canonical_replicas=5))
    with pytest.raises(PlanError) as there:
        iter(plan)
    assert str(here.value) == str(there.value)
    lock = multiprocessing.Lock()
    pipe = packed(mtp_mode=True).map_batch(lambda batch: batch if lock else None)
    with pytest.raises(ExecutionError, match=r"mtp_mode=True needs functions.*cloudpickle takes"):
        iter(pipe)


def test_warnings_of_the_engine_are_given_here_once():
    def plan(**options):
        data = source([token_dataset("prose", [3, 90, 4, 95, 3] * 9)])
        pipe = (
            Pipeline(data)
            .pack_flat(33, algorithm="first_fit", num_bins=2, pad_token_id=0)
            .batch(2, drop_last=False)
        )
        return pipe.options(runner="inline", **options)

    for pipe in (plan(), plan(mtp_mode=True)):
        with pytest.warns(RuntimeWarning, match="packing dropped 18 documents") as found:
            for _ in pipe:
                pass
        assert [Path(each.filename).name for each in found] == [Path(__file__).name]


@pytest.mark.parametrize("how", ["was killed by SIGKILL", "ended with exit code 7"])
def test_the_death_of_the_child_is_told_with_its_cause(how):
    pipe = acting(exits if "exit" in how else nothing, mtp_mode=True)
    items, count = iter(pipe), 0
    process = pipe._engine.process_id
    with pytest.raises(ExecutionError, match=rf"engine \({process}\) {how}; look there for what"):
        for _ in items:
            count += 1
            if count == 20 and "exit" not in how:
                os.kill(process, signal.SIGKILL)
    assert 20 <= count < 70
    with pytest.raises(ExecutionError, match=how):
        pipe.checkpoint()
    gone(process)


PROGRAM = """
import sys, time
from tests.test_hosted_pipeline import small_rows
from zephon import Pipeline

def plus(payload):
    return {"input_ids": [each + 1 for each in payload["input_ids"]]}

pipe = Pipeline(small_rows(5000)).map_transform(plus).batch(2).options(mtp_mode=True)
items = iter(pipe)
for _ in range(10):
    batch = next(items)
print(pipe._engine.process_id, batch.records[0].payload["input_ids"][0] % 1000, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize("way", ["wait", "leave"])
def test_the_child_goes_with_its_parent_and_no_guard_is_needed(way):
    """A script without a guard runs; its end, or kill -9, ends the child."""
    command = (sys.executable, "-c", PROGRAM, way)
    parent = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process, token = map(int, parent.stdout.readline().split())
    assert token == 1
    if way == "wait":
        parent.kill()
    assert parent.wait(GUARD) == (-signal.SIGKILL if way == "wait" else 0)
    assert "Traceback" not in parent.stderr.read()
    parent.stdout.close()
    parent.stderr.close()
    gone(process)


def test_memory_is_given_back_and_what_is_kept_stays_as_it_is():
    def plan(**options):
        data = [token_dataset("prose", lengths(3, 3000), 3)]
        return packed(
            data, max_length=2000, microbatch=2, work={"stop_after_passes": 50}, **options
        )

    pipe = plan(mtp_mode=True, runner="inline")
    items, kept, descriptors = iter(pipe), [], []
    for number, batch in enumerate(itertools.islice(items, 600)):
        if number % 200 == 7:
            kept.append((number, batch))
        if number >= 100:
            descriptors.append(len(os.listdir("/proc/self/fd")))
    del batch
    assert max(descriptors) <= min(descriptors) + 6
    items.close()
    wanted = itertools.islice(iter(plan(runner="inline")), 600)
    each = {number: batch for number, batch in enumerate(wanted) if number % 200 == 7}
    for number, batch in kept:
        assert rows_of(batch) == rows_of(each[number])


def counted(box):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        count = len(list(packed(mtp_mode=True)))
    box.put((count, [str(each.message) for each in found]))


def test_a_daemonic_process_runs_the_engine_itself():
    context = multiprocessing.get_context("spawn")
    box = context.SimpleQueue()
    process = context.Process(target=counted, args=(box,), daemon=True)
    process.start()
    count, found = box.get()
    process.join(GUARD)
    assert count == len(list(packed()))
    assert any("mtp_mode=True has no effect in a daemonic process" in text for text in found)


def test_a_fork_leaves_the_iterator_to_its_parent():
    pipe = packed(mtp_mode=True)
    items = iter(pipe)
    found = rows_of(next(items))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(items)
        except ExecutionError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found += [row for batch in items for row in rows_of(batch)]
    assert found == rows(packed())


def test_a_change_ends_what_runs_and_worker_processes_are_the_childs():
    pipe = packed(mtp_mode=True, runner="process", max_workers=1)
    state = pipe.checkpoint()
    items = iter(pipe)
    next(items)
    process = pipe._engine.process_id
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [child for task in tasks for child in task.read_text().split()]
    assert len(children) == 1
    pipe.restore(state)
    gone(process)
    gone(int(children[0]))
    with pytest.raises(ExecutionError, match="changed or restored while it was being iterated"):
        next(items)
    assert rows(pipe) == rows(packed())


def test_a_child_that_does_not_answer_is_told_of_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(hosted_child, "QUESTION_SECONDS", 1.0)
    marker = tmp_path / "marker"
    pipe = acting(holds_the_interpreter, marker, mtp_mode=True)
    items = iter(pipe)
    count = until_marked(items, marker)
    with pytest.raises(ExecutionError, match=r"did not answer for 1 s when asked for its state"):
        pipe.checkpoint()
    monkeypatch.undo()
    assert count + len(list(items)) == 120
    assert len(pipe.checkpoint()["lanes"])


def rank(number, folder, found, **options):
    pipe = packed(
        microbatch=1,
        global_batch_size=4,
        canonical_replicas=4,
        dp_degree=2,
        dp_group_id=number,
        aggregate_dir=str(folder),
        **options,
    )
    pipe.options(runner="inline")
    records, state = [], None
    for batch in pipe:
        records += rows_of(batch)
        if len(records) == 5:
            state = pipe.checkpoint()
    found[number] = records, state, pipe.checkpoint()


def test_ranks_end_together_and_save_one_state(tmp_path):
    runs = []
    for options in ({}, {"mtp_mode": True}):
        found = {}
        ranks = [
            threading.Thread(
                target=rank, args=(number, tmp_path / f"{bool(options)}", found), kwargs=options
            )
            for number in range(2)
        ]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join(GUARD)
        runs.append(found)
    assert runs[0] == runs[1]
    assert len(runs[0][0][0]) == len(runs[0][1][0]) > 10
