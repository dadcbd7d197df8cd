"""Ranks in processes of their own: resized between runs, killed in the middle, with clocks apart.

What all ranks of a job hand out in a step is what one process hands out, in the same order.
"""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.cases.ranks_job import ROOT, STEP, Job, described, told
from tests.free_port import free_port
from tests.written import lines

SECONDS = 240  # a guard against hanging


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(3)
    for shard in range(3):
        rows = [
            {"input_ids": [10_000 * shard + 40 * i + n for n in range(rng.integers(1, 33))], "k": i}
            for i in range(300 + 90 * shard)
        ]
        lines(folder, f"{shard}.jsonl", rows)
    return str(folder)


@pytest.fixture(scope="module")
def whole(data):
    """What one process hands out, a line for each step."""
    steps = [told(batch) for batch in described(data, runner="inline")]
    assert len(steps) > 14
    return steps


def by_torchrun(job, world, *arguments):
    """Run all ranks as torchrun starts them; give what they print."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        f"--nproc-per-node={world}", *arguments, "-m", *job.command()[2:],
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def started(job, world):
    """Start each rank by itself, as a cluster does; give the processes."""
    port = str(free_port())
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world)}
    return [
        subprocess.Popen(
            job.command(),
            cwd=ROOT,
            env={**os.environ, **place, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


def ended(processes):
    """Give the exit code and the last line of complaints of each rank."""
    found = []
    for process in processes:
        _, complaints = process.communicate(timeout=SECONDS)
        found.append((process.returncode, (complaints.strip().splitlines() or [""])[-1]))
    return found


def handed_out(out):
    """Put the logs of all ranks together, step after step."""
    steps = {}
    for log in out.glob("*.log"):
        for line in log.read_text().splitlines():
            step, rank, words = line.split(" ", 2)
            steps.setdefault(int(step), {})[int(rank)] = words
    return [" ".join(steps[step][rank] for rank in sorted(steps[step])) for step in sorted(steps)]


def states(printed):
    return set(re.findall(r"state ([0-9a-f]{64})", printed))


@pytest.mark.parametrize(
    ("meet", "worlds"), [("dist", (2, 3)), ("torch", (4, 1)), ("directory", (8, 6))]
)
def test_a_job_goes_on_with_more_and_with_fewer_ranks(data, whole, tmp_path, meet, worlds):
    """In the directory lies what the first, larger job left."""
    place = str(tmp_path / "meet") if meet == "directory" else meet
    for world, stop in zip(worlds, (6, None), strict=True):
        printed = by_torchrun(Job(data=data, out=str(tmp_path), meet=place, stop=stop), world)
        assert len(states(printed)) == 1 and printed.count("state ") == world
    assert handed_out(tmp_path) == whole


def test_clocks_that_differ_by_hours_do_not_matter(data, whole, tmp_path):
    job = Job(data=data, out=str(tmp_path), meet=str(tmp_path / "meet"), skew=-30)
    assert [code for code, _ in ended(started(job, 3))] == [0] * 3
    assert handed_out(tmp_path) == whole


@pytest.fixture(scope="module")
def saved(data, tmp_path_factory):
    """A job of two ranks that ended at step 3: its folder."""
    folder = tmp_path_factory.mktemp("saved")
    job = Job(data=data, out=str(folder), meet=str(folder / "meet"), stop=3)
    assert [code for code, _ in ended(started(job, 2))] == [0, 0]
    return folder


@pytest.mark.parametrize(
    ("meet", "where"),
    [("dist", "step"), ("dist", "gather"), ("directory", "step"), ("directory", "part"),
     ("directory", "write"), ("torch", "part")],
)  # fmt: skip
def test_a_killed_rank_is_missed_and_the_job_goes_on(data, whole, saved, tmp_path, meet, where):
    """Who goes on has the last checkpoint, and trains again on what came after it."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    place = str(tmp_path / "meet") if meet == "directory" else meet
    options = {"aggregate_timeout_s": 6.0}
    job = Job(
        data=data,
        out=str(tmp_path),
        meet=place,
        stop=6,
        die=(1, where, 5 if where == "step" else 6),
        options=options,
    )
    (code, last), (killed, _) = ended(started(job, 2))
    assert (code, killed) == (1, -9) and "CoordinationError" in last, last
    if meet != "dist":  # there, the connection breaks at once
        assert "no word from rank 1 (lanes 4, 5, 6, 7) within 6 s" in last
    assert job.checkpoint.read_bytes() == (saved / "checkpoint").read_bytes()
    again = described(data, runner="inline").restore(job.checkpoint.read_bytes())
    assert [told(batch) for batch in again] == whole[3:]


def test_one_process_with_the_same_data_has_as_many_steps(data, whole):
    """The last step is whole: what lanes hold beyond it is nobody's."""
    assert {len(step.split()) for step in whole} == {STEP}
