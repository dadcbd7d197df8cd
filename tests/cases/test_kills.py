"""Real processes: others go on from checkpoints on disk, and some are killed while they write them.

`--kills` says how many are killed in all (ten in `make test`, two hundred in `make soak`).
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cases.resuming_job import (
    JOBS,
    ROOT,
    STEP,
    Start,
    described,
    lines_of,
    saved,
    write_data,
)

RUNNERS = ("inline", "threads", "process")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resuming")
    write_data(folder)
    return folder


class Whole:
    """The uninterrupted run, as lines, made as far as somebody asks."""

    def __init__(self, folder, job):
        start = Start(job=job, folder=str(folder), left="", log="", options={"runner": "inline"})
        self._items = iter(described(start))
        self._lines = []

    def some(self, first, stop):
        while len(self._lines) < stop:
            self._lines += lines_of(next(self._items))
        return self._lines[first:stop]


def started(start):
    """Begin a process, in the way a shell would."""
    return subprocess.Popen(
        start.command(), cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    )


def finished(process):
    complaints = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 0, complaints


def log_of(start):
    """Give the rows before a process, None until it says so, and the whole lines that it wrote."""
    path = Path(start.log)
    told = path.read_text().split("\n")[:-1] if path.exists() else []
    return (int(told[0]), told[1:]) if told else (None, [])


PHASES = (
    # ranks, rows of each rank, microbatch, options
    (1, [2 * STEP], 4, {"runner": "inline"}),
    (3, [2 * STEP // 3] * 3, 8, {"runner": "threads", "memory_budget": "8kb"}),
    (2, [12 + 5, 12 + 9], 1, {"runner": "process", "max_workers": 1}),  # within a step
    (2, [7 + 12, 3 + 12], 1, {"runner": "inline", "memory_budget": "100kb"}),
    (4, [2 * STEP // 4] * 4, 3, {"runner": "threads", "prefetch_batches": 5}),
)


def test_a_dozen_processes_go_on_from_one_another(folder, tmp_path):
    """A rank is a process; each goes on from what all of those before it left."""
    whole, found, step, before = Whole(folder, "shuffled"), (), 0, [0]
    for phase, (degree, rows, microbatch, options) in enumerate(PHASES):
        starts = [
            Start(
                job="shuffled",
                folder=str(folder),
                degree=degree,
                group=group,
                microbatch=microbatch,
                rows=rows[group],
                every=STEP,
                found=found,
                left=str(tmp_path / f"{phase}-{group}.json"),
                log=str(tmp_path / f"{phase}-{group}.log"),
                options=options,
            )
            for group in range(degree)
        ]
        for process in [started(start) for start in starts]:
            finished(process)
        share = STEP // degree
        before = before if any(before) else [0] * degree
        for start in starts:
            steps = range(step * STEP + start.group * share, (step + 4) * STEP, STEP)
            wanted = [line for first in steps for line in whole.some(first, first + share)]
            handed_out = before[start.group]
            assert log_of(start)[1] == wanted[handed_out : handed_out + start.rows], start
        after = [had + more for had, more in zip(before, rows, strict=True)]
        step += min(after) // share
        before = [rows - min(after) // share * share for rows in after]
        found = tuple(start.left for start in starts)
    assert sum(degree for degree, *_ in PHASES) == 12
    assert (step, before) == (9, [0] * 4)


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("job", JOBS)
def test_killed_at_any_moment_the_next_one_goes_on(folder, tmp_path, job, pytestconfig):
    place = list(JOBS).index(job)
    kills = len(range(place, pytestconfig.getoption("kills"), len(JOBS)))
    rng = np.random.default_rng(place)
    whole, kept = Whole(folder, job), tmp_path / "state.json"
    most = 0
    for number in range(kills + 1):
        done = saved(kept)[0] if kept.exists() else 0
        degree = int(rng.choice([1, 1, 2, 3])) if done % STEP == 0 else 1
        left = (STEP - done % STEP) // degree
        start = Start(
            job=job,
            folder=str(folder),
            degree=degree,
            microbatch=int(rng.choice([size for size in (1, 2, 3, 4, 6) if left % size == 0])),
            rows=most + 2 * STEP if number == kills else None,
            every=int(rng.choice([1, 2, 5, 12, STEP])),
            found=(str(kept),),
            left=str(kept),
            log=str(tmp_path / f"{number}.log"),
            options={
                "runner": RUNNERS[int(rng.integers(3))],
                "memory_budget": str(rng.choice(["8kb", "100kb"])),
            },
        )
        process = started(start)
        if number == kills:
            finished(process)
        else:
            kill(process, start, rng)
        first, lines = log_of(start)
        assert first in (done, None)
        assert lines == whole.some(done, done + len(lines)), start
        most = max(most, done + len(lines))
    assert (done + len(lines), saved(kept)[0]) == (most, most)


def kill(process, start, rng):
    """Let a process run for a while; kill it. Its workers end with it, and nothing torn is left."""
    early = rng.random() < 0.2  # while it imports, or restores
    deadline = time.monotonic() + 60
    while not early and len(log_of(start)[1]) < 1 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 1.0 if early else 0.3))
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    complaints = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL, complaints
    deadline = time.monotonic() + 20
    while any(map(alive, workers)):
        assert time.monotonic() < deadline, f"workers {workers} outlive the process that had them"
        time.sleep(0.01)


def children(pid):
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for some in lists for child in some.read_text().split()]


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"
