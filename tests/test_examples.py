"""Examples run as they say: two ranks, then one, are fed and trained as one that runs through."""

import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SECONDS = 240  # a guard against hanging
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
ACCELERATE = ("-m", "accelerate.commands.launch", "--cpu", "--num_processes")


@pytest.fixture(scope="module")
def tiny():
    """What the examples share, as their directory's neighbours import it."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(EXAMPLES)
    import tiny

    yield tiny
    patch.undo()


@pytest.fixture(scope="module")
def made(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    tiny.write_data(folder)
    return folder


@pytest.fixture(scope="module")
def whole(tiny, made):
    """Losses and names of rows of four steps that one process takes by itself."""
    torch.manual_seed(0)
    model = tiny.TinyModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    batches = tiny.make_pipeline(made, 0, 1, tiny.ROWS).options(runner="inline")
    for batch in islice(batches, 4):
        tensors = batch.to_training(return_labels=True)
        loss = model(tensors)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append((loss.item(), tiny.digest(tensors["input_ids"])))
    assert len({rows for _, rows in found}) == 4
    return found


def printed(*arguments):
    """Run Python on one thread; give step, loss and rows of the lines that it prints."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=settings, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    lines = re.findall(r"^step (\d+): loss (\S+), rows (\w+)$", done.stdout, re.MULTILINE)
    return [(int(step), float(loss), rows) for step, loss, rows in lines]


@pytest.mark.parametrize(
    ("launcher", "file", "devices"),
    [
        (TORCHRUN, "train_ddp.py", ()),
        (ACCELERATE, "train_accelerate.py", ()),
        ((), "train_lightning.py", ("--devices",)),
        (TORCHRUN, "train_hf_trainer.py", ()),
    ],
    ids=["ddp", "accelerate", "lightning", "hf trainer"],
)
def test_an_example_goes_on_with_fewer_ranks(made, whole, tmp_path, launcher, file, devices):
    for name in ("prose", "code", "tokenizer"):
        (tmp_path / name).symlink_to(made / name)

    def run(ranks, steps):
        start = [*launcher, ranks] if launcher else []
        of = [*devices, ranks] if devices else []
        return printed(*start, EXAMPLES / file, *of, "--steps", steps, "--out", tmp_path)

    found = [*run(2, 2), *run(1, 4)]
    assert [(step, rows) for step, _, rows in found] == [
        (step, rows) for step, (_, rows) in enumerate(whole)
    ]
    for (_, loss, _), (wanted, _) in zip(found, whole, strict=True):
        assert loss == pytest.approx(wanted, abs=2e-5)  # they print five digits
