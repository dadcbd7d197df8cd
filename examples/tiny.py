"""What the examples share: documents, a tokenizer, a pipeline over them, and a small model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from zephon import Dataset, Pipeline
from zephon.demo.material import make_code, make_prose, modules
from zephon.demo.tokenizer import train
from zephon.work import StaticMixtureWorkSource

ROWS = 16  # of a global step, on any number of ranks that divides it
MICROBATCH = 2  # rows of a batch, of one rank
LENGTH = 64  # tokens that the model sees of a row
VOCABULARY = 8192


def write_data(folder: Path) -> None:
    """Write two datasets and a tokenizer out of Python's own files, once; one process does it."""
    if not (folder / "tokenizer" / "tokenizer.json").exists():
        sources = modules()[:40]
        made = [make_prose(folder / "prose", sources), make_code(folder / "code", sources)]
        train(folder / "tokenizer", [text for dataset in made for text in dataset.texts])


def make_pipeline(folder: Path, rank: int, ranks: int, microbatch: int = MICROBATCH) -> Pipeline:
    """Describe what one rank reads; its batches hold so many rows."""
    names = ("prose", "code")
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path(name, folder / name) for name in names],
        mixture={"prose": 0.7, "code": 0.3},
        seed=42,
        exhausted_policy="repeat",
    )
    return (
        Pipeline(source)
        .tokenize(tokenizer_id=str(folder / "tokenizer"), field="text")
        .pack_flat(max_length=LENGTH + 1, algorithm="wrap")
        .batch(microbatch)
        .options(global_batch_size=ROWS, world_size=ranks, global_rank=rank)
    )


def batches_of_a_step(ranks: int) -> int:
    """Say how many batches one rank takes for a step."""
    return ROWS // MICROBATCH // ranks


class TinyModel(nn.Module):
    """Predict the next token from the last one and its position: enough to watch a loss fall."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(LENGTH, width)
        self.block = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss of a batch; all its labels count, for rows are full."""
        seen = self.tokens(batch["input_ids"]) + self.positions(batch["positions"])
        logits = self.block(seen) @ self.tokens.weight.T
        return functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


def digest(rows: torch.Tensor) -> str:
    """Name the tokens of a step: runs that agree in it were fed the same."""
    return hashlib.sha256(rows.cpu().numpy().tobytes()).hexdigest()[:12]
