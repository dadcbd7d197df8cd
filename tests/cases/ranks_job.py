"""One rank of a job, in a process of its own: `python -m tests.cases.ranks_job`.

The argument is JSON, the fields of `Job`; who this is stands in RANK and WORLD_SIZE, as torchrun
sets them. A rank appends a line for each step to a log of its own: the rows of its share. Data are
few, filtered and packed, so that lanes end at different rows.
"""

import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
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

    data: a folder of lines. out: the folder of logs, and of the checkpoint. meet: "dist", "torch",
    or a directory. stop: the step to save a checkpoint at, and to end; None: at the end of the
    data. options: further ones. die: the rank that kills itself, and where: "step" before it takes
    step `stop`, "part" before it gives its part of the checkpoint, "gather" within the collective,
    "write" while it writes its part. skew: hours by which each rank's clock is ahead of the one
    before.
    """

    data: str
    out: str
    meet: str
    stop: int | None = None
    options: dict = field(default_factory=dict)
    die: tuple[int, str] | None = None
    skew: float = 0.0

    @property
    def checkpoint(self):
        return Path(self.out) / "checkpoint"

    def command(self):
        return [sys.executable, "-m", "tests.cases.ranks_job", json.dumps(asdict(self))]


def described(data, rank=0, world=1, **options):
    """Describe a rank's pipeline; its data end."""
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
    return pipeline.batch(STEP // world).options(
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


def set_trap(where):
    """Let this process die in the middle of a round."""
    match where:
        case "part":
            import zephon.exec.ranks

            zephon.exec.ranks._part = kill
        case "gather":
            import zephon.coordination.collectives

            zephon.coordination.collectives.CollectiveRounds._gather = kill
        case "write":
            Path.replace = kill


def main():
    job = Job(**json.loads(sys.argv[1]))
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if job.skew:
        clock, ahead = time.time, 3600 * job.skew * rank
        time.time = lambda: clock() + ahead
    options = {"aggregate_timeout_s": 60.0, **job.options}
    if job.meet == "dist":
        import torch.distributed as dist

        dist.init_process_group("gloo")
    else:
        where = "aggregate_store" if job.meet == "torch" else "aggregate_dir"
        options[where] = "torch://" if job.meet == "torch" else job.meet
    pipeline = described(job.data, rank, world, **options)
    step = 0
    if job.checkpoint.exists():
        state = job.checkpoint.read_bytes()
        step = json.loads((Path(job.out) / "steps").read_text())
        pipeline.restore(state)
    doomed = job.die is not None and job.die[0] == rank
    items = iter(pipeline)
    with (Path(job.out) / f"{world}-{rank}.log").open("a") as log:
        while step != job.stop:
            if doomed and job.die[1] == "step" and step + 1 == job.stop:
                kill()
            batch = next(items, None)
            if batch is None:
                break
            log.write(f"{step} {rank} {told(batch)}\n")
            log.flush()
            step += 1
    if doomed:
        set_trap(job.die[1])
    state = pipeline.checkpoint(as_bytes=True)
    print(f"rank {rank}: step {step}, state {hashlib.sha256(state).hexdigest()}", flush=True)
    if rank == 0:
        (Path(job.out) / "steps").write_text(str(step))
        with written_atomically(job.checkpoint) as draft:
            draft.write_bytes(state)
    items.close()
    if job.meet == "dist":
        import torch.distributed as dist

        dist.destroy_process_group()


__all__ = ["LANES", "ROOT", "STEP", "Job", "described", "told"]

if __name__ == "__main__":
    main()
