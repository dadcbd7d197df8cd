"""One rank that asks through torch.distributed: `python -m tests.coordination.asking_job WHAT`.

It prints what came of it, as JSON. Who this is stands in RANK and WORLD_SIZE.
"""

import json
import sys

import torch
import torch.distributed as dist

from zephon.coordination.collectives import CollectiveRounds
from zephon.errors import CoordinationError


def told(call):
    """Give what a call returns, or what it says that went wrong."""
    try:
        return call()
    except CoordinationError as error:
        return str(error)


def among_others(rounds, rank):
    """Ask while the trainer and a checkpoint use collectives of their own."""
    found = []
    for number in range(20):
        asked = rounds.ask("count", 10 * number + rank)
        theirs = torch.tensor([rank + number])
        work = dist.all_reduce(theirs, async_op=True)
        met = rounds.round("join", lambda: str(rank).encode(), b"".join) if number % 2 else b""
        work.wait()
        least = asked.look() if number % 2 else None
        if number % 3:  # else it is left alone
            found.append(asked.least() if least is None else least)
        found += [met.decode(), int(theirs[0])]
    rounds.ask("count", rank)  # all leave this one alone, and end
    rounds.close()
    return found


def left_by_one(rounds, rank):
    """Let the first rank leave a question alone that no other asks."""
    asked = [rounds.ask("batch 1", 1)] if rank == 0 else []
    return told(lambda: rounds.ask("batch 2", 2).least()), len(asked)


def missing(rounds, rank):
    """Let the last rank not ask."""
    return None if rank else told(lambda: rounds.ask("count", 2).least())


def main():
    dist.init_process_group("gloo")
    rank, seconds = dist.get_rank(), 60.0 if sys.argv[1] == "among_others" else 3.0
    print(json.dumps(globals()[sys.argv[1]](CollectiveRounds(None, (), seconds), rank)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
