"""Lightning, resumed with any number of devices that divides a step.

    python examples/train_lightning.py --devices 2 --steps 5
    python examples/train_lightning.py --devices 1 --steps 10

A batch is a rank's whole share of a step, so that Lightning counts the same steps whatever the
devices. The loader has a length: of one without, Lightning takes a batch more than it trains on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lightning
import torch
from tiny import LENGTH, ROWS, TinyModel, digest, make_pipeline, write_data

from zephon import Pipeline

EPOCH = 1000  # steps that Lightning calls an epoch; the data go on behind it


class Batches:
    """One stream of a pipeline; each epoch goes on with it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.stream = iter(pipeline)

    def __len__(self) -> int:
        """Count the steps of an epoch."""
        return EPOCH

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give tensors; Lightning brings them to the device."""
        for batch in islice(self.stream, EPOCH):
            yield batch.to_training(return_labels=True, exclude_fields=("ids", "texts"))


class Documents(lightning.LightningDataModule):
    """What this rank reads, and where it stands."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def prepare_data(self) -> None:
        """Write the data; on one process, before any setup."""
        write_data(self.folder)

    def setup(self, stage: str) -> None:
        """Describe this rank's pipeline, once ranks are known."""
        if self.trainer is not None:
            rank, ranks = self.trainer.global_rank, self.trainer.world_size
            self.pipeline = make_pipeline(self.folder, rank, ranks, ROWS // ranks)

    def train_dataloader(self) -> Batches:
        """Begin to read; by then a checkpoint has been loaded."""
        return Batches(self.pipeline)

    def state_dict(self) -> dict[str, Any]:
        """Give what goes into Lightning's checkpoints; all ranks call it."""
        return self.pipeline.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there."""
        self.pipeline.load_state_dict(state_dict)


class Module(lightning.LightningModule):
    """The model, and its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TinyModel()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Say what trains it."""
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def training_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> torch.Tensor:
        """Return the loss; print that of all ranks, and what names their rows in their order."""
        loss = self.model(batch)
        mean = torch.as_tensor(self.all_gather(loss.detach())).mean()
        rows = digest(torch.as_tensor(self.all_gather(batch["input_ids"])).view(-1, LENGTH))
        self.print(f"step {self.global_step}: loss {mean:.5f}, rows {rows}", flush=True)
        return loss


def main() -> None:
    """Train, and save at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="to end at, from the beginning")
    parser.add_argument("--out", type=Path, default=Path("example-run"))
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = lightning.Trainer(
        devices=args.devices,
        accelerator="auto" if torch.cuda.is_available() else "cpu",
        strategy="ddp" if args.devices > 1 else "auto",
        max_steps=args.steps,
        max_epochs=-1,
        use_distributed_sampler=False,  # the pipeline knows its rank
        enable_checkpointing=False,
        logger=False,
        enable_progress_bar=False,
    )
    saved = args.out / "lightning.ckpt"
    found = saved if saved.exists() else None
    trainer.fit(Module(), datamodule=Documents(args.out), ckpt_path=found)
    trainer.save_checkpoint(saved)


if __name__ == "__main__":
    main()
