"""A job that is resized, killed and started again at random, until its data end; then another.

`--resizes` says how many times ranks are started in all (two in `make test`, two hundred in `make
soak`). Whatever they meet by, and whether their engines are in processes of their own: all that
they ever hand out is what one process hands out that is never stopped.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.cases.ranks_job import ROOT, STEP, Job, described, told
from tests.served_bucket import served_bucket
from tests.written import lines

SECONDS = 240  # a guard against hanging
MARK = "ZEPHON_TEST_RUN"  # in the environment of all processes of a run
WORLDS = (1, 2, 3, 4, 6, 8)

WHERE = {
    "dist": ("step", "soon", "part", "gather", "meet"),
    "torch": ("step", "soon", "part", "set", "get", "answer"),
    "directory": ("step", "soon", "part", "set", "get", "answer", "write"),
    "bucket": ("step", "soon", "part", "set", "get", "answer"),
}
"""Where a rank may die, by what ranks meet in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is started: so many ranks of a job, by torchrun or by forks of one process.

    again: ranks that torchrun starts again after one died.
    """

    job: Job
    world: int
    by_torchrun: bool
    again: bool = False

    @property
    def fails(self):
        """Whether one rank dies, for good, and the others are ended."""
        return self.job.die is not None and not self.again

    def command(self):
        module, *arguments = self.job.command()[2:]
        if not self.by_torchrun:
            return ["-m", "tests.cases.forked_ranks", str(self.world), module, *arguments]
        ranks = f"--nproc-per-node={self.world}"
        lives = f"--max-restarts={int(self.again)}"
        return [
            "-m", "torch.distributed.run", "--standalone", ranks, lives, "-m", module, *arguments
        ]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(11)
    for shard in range(4):
        rows = [
            {"input_ids": [10_000 * shard + 40 * i + n for n in range(rng.integers(1, 33))], "k": i}
            for i in range(400 + 150 * shard)
        ]
        lines(folder, f"{shard}.jsonl", rows)
    return str(folder)


@pytest.fixture(scope="module")
def whole(data):
    """The words of each step, of one process that is never stopped."""
    steps = [told(batch).split() for batch in described(data, runner="inline")]
    assert len(steps) > 20
    return steps


@pytest.fixture(scope="module")
def bucket():
    with served_bucket() as url:
        yield url


def drawn(rng, job, done, last, place):
    """Draw how the job goes on behind the steps that are done.

    place: gives the directory or bucket to meet in.
    """

    def one_of(*choices):
        return choices[rng.integers(len(choices))]

    world, meet = one_of(*WORLDS), one_of(*WHERE)
    hosted, stop = bool(rng.random() < 0.4), done + 1 + int(rng.integers(8))
    share = STEP // world
    options = {"mtp_mode": True} if hosted else {"prefetch_batches": one_of(1, 2, 8)}
    job = replace(
        job,
        meet=place(meet) if meet in ("directory", "bucket") else meet,
        stop=stop if stop < last else None,
        every=one_of(None, 1, 2, 3),
        parts=one_of(*(parts for parts in (1, 2, 3) if share % parts == 0)),
        options=options,
        skew=one_of(0.0, 0.0, -30.0),
    )
    if rng.random() < 0.5:
        rank, where = int(rng.integers(world)), one_of(*WHERE[meet])
        if world == 1:  # there is nobody to meet
            where = one_of("step", "write")
        if where == "answer" or (where == "write" and (meet != "directory" or world == 1)):
            rank = 0  # which alone does that
        if hosted and rng.random() < 0.2:
            where = "engine"
        most = last if job.stop is None else stop
        job = replace(job, die=(rank, where, done + int(rng.integers(most - done))))
    by_torchrun, again = bool(rng.random() < 0.7), bool(rng.random() < 0.4)
    # Ranks that torchrun starts again fail in init_process_group of this torch: gloo goes by the
    # addresses of those before.
    return Run(
        job=job,
        world=world,
        by_torchrun=by_torchrun,
        again=by_torchrun and again and meet != "dist",
    )


def run_out(run):
    """Run it; give its exit code, and what it complained of. Nothing of it is left."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, *run.command()],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, complaints = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        for each in alive(mark):
            os.kill(each, signal.SIGKILL)
        raise
    gone(mark)
    return process.returncode, complaints


def gone(mark):
    """Wait until all processes have ended that have a mark in their environment."""
    deadline = time.monotonic() + 30
    while left := alive(mark):
        assert time.monotonic() < deadline, f"processes {left} outlive what began them"
        time.sleep(0.02)


def alive(mark):
    """Give the processes that have a mark in their environment; those that ended have none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it is gone, or another user's
            continue
    return found


def handed_out(run, whole):
    """Give the steps that ranks wrote into their logs; their rows are those of the whole."""
    steps, share = {}, STEP // run.world
    for log in Path(run.job.logs).glob("*.log"):
        for line in log.read_text().splitlines():
            step, rank, *words = line.split(" ")
            at = int(rank) * share
            assert words == whole[int(step)][at : at + share], (step, rank, run)
            steps.setdefault(int(step), set()).add(int(rank))
    return {step for step, ranks in steps.items() if len(ranks) == run.world}


def test_a_job_that_is_resized_and_killed_hands_out_what_one_process_does(
    data, whole, tmp_path, request, pytestconfig
):
    def place(kind):
        if kind == "directory":
            return str(tmp_path / "meet")
        return f"{request.getfixturevalue('bucket')}/meet"

    rng = np.random.default_rng(1585)  # the first two starts are small, and one is killed
    job, came = None, set()
    for number in range(pytestconfig.getoption("resizes")):
        if job is None:
            job, came, done = Job(data=data, out=str(tmp_path / f"{number}"), meet="dist"), set(), 0
            Path(job.out).mkdir()
        logs = tmp_path / f"logs {number}"
        logs.mkdir()
        run = drawn(rng, replace(job, logs=str(logs)), done, len(whole), place)
        code, complaints = run_out(run)
        may_fail = run.job.die is not None and run.job.die[1] == "soon"
        assert bool(code) == run.fails or may_fail, f"{run}\n{complaints[-4000:]}"
        came |= handed_out(run, whole)
        before, done = done, saved(job, data)
        assert done >= before
        if not code:
            assert done == (run.job.stop or len(whole)), run
            if run.job.stop is None:
                assert came == set(range(len(whole)))
                job = None


def saved(job, data):
    """Give the step at which the checkpoint stands, which one process can restore."""
    if not job.checkpoint.exists():
        return 0
    pipeline = described(data, runner="inline").restore(job.checkpoint.read_bytes())
    return pipeline.checkpoint(scope="local")["position"]["step"]
