"""Hugging Face Accelerate, resumed with any number of processes that divides a step.

    accelerate launch --cpu --num_processes 2 examples/train_accelerate.py --steps 5
    accelerate launch --cpu --num_processes 1 examples/train_accelerate.py --steps 10

The pipeline knows its rank and hands out this rank's rows: do not give it to
`accelerator.prepare`, which would deal out its batches to ranks once more.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from tiny import TinyModel, batches_of_a_step, digest, make_pipeline, write_data


def main() -> None:
    """Train, and save at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5, help="to end at, from the beginning")
    parser.add_argument("--out", type=Path, default=Path("example-run"))
    args = parser.parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    ranks = accelerator.num_processes
    share = batches_of_a_step(ranks)
    if accelerator.is_main_process:
        write_data(args.out)
    accelerator.wait_for_everyone()

    torch.manual_seed(0)
    model = TinyModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)  # not the pipeline
    pipeline = make_pipeline(args.out, accelerator.process_index, ranks)
    progress = Progress()
    accelerator.register_for_checkpointing(pipeline, progress)  # saved and loaded with the model
    saved = args.out / "accelerate"
    if saved.exists():
        accelerator.load_state(str(saved))

    stream = iter(pipeline)  # once, and after load_state
    while progress.step < args.steps:
        losses, rows = [], []
        for batch in islice(stream, share):
            tensors = batch.to_training(return_labels=True, exclude_fields=("ids", "texts"))
            tensors = send_to_device(tensors, accelerator.device)
            loss = model(tensors) / share
            accelerator.backward(loss)
            losses.append(loss.detach())
            rows.append(tensors["input_ids"])
        optimizer.step()
        optimizer.zero_grad()
        loss = accelerator.reduce(torch.stack(losses).sum(), "mean")
        seen = torch.as_tensor(accelerator.gather(torch.cat(rows)))
        accelerator.print(f"step {progress.step}: loss {loss:.5f}, rows {digest(seen)}", flush=True)
        progress.step += 1

    accelerator.save_state(str(saved))  # on every rank: the pipeline's states become one
    stream.close()
    accelerator.end_training()


class Progress:
    """How far training is, for Accelerate to save."""

    def __init__(self) -> None:
        self.step = 0

    def state_dict(self) -> dict[str, int]:
        """Give what is saved."""
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Take what was saved."""
        self.step = state["step"]


if __name__ == "__main__":
    main()
