"""One rank of a job, in a process of its own: `python -m tests.cases.ranks_job`.

The argument is JSON, the fields of `Job`; who this is stands in RANK and WORLD_SIZE, as torchrun
sets them. A rank appends a line for each step to a log of its own: the rows of its share. Data are
few, filtered and packed, so that lanes end at different rows.
"""

import hashlib
import json
import os
import random
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import polars as pl

from tests.cases.resuming_job import ROOT
from tests.properties.recipes import rows_of
from zephon import Dataset, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.io.atomic import written_atomically

STEP = 24
LANES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all ranks of a job are told.

    data: a folder of lines. out: the folder of the checkpoint. logs: that of logs, by default the
    same. meet: "dist", "torch", a directory, or a bucket. stop: the step to save a checkpoint at,
    and to end; None: at the end of the data. every: steps between further checkpoints. parts:
    batches of a rank in a step. options: further ones. die: the rank that kills itself, in its
    first life alone, where, and from which step on; `set_trap` says where that may be. skew: hours
    by which each rank's clock is ahead of the one before.
    """

    data: str
    out: str
    meet: str
    logs: str | None = None
    stop: int | None = None
    every: int | None = None
    parts: int = 1
    options: dict = field(default_factory=dict)
    die: tuple[int, str, int] | None = None
    skew: float = 0.0

    @property
    def checkpoint(self):
        return Path(self.out) / "checkpoint"

    def command(self):
        return [sys.executable, "-m", "tests.cases.ranks_job", json.dumps(asdict(self))]


def described(data, rank=0, world=1, parts=1, **options):
    """Describe a rank's pipeline, which gives so many batches a step; its data end."""
    work = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("prose", data, schema={"k": "int64"})],
        mixture=MixtureSpec({"prose": 1.0}),
        seed=7,
        chunk_size=8,
        shuffle_within_shard=True,
        exhausted_policy="stop",
    )
    pipeline = Pipeline(work).filter(pl.col("k") % 3 > 0).shuffle(16, seed=2)
    pipeline = pipeline.pack_flat(33, algorithm="best_fit", num_bins=4, pad_token_id=0)
    given = {"runner": "threads", "max_workers": 1, **options}
    return pipeline.batch(STEP // world // parts).options(
        global_batch_size=STEP,
        canonical_replicas=LANES,
        dp_degree=world,
        dp_group_id=rank,
        **given,
    )


def told(batch):
    """Give a word for each row of a batch."""
    return " ".join(
        hashlib.blake2b(repr(row).encode(), digest_size=6).hexdigest() for row in rows_of(batch)
    )


def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def lay(place, name):
    """Put a trap in the place of a function, which must be there: else nobody would step on it."""
    assert hasattr(place, name), f"{place} has no {name}"
    setattr(place, name, kill)


def set_trap(where, pipeline):
    """Let this process die at once, or where it comes to next in a round, or while it writes.

    "step": now. "soon": within 0.3 s, wherever it is. "engine": now, the process that hosts its
    engine. "part": before it gives its part of a checkpoint. "gather", "meet": within a collective.
    "set", "get": before it writes or looks where ranks meet. "answer": of the rank that leads,
    before the others hear from it. "write": before what it has written gets its name.
    """
    from zephon.coordination import c10d, collectives, directory, objects, rounds
    from zephon.exec import ranks

    match where:
        case "step":
            kill()
        case "soon":
            threading.Timer(random.uniform(0, 0.3), kill).start()
        case "engine":
            os.kill(pipeline._engine.process_id, signal.SIGKILL)
        case "part":
            lay(ranks, "_part")
        case "gather" | "meet":
            lay(collectives.CollectiveRounds, f"_{where}")
        case "set" | "get":
            for store in (c10d.C10dStore, directory.DirectoryStore, objects.ObjectStore):
                lay(store, where)
        case "answer":
            lay(rounds._Round, "_publish")
        case "write":
            Path.replace = kill


def meeting(meet):
    """Say in options where ranks meet, or let torch.distributed run."""
    if meet == "dist":
        import torch.distributed as dist

        dist.init_process_group("gloo")
        return {}
    return {"aggregate_store": "torch://"} if meet == "torch" else {"aggregate_dir": meet}


class Saving:
    """One rank's pipeline, and the checkpoint that it shares with others."""

    def __init__(self, job, pipeline, rank):
        self.job, self.pipeline, self.rank = job, pipeline, rank
        self.step = 0
        if job.checkpoint.exists():
            pipeline.restore(job.checkpoint.read_bytes())
            self.step = pipeline.checkpoint(scope="local")["position"]["step"]

    def save(self):
        state = self.pipeline.checkpoint(as_bytes=True)
        if self.rank == 0:
            with written_atomically(self.job.checkpoint) as draft:
                draft.write_bytes(state)
        return hashlib.sha256(state).hexdigest()

    def steps(self):
        """Give the step and its batches, until that to stop at; save as often as told."""
        items, job = iter(self.pipeline), self.job
        doomed = job.die and job.die[0] == self.rank
        doomed = doomed and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        while True:
            if doomed and self.step == job.die[2]:
                set_trap(job.die[1], self.pipeline)
            if self.step == job.stop:
                return items.close()
            batches = list(islice(items, job.parts))
            if not batches:
                return None
            yield self.step, batches
            self.step += 1
            if job.every and not self.step % job.every and self.step != job.stop:
                self.save()


def main():
    job = Job(**json.loads(sys.argv[1]))
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if job.skew:
        clock, ahead = time.time, 3600 * job.skew * rank
        time.time = lambda: clock() + ahead
    options = {"aggregate_timeout_s": 60.0, **job.options, **meeting(job.meet)}
    run = Saving(job, described(job.data, rank, world, job.parts, **options), rank)
    with (Path(job.logs or job.out) / f"{world}-{rank}.log").open("a") as log:
        for step, batches in run.steps():
            log.write(f"{step} {rank} {' '.join(map(told, batches))}\n")
            log.flush()
    print(f"rank {rank}: step {run.step}, state {run.save()}", flush=True)
    if job.meet == "dist":
        import torch.distributed as dist

        dist.destroy_process_group()


__all__ = ["LANES", "ROOT", "STEP", "Job", "described", "told"]

if __name__ == "__main__":
    main()
