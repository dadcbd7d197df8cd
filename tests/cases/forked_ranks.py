"""Ranks of one launcher: `python -m tests.cases.forked_ranks WORLD MODULE`, and what it is to read.

The launcher loads torch, which takes longer than all that a small job does, and forks a process for
each rank before any thread of a library runs; its `main` finds RANK and WORLD_SIZE, as torchrun
sets them. If a rank fails, the others are ended.
"""

import importlib
import os
import signal
import sys

import torch

from tests.free_port import free_port


def main():
    world, module = int(sys.argv[1]), sys.argv[2]
    sys.argv[:3] = [module]
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])  # loads half of torch, once
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)
    }  # fmt: skip
    ranks = set()
    for rank in range(world):
        process = os.fork()
        if process == 0:
            os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
            return importlib.import_module(module).main()
        ranks.add(process)
    failed = 0
    while ranks:
        process, status = os.wait()
        ranks.discard(process)
        if status and not failed:
            failed = 1
            for other in ranks:
                os.kill(other, signal.SIGTERM)
    return failed


if __name__ == "__main__":
    sys.exit(main())
