"""A pipeline in torch's loaders: real workers by fork and spawn, states, and what is refused."""

import copy
import functools
import io
import os
import pickle
import subprocess
import sys
import warnings
from contextlib import closing
from itertools import islice

import polars as pl
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.utils.data import DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from tests.properties.recipes import packed, rows_of, source, two_datasets
from zephon import Pipeline
from zephon.errors import CheckpointError

STEPS = {"global_batch_size": 24, "dp_degree": 2, "dp_group_id": 1}
LANES = {"canonical_replicas": 4}
GUARD = 60.0

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:rank 1 of 2 ends where:RuntimeWarning"),
]


def loader_of(pipeline, workers, context="fork", kind=DataLoader, **settings):
    return kind(
        pipeline if isinstance(pipeline, IterableDataset) else pipeline.to_torch_dataset(),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=context if workers else None,
        timeout=GUARD if workers else 0,
        **settings,
    )


def batches(items):
    return [rows_of(batch) for batch in items]


def test_without_workers_it_is_the_pipeline():
    pipeline = packed(**STEPS)
    dataset = pipeline.to_torch_dataset()
    assert isinstance(dataset, IterableDataset)
    wanted, found = batches(packed(**STEPS)), []
    for _ in range(2):
        assert batches(loader_of(dataset, 0)) == wanted
    for batch in loader_of(dataset, 0):
        found.append(rows_of(batch))
        if len(found) == 8:  # in the middle of a step
            assert dataset.state_dict() == pipeline._told_state("local")
            state = dataset.state_dict()
            break
    dataset = packed(**STEPS).to_torch_dataset()
    dataset.load_state_dict(state)
    assert dataset.state_dict() == state
    assert found + batches(dataset) == wanted
    assert batches(dataset) == wanted  # a state counts once


@pytest.mark.parametrize("workers", [2, 5])
def test_forked_workers_give_the_same_in_the_same_order(workers):
    """Threads of the parent's own do no harm."""
    pipeline = packed(**STEPS, runner="threads", prefetch_batches=2)
    wanted = batches(pipeline)
    with closing(iter(packed(**STEPS, runner="threads"))) as other:
        next(other)
        found = batches(loader_of(pipeline, workers))
    assert found == wanted


class Labelled:
    """Collates in the worker."""

    def __call__(self, batch):
        return batch.to_training(return_labels=True)


def test_spawned_workers_get_functions_without_a_name_and_a_state_that_waits():
    least = 3

    def make():
        return (
            Pipeline(source(two_datasets()))
            .filter(pl.col("input_ids").list.len() > 2)
            .map_transform(lambda payload: payload if len(payload["input_ids"]) > least else None)
            .pack_flat(33, algorithm="wrap")
            .batch(2)
            .options(global_batch_size=8)
        )

    pipeline = make()
    with closing(iter(pipeline)) as items:
        next(items)
        state = pipeline.checkpoint(scope="local")
        wanted = [batch.to_training(return_labels=True) for batch in items]
    pipeline, settings = make().restore(state), {"kind": StatefulDataLoader}
    loader = loader_of(pipeline, 1, "spawn", collate_fn=Labelled(), **settings)
    found = list(islice(loader, 2))
    again = loader_of(make(), 1, "spawn", collate_fn=Labelled(), **settings)
    again.load_state_dict(loader.state_dict())
    del loader
    found += again
    assert len(found) == len(wanted) > 3
    for one, other in zip(found, wanted, strict=True):
        assert one["ids"] == other["ids"]
        assert torch.equal(one["input_ids"], other["input_ids"])
        assert torch.equal(one["labels"], other["labels"])
    with pytest.raises(NotImplementedError, match="StatefulDataLoader"):
        pipeline.state_dict()


@pytest.mark.parametrize(
    ("settings", "workers"),
    [*((STEPS, count) for count in (0, 2, 3, 5, 8)), *((LANES, count) for count in (1, 4, 6, 7))],
)
def test_a_stateful_loader_goes_on_where_it_was_left_again_and_again(settings, workers):
    """Also where it asks workers for their states once in three batches, and passes over two."""

    def make(every=1):
        more = {"kind": StatefulDataLoader, "snapshot_every_n_steps": every}
        return loader_of(packed(**settings), workers, **more)

    wanted, found, state = batches(make()), [], None
    for count in (5, 4):
        loader = make(3)
        if state is not None:
            loader.load_state_dict(state)
        for _, batch in zip(range(count), loader, strict=False):
            found.append(rows_of(batch))
        held = io.BytesIO()
        torch.save(loader.state_dict(), held)
        state = torch.load(io.BytesIO(held.getvalue()), weights_only=True)
    loader = make()
    loader.load_state_dict(state)
    assert found + batches(loader) == wanted
    assert batches(loader) == wanted  # the next epoch begins anew


def test_workers_may_stay_and_prefetch():
    loader = loader_of(
        packed(**STEPS), 2, kind=StatefulDataLoader, persistent_workers=True, prefetch_factor=4
    )
    wanted = batches(loader)
    assert batches(loader) == wanted
    items = iter(loader)
    found = [rows_of(next(items)) for _ in range(7)]
    state = loader.state_dict()
    again = loader_of(packed(**STEPS), 2, kind=StatefulDataLoader)
    again.load_state_dict(state)
    assert found + batches(again) == wanted


def test_another_number_of_workers_is_refused():
    loader = loader_of(packed(**STEPS), 2, kind=StatefulDataLoader)
    next(iter(loader))
    state = loader.state_dict()
    loader = loader_of(packed(**STEPS), 1, kind=StatefulDataLoader)
    loader.load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"of num_workers=2, this is worker 0 of num_workers"):
        next(iter(loader))
    one = state["_snapshot"]["_worker_snapshots"]["worker_0"]["dataset_state"]
    with pytest.raises(CheckpointError, match="this is the state of worker 0 of num_workers=2"):
        packed(**STEPS).to_torch_dataset().load_state_dict(one)


def test_a_restored_state_counts_for_the_first_workers_alone():
    """Those of the next epoch are made of the same dataset, where the state still waits."""
    pipeline = packed(**STEPS)
    with closing(iter(pipeline)) as items:
        found = [rows_of(next(items)) for _ in range(4)]
        state = pipeline.checkpoint(scope="local")
        rest = batches(items)
    dataset = packed(**STEPS).restore(state).to_torch_dataset()
    loader = loader_of(dataset, 2)
    assert batches(loader) == rest
    assert batches(loader) == found + rest
    dataset.load_state_dict(state)
    assert batches(loader) == rest


def test_a_plain_loader_with_workers_has_no_state():
    pipeline = packed(**STEPS)
    dataset = pipeline.to_torch_dataset()
    state = dataset.state_dict()
    items = iter(loader_of(dataset, 1))
    next(items)
    for ask in (dataset.state_dict, pipeline.state_dict, pipeline.checkpoint):
        with pytest.raises(NotImplementedError, match="over torchdata's StatefulDataLoader and"):
            ask()
    assert copy.deepcopy(dataset).state_dict() == state
    assert pickle.loads(pickle.dumps(dataset)).state_dict() == state
    del items
    next(iter(dataset))
    assert dataset.state_dict() != state


def test_a_dataset_without_a_state_has_none():
    dataset = packed().to_torch_dataset(stateful=False)
    for name in ("state_dict", "load_state_dict"):
        with pytest.raises(AttributeError):
            getattr(dataset, name)
    assert batches(dataset) == batches(packed())


@pytest.mark.parametrize("as_dataset", [False, True])
def test_torch_distributed_checkpoint_holds_a_pipeline(as_dataset, tmp_path):
    """It flattens dicts and lists, and loads into what the loading side says of itself."""

    def make():
        pipeline = packed(global_batch_size=8)
        return pipeline.to_torch_dataset() if as_dataset else pipeline

    wanted, saved = batches(make()), make()
    with closing(iter(saved)) as items:
        found = [rows_of(next(items)) for _ in range(5)]
        dcp.save({"loader": saved}, checkpoint_id=tmp_path)
    again = make()
    dcp.load({"loader": again}, checkpoint_id=tmp_path)
    assert found + batches(again) == wanted


def test_a_worker_runs_the_engine_itself_and_says_so():
    """It is a daemonic process, which may have no child."""
    make = functools.partial(packed, mtp_mode=True, **STEPS)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "options: mtp_mode")  # the worker inherits that
        with pytest.raises(RuntimeWarning, match="mtp_mode=True has no effect in a daemonic proc"):
            next(iter(loader_of(make(), 1)))
    assert batches(loader_of(make(), 2)) == batches(packed(**STEPS))


def test_workers_end_when_the_loader_is_left():
    loader = loader_of(packed(runner="threads"), 2)
    items = iter(loader)
    next(items)
    pids = [worker.pid for worker in items._workers]
    del items
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_without_torch_it_is_refused():
    script = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from tests.properties.recipes import packed\n"
        "try: packed().to_torch_dataset()\n"
        "except RuntimeError as exc: assert isinstance(exc, ImportError); print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD
    )
    assert done.stdout.startswith("to_torch_dataset: torch is needed and is not installed; pip"), (
        done
    )
