"""One rank of a job in torch's loaders: `tests.cases.loader_job`, as `forked_ranks` starts it.

The arguments are a folder for what each rank was handed out, and JSON: a list of `Part`. Rows are
dropped by a function and packed, so that lanes end apart; no expression of Polars is in it, whose
threads would be lost in forked workers.
"""

import io
import json
import multiprocessing
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from tests.cases.ranks_job import told
from tests.properties.recipes import lengths, source, token_dataset
from zephon import Pipeline

STEP, MICRO = 24, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run of all ranks, one of several that a job has.

    meet: where ranks do; None: by torch.distributed, which runs in every part. workers, prefetch:
    of the loader; 0 workers: the pipeline itself. stop: the batch of a rank to save a checkpoint
    after, and to end; None: the end of the data. epochs: of the loader. first: the ranks meet
    before there are workers. slow: seconds that rank 1 trains on each batch. cuts: batches of a
    rank after which another loader, over another pipeline, goes on from the state of the first.
    context: how workers come to be; after the first cut they are forked.
    """

    name: str
    meet: str | None = None
    workers: int = 0
    prefetch: int | None = None
    context: str = "fork"
    stop: int | None = None
    epochs: int = 1
    first: bool = False
    slow: float = 0.0
    cuts: tuple[int, ...] = ()


def most(payload):
    return payload if payload["input_ids"][0] // 1000 % 3 else None


def described(rank=0, world=1, **options):
    """Describe a rank's pipeline; its data end."""
    settings = {"chunk_size": 8, "shuffle_within_shard": True, "exhausted_policy": "stop"}
    counts = [n + 1 for n in lengths(5, 1000, most=32)]
    return (
        Pipeline(source([token_dataset("prose", counts, 3)], **settings))
        .map_transform(most)
        .pack_flat(33, algorithm="best_fit", num_bins=4, pad_token_id=0)
        .batch(MICRO)
        .options(
            runner="threads",
            max_workers=1,
            global_batch_size=STEP,
            canonical_replicas=8,
            dp_degree=world,
            dp_group_id=rank,
            aggregate_timeout_s=30.0,
        )
        .options(**options)
    )


def loader_of(pipeline, part, context="fork"):
    kind = StatefulDataLoader if part.cuts else DataLoader
    return kind(
        pipeline.to_torch_dataset(),
        batch_size=None,
        num_workers=part.workers,
        prefetch_factor=part.prefetch,
        multiprocessing_context=context if part.workers else None,
        timeout=90 if part.workers else 0,
    )


def ran(part, rank, world, out):
    """Run a part; give the rows of each batch of each epoch, and what it failed with."""
    place = {}
    if part.meet is not None:
        place["aggregate_store" if "://" in part.meet else "aggregate_dir"] = part.meet
    if part.cuts:
        return [cut(part, lambda run: described(rank, world, run_id=run, **place))], ""
    pipeline, found = described(rank, world, run_id=part.name, **place), []
    if part.first:
        pipeline.checkpoint()
    loader = loader_of(pipeline, part) if part.workers else pipeline
    for _ in range(part.epochs):
        found.append([])
        items = iter(loader)
        try:
            while len(found[-1]) != part.stop and (batch := next(items, None)) is not None:
                found[-1].append(told(batch).split())
                time.sleep(part.slow * rank)
        except RuntimeWarning as warning:
            return found, str(warning)
    if part.stop is not None:
        dcp.save({"loader": pipeline}, checkpoint_id=out / part.name)
        items.close()
    return found, ""


def cut(part, make):
    """Give the rows of each batch of loaders of which each goes on from the one before."""
    found, state = [], None
    for number, stop in enumerate([*part.cuts, None]):
        context = "fork" if number else part.context
        loader = loader_of(make(f"{part.name}-{number}"), part, context)
        if state is not None:
            loader.load_state_dict(torch.load(state, weights_only=True))
        items = iter(loader)
        while len(found) != stop and (batch := next(items, None)) is not None:
            found.append(told(batch).split())
        state = io.BytesIO()
        torch.save(loader.state_dict(), state)
        state.seek(0)
        del items, loader  # its workers end
    return found


def main():
    # Modules that servers of forks load once, and not each of their workers.
    multiprocessing.set_forkserver_preload(["tests.cases.loader_job", "zephon.running"])
    out, parts = Path(sys.argv[1]), [Part(**each) for each in json.loads(sys.argv[2])]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    warnings.simplefilter("error", RuntimeWarning)
    dist.init_process_group("gloo")
    for part in parts:
        (out / f"{part.name}-{rank}.json").write_text(json.dumps(ran(part, rank, world, out)))
        dist.barrier()
    dist.destroy_process_group()
