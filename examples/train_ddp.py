"""Plain PyTorch: DistributedDataParallel, resumed with any number of ranks that divides a step.

    torchrun --nproc-per-node 4 examples/train_ddp.py --steps 5
    torchrun --nproc-per-node 2 examples/train_ddp.py --steps 10

The second run goes on where the first ended, and prints what one run on one rank would have.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from tiny import TinyModel, batches_of_a_step, digest, make_pipeline, write_data
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train, and save at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5, help="to end at, from the beginning")
    parser.add_argument("--out", type=Path, default=Path("example-run"))
    args = parser.parse_args()
    dist.init_process_group()  # gloo without GPUs
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        write_data(args.out)
    dist.barrier()

    torch.manual_seed(0)
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pipeline = make_pipeline(args.out, rank, ranks)
    saved, step = args.out / "ddp.pt", 0
    if saved.exists():
        state = torch.load(saved)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        pipeline.load_state_dict(state["pipeline"])  # the same state on every rank
        step = state["step"]

    stream = iter(pipeline)  # once: it goes on from step to step
    share = batches_of_a_step(ranks)
    while step < args.steps:
        losses, rows = [], []
        for batch in islice(stream, share):
            tensors = batch.to_training(return_labels=True)
            loss = model(tensors) / share  # ranks are averaged by DDP
            loss.backward()
            losses.append(loss.detach())
            rows.append(tensors["input_ids"])
        optimizer.step()
        optimizer.zero_grad()
        report(step, torch.stack(losses).sum(), torch.cat(rows), rank, ranks)
        step += 1

    state = {
        "model": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "pipeline": pipeline.state_dict(),  # all ranks take part, and get the same
        "step": step,
    }
    if rank == 0:
        torch.save(state, saved)
    stream.close()
    dist.destroy_process_group()


def report(step: int, loss: torch.Tensor, rows: torch.Tensor, rank: int, ranks: int) -> None:
    """Print the loss of a step, and what names its rows in their order, of all ranks."""
    dist.all_reduce(loss)
    parts = [torch.empty_like(rows) for _ in range(ranks)]
    dist.all_gather(parts, rows)
    if rank == 0:
        print(f"step {step}: loss {loss / ranks:.5f}, rows {digest(torch.cat(parts))}", flush=True)


if __name__ == "__main__":
    main()
