"""Trainers that are resized: the same rows exactly, and the same losses, as one that never was.

Nine steps in two or three parts, on other numbers of ranks. Where there is one, it is this process.
"""

import json
import os
import signal
import subprocess
import sys
from bisect import bisect
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.cases.chains import write_data
from tests.cases.resuming_job import ROOT
from tests.cases.trainers_job import STEP, TRAINERS, Job

SECONDS = 240  # a guard against hanging
WHOLE = 9  # steps


def on_ranks(job, world):
    """Run a job on ranks of its own; end them all if they hang."""
    module, *arguments = job.command()
    command = [sys.executable, "-m", "tests.cases.forked_ranks", str(world), module, *arguments]
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    launcher = subprocess.Popen(
        command, cwd=ROOT, env=settings, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _, complaints = launcher.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        raise
    assert launcher.returncode == 0, complaints[-4000:]


def steps_of(out):
    """Give losses, and rows by the rank of their data, of each step; peers have said the same."""
    losses, rows = {}, {}
    for log in out.glob("*.log"):
        for line in log.read_text().splitlines():
            step, rank, loss, some = json.loads(line)
            losses.setdefault(step, []).append(loss)
            assert rows.setdefault(step, {}).setdefault(rank, some) == some
    return losses, {
        step: [row for rank in sorted(by) for row in by[rank]] for step, by in rows.items()
    }


@pytest.mark.parametrize(
    ("trainer", "worlds", "peers", "options"),
    [
        ("titan", (2, 1), 1, {"runner": "process", "max_workers": 1, "mtp_mode": True}),
        ("megatron", (4, 1), 2, {"runner": "threads", "mtp_mode": True}),
        ("automodel", (4, 2, 1), 2, {}),
    ],
    ids=["sharded models", "one of two has the data", "two share their data"],
)
def test_a_resized_trainer_trains_as_one_that_never_was(
    tmp_path, tokenizer_file, trainer, worlds, peers, options
):
    write_data(tmp_path)
    job = Job(
        trainer=trainer, data=str(tmp_path), tokenizer=tokenizer_file, out=str(tmp_path / "out"),
        stop=WHOLE, options=options,
    )  # fmt: skip
    plain = replace(job, out=str(tmp_path / "plain"), options={"runner": "inline"})
    for each in (job, plain):
        Path(each.out).mkdir()
    TRAINERS[trainer](plain).run()
    stops = [WHOLE * (number + 1) // len(worlds) for number in range(len(worlds))]
    for world, stop in zip(worlds, stops, strict=True):
        part = replace(job, stop=stop, peers=peers)
        on_ranks(part, world) if world > 1 else TRAINERS[trainer](part).run()

    wanted_losses, wanted = steps_of(tmp_path / "plain")
    losses, found = steps_of(tmp_path / "out")
    assert found == wanted and {len(rows) for rows in wanted.values()} == {STEP}
    assert len({row for rows in wanted.values() for row in rows}) > 4 * WHOLE
    ran = [worlds[bisect(stops, step)] for step in range(WHOLE)]
    assert [len(losses[step]) for step in range(WHOLE)] == ran
    for step, each in losses.items():
        want = torch.tensor(wanted_losses[step]).expand(len(each))
        torch.testing.assert_close(torch.tensor(each), want, rtol=1e-5, atol=0)
    assert wanted_losses[WHOLE - 1] < wanted_losses[0]
