"""Ranks whose batches come through torch: of loaders with workers, and with its checkpoints.

All ranks together hand out what one process does, step by step.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from itertools import chain

import pytest
import torch.distributed.checkpoint as dcp

from tests.cases.loader_job import MICRO, STEP, Part, described
from tests.cases.ranks_job import ROOT, told
from tests.free_port import free_port

RANKS = 2
BATCHES = STEP // RANKS // MICRO  # of a rank in a step
SECONDS = 240  # a guard against hanging

PARTS = [
    Part(name="saved", stop=3 * BATCHES),
    Part(name="directory", meet="meet", workers=2, prefetch=1, epochs=2),
    Part(name="hosted", meet="torch://127.0.0.1:", workers=2, prefetch=1, slow=0.05),
    Part(name="met", meet="torch://127.0.0.1:", workers=2, prefetch=2, first=True),
    Part(name="apart", workers=1),
    Part(name="no workers, cut", meet="meet", cuts=(1, 7, 20)),
    Part(name="forked, cut", meet="meet", workers=3, cuts=(4, 17)),
    Part(name="hosted, cut", meet="torch://127.0.0.1:", workers=5, prefetch=1, cuts=(11,)),
    Part(name="fresh, cut", meet="meet", workers=2, context="forkserver", cuts=(9, 30)),
]


@pytest.fixture(scope="module")
def whole():
    """The rows of each step, of one process."""
    rows = [word for batch in described(runner="inline") for word in told(batch).split()]
    assert len(rows) > 8 * STEP
    return [rows[at : at + STEP] for at in range(0, len(rows), STEP)]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What all parts wrote, which the same ranks ran one after the other."""
    folder = tmp_path_factory.mktemp("out")
    parts = [asdict(part) for part in PARTS]
    for part in parts:
        if part["meet"] is not None:
            here = str(folder / "meet")
            part["meet"] = here if part["meet"] == "meet" else f"{part['meet']}{free_port()}"
    command = [sys.executable, "-m", "tests.cases.forked_ranks", str(RANKS)]
    launcher = subprocess.Popen(
        [*command, "tests.cases.loader_job", str(folder), json.dumps(parts)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, complaints = launcher.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        raise
    assert launcher.returncode == 0, complaints[-4000:]
    return folder


def handed_out(out, name):
    """Give the rows of each step of each epoch, rank after rank."""
    ranks = [json.loads((out / f"{name}-{rank}.json").read_text()) for rank in range(RANKS)]
    assert [failed for _, failed in ranks] == [""] * RANKS
    epochs = []
    for each in zip(*(epochs for epochs, _ in ranks), strict=True):
        counts = {len(batches) for batches in each}
        assert len(counts) == 1 and not max(counts) % BATCHES
        epochs.append(
            [
                list(chain.from_iterable(row for own in each for row in own[at : at + BATCHES]))
                for at in range(0, max(counts), BATCHES)
            ]
        )
    return epochs


@pytest.mark.parametrize("name", ["directory", "hosted", "met"])
def test_workers_on_ranks_end_together_with_the_steps_of_one_process(whole, out, name):
    """Wherever they meet; a store by its address outlives the workers that end first."""
    epochs = handed_out(out, name)
    assert epochs == [whole] * len(epochs)


@pytest.mark.parametrize("name", [part.name for part in PARTS if part.cuts])
def test_stateful_loaders_on_ranks_go_on_where_they_were_left(whole, out, name):
    """However their workers come to be; cuts fall inside steps, and each rank keeps its state."""
    assert handed_out(out, name) == [whole]


def test_workers_that_cannot_meet_are_told(out):
    """A process group is not in a worker, though a forked one seems to have it."""
    for rank in range(RANKS):
        _, failed = json.loads((out / f"apart-{rank}.json").read_text())
        assert "ranks that meet by torch.distributed cannot do so in workers of a Data" in failed


def test_a_distributed_checkpoint_of_two_ranks_goes_on_with_one(whole, out):
    assert handed_out(out, "saved") == [whole[:3]]
    one = described(runner="inline")
    dcp.load({"loader": one}, checkpoint_id=out / "saved")
    rows = [word for batch in one for word in told(batch).split()]
    assert rows == list(chain.from_iterable(whole[3:]))
