"""What torch asks of a pipeline, without torch: workers' shares put together again, and states."""

import base64
import json
import pickle
import warnings
from contextlib import closing

import numpy as np
import pytest

from tests.properties.recipes import packed, rows, rows_of, source, two_datasets
from zephon import Pipeline, loading
from zephon.errors import CheckpointError

STEPS = {"global_batch_size": 24, "dp_degree": 2, "dp_group_id": 1}  # six batches of two a step
LANES = {"canonical_replicas": 6}
ALONE = {"global_batch_size": 8}


def in_turn(runs, count=None, keep=None):
    """Ask run after run for an item, as a loader does; leave out those that are at their end.

    keep: is told which run gave the last item.
    """
    live, found = dict(enumerate(runs)), []
    while live:
        for number in list(live):
            item = next(live[number], None)
            if item is None:
                del live[number]
                continue
            found.append(rows_of(item))
            if len(found) == count:
                keep(number)
                return found
    return found


def workers_of(make, count, states=None, first=0):
    """Make the runs of all workers, the one that is asked next first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [
            make()._in_worker(n, count, None if states is None else states[n], waits=True)
            for n in range(count)
        ]
    return runs[first:] + runs[:first]


def items_of(runs):
    return [run.items() for run in runs]


def batches(pipeline):
    return [rows_of(batch) for batch in pipeline]


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_workers_in_turn_give_the_batches_of_one_process(workers):
    """Microbatches a step and workers need not divide each other; the end comes at any worker."""
    wanted = batches(packed(**STEPS))
    assert in_turn(items_of(workers_of(lambda: packed(**STEPS), workers))) == wanted


@pytest.mark.parametrize("settings", [{"runner": "threads", "prefetch_batches": 3}, {}])
@pytest.mark.parametrize("inside", [0, 1, 7])
def test_workers_begin_where_a_state_of_the_rank_stands(settings, inside):
    pipeline = packed(**STEPS)
    with closing(iter(pipeline)) as items:
        for _ in range(12 + inside):
            next(items)
        state = pipeline.checkpoint(scope="local")
        rest = [rows_of(batch) for batch in items]
    for workers in (2, 4):
        runs = workers_of(lambda: packed(**STEPS, **settings).restore(state), workers)
        assert in_turn(items_of(runs)) == rest


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_workers_that_run_lanes_keep_the_order_until_the_first_lane_ends(workers):
    wanted = batches(packed(**LANES))
    found = in_turn(items_of(workers_of(lambda: packed(**LANES), workers)))
    lanes = [batch[0][1] for batch in wanted]
    ends = [lanes[n : n + 6] == sorted(set(lanes)) for n in range(0, len(lanes), 6)].index(False)
    assert ends > 10
    assert found[: 6 * ends] == wanted[: 6 * ends]
    for lane in range(6):  # and each lane's own always
        assert [b for b in found if b[0][1] == lane] == [b for b in wanted if b[0][1] == lane]


def test_lanes_are_dealt_from_the_one_whose_turn_is_next():
    pipeline = packed(**LANES)
    with closing(iter(pipeline)) as items:
        for _ in range(2 * 6 + 4):
            next(items)
        state = pipeline.checkpoint(scope="local")
        rest = [rows_of(batch) for batch in items]
    runs = workers_of(lambda: packed(**LANES).restore(state), 3)
    assert in_turn(items_of(runs))[:24] == rest[:24]


@pytest.mark.parametrize("settings", [STEPS, LANES], ids=["steps", "lanes"])
@pytest.mark.parametrize("renewed", ["always", "never"])
def test_a_workers_state_goes_on_after_what_it_handed_out(settings, renewed, monkeypatch):
    """Whatever the age of the base; from a state, and from the states that follow it."""
    monkeypatch.setattr(loading, "RENEW_SECONDS", -1.0 if renewed == "always" else 1e9)
    monkeypatch.setattr(loading, "RENEW_COSTS", 0)
    runs = workers_of(lambda: packed(**settings), 3)
    wanted = in_turn(items_of(workers_of(lambda: packed(**settings), 3)))
    found, last = [], None
    states = [run.state() for run in runs]
    for count in (1, 4, 1, 13):
        first = 0 if last is None else (last + 1) % 3
        runs = workers_of(lambda: packed(**settings), 3, states, first)
        items = [_noting(run, states, (first + n) % 3) for n, run in enumerate(runs)]
        got = []
        found += in_turn(items, count, got.append)
        last = (first + got[0]) % 3
    runs = workers_of(lambda: packed(**settings), 3, states, (last + 1) % 3)
    assert found + in_turn(items_of(runs)) == wanted
    followed = any(state["passed"] > 2 for state in states)
    assert followed == (renewed == "never")


def _noting(run, states, number):
    """Take a state after each item, as a loader does, and JSON in between as a program may."""
    for item in run.items():
        states[number] = json.loads(json.dumps(run.state()))
        yield item


def test_a_state_at_the_end_gives_nothing_more(monkeypatch):
    monkeypatch.setattr(loading, "RENEW_SECONDS", 1e9)
    runs = workers_of(lambda: packed(**STEPS), 2)
    states = [run.state() for run in runs]
    assert in_turn([_noting(run, states, n) for n, run in enumerate(runs)])
    assert in_turn(items_of(workers_of(lambda: packed(**STEPS), 2, states))) == []
    states = [run.state() for run in runs]
    assert in_turn(items_of(workers_of(lambda: packed(**STEPS), 2, states))) == []


def test_a_worker_that_idles_does_so_after_a_restore():
    runs = workers_of(lambda: packed(**LANES), 4)
    assert list(runs[3].items()) == []
    state = json.loads(json.dumps(runs[3].state()))
    again = packed(**LANES)._in_worker(3, 4, state, waits=True)
    assert list(again.items()) == []
    assert again.state() == state


def test_between_bases_a_snapshot_writes_no_state(monkeypatch):
    monkeypatch.setattr(loading, "RENEW_SECONDS", 1e9)
    run = packed(**STEPS)._in_worker(0, 2, None, waits=True)
    begin = run.state()
    for number, _ in zip(range(1, 9), run.items(), strict=False):
        state = run.state()
        assert state["engine"] is begin["engine"]
        assert state["passed"] == 2 * number


@pytest.mark.parametrize("state", [{"worker": 1, "workers": 3}, {"worker": 0, "workers": 2}])
def test_a_state_of_another_worker_is_refused(state):
    run = packed(**STEPS)._in_worker(state["worker"], state["workers"], None, waits=True)
    said = rf"worker {state['worker']} of num_workers={state['workers']}, this is worker 0 of"
    with pytest.raises(CheckpointError, match=said):
        packed(**STEPS)._in_worker(0, 3, run.state(), waits=True)


def test_what_is_no_state_of_a_worker_is_refused():
    with pytest.raises(CheckpointError, match=r"expected the state of a worker, with \['engine',"):
        packed(**STEPS)._in_worker(0, 3, {"worker": 0, "engine": ""}, waits=True)


def test_rows_that_are_taken_are_counted_over_all_workers():
    """By lanes each worker would take as many."""

    def make():
        return packed(**LANES).take(21)

    wanted = batches(make())
    assert sum(map(len, wanted)) == 21
    assert in_turn(items_of(workers_of(make, 3))) == wanted


def test_a_state_that_waits_counts_only_if_it_is_to():
    pipeline = packed(**STEPS)
    with closing(iter(pipeline)) as items:
        next(items)
        state = pipeline.checkpoint(scope="local")
    restored = packed(**STEPS).restore(state)
    assert rows_of(next(restored._in_worker(0, 1, None, waits=False).items())) == rows(
        packed(**STEPS), 1
    )


def test_functions_of_batches_see_the_workers_own_and_drops_are_told_of():
    def count(batch):
        seen.append(rows_of(batch))
        return None if len(seen) == 2 else batch

    seen = []
    run = packed(**STEPS).map_batch(count)._in_worker(0, 2, None, waits=True)
    with pytest.warns(RuntimeWarning, match="a batch was dropped, and workers hand batches out"):
        found = [rows_of(batch) for batch in run.items()]
    wanted = batches(packed(**STEPS))[::2]
    assert seen == wanted
    assert found == [wanted[0], *wanted[2:]]


def test_processes_become_threads_in_a_worker():
    pipeline = packed(**STEPS, runner="process")
    with pytest.warns(RuntimeWarning, match="runner='process' is 'threads' in a worker"):
        run = pipeline._in_worker(1, 2, None, waits=True)
    assert [rows_of(batch) for batch in run.items()] == batches(packed(**STEPS))[1::2]
    assert pipeline._options.runner == "process"


def test_operators_that_remember_resume_in_workers(monkeypatch):
    """They go on by replay: from a barrier before, and batches of others are made again, too."""

    def make():
        return (
            Pipeline(source(two_datasets(), seed=3, shuffle_within_shard=True))
            .shuffle(buffer_size=16, seed=1)
            .pack_flat(33, algorithm="best_fit", num_bins=4, pad_token_id=0)
            .batch(2)
            .options(runner="inline", global_batch_size=8, canonical_replicas=2)
        )

    monkeypatch.setattr(loading, "RENEW_SECONDS", 1e9)
    wanted = batches(make())
    runs = workers_of(make, 3)
    states = [run.state() for run in runs]
    got = []
    found = in_turn([_noting(run, states, n) for n, run in enumerate(runs)], 10, got.append)
    again = workers_of(make, 3, states, (got[0] + 1) % 3)
    assert found + in_turn(items_of(again)) == wanted


# States as one text


def test_a_state_is_one_text_and_loads_from_that_or_a_checkpoint():
    pipeline = packed(**ALONE)
    with closing(iter(pipeline)) as items:
        for _ in range(3):
            next(items)
        state = pipeline.state_dict()
        assert list(state) == ["engine"]
        assert base64.b64decode(state["engine"]) == pipeline.checkpoint(as_bytes=True)
        rest = [rows_of(batch) for batch in items]
        for each in (json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state))):
            again = packed(**ALONE)
            assert again.load_state_dict(each) is None
            assert again.state_dict() == state
            assert batches(again) == rest
    whole = packed(**ALONE).restore(base64.b64decode(state["engine"])).checkpoint()
    again = packed(**ALONE)
    again.load_state_dict(whole)
    assert batches(again) == rest


@pytest.mark.parametrize("damage", ["?", "AAAA"])
def test_a_damaged_text_is_told_of(damage):
    state = packed(**ALONE).state_dict()
    with pytest.raises(CheckpointError, match=r"damaged|no checkpoint"):
        packed(**STEPS).load_state_dict({"engine": damage + state["engine"]})
    with pytest.raises(TypeError, match="'engine' must be the text of a checkpoint, got ndarray"):
        packed(**STEPS).load_state_dict({"engine": np.zeros(3)})


def test_no_item_can_be_asked_for_by_number():
    pipeline = packed()
    assert pipeline.is_indexable is False
    with pytest.raises(RuntimeError, match="StaticMixtureWorkSource gives streams of samples"):
        pipeline.to_indexable_torch_dataset()
