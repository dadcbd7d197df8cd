"""What ranks cost each other: `python -m benchmarks.ranks`.

Eight ranks, in processes of their own on this machine, save checkpoints together; and some train in
steps of 10 ms, where lanes end apart, so that they have to agree on the end. Each way to meet. Rows
are made in memory: nothing but the meeting is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.exec.ends import Ends, Outlook

WAYS = ("torch.distributed", "torch://", "aggregate_dir")
SAVING = 8
TRAINING = (2, 8)
ROUNDS, STEPS, STEP_SECONDS = 15, 400, 0.010
_STEP_ROWS, _LENGTH = 64, 513


def main() -> None:
    """Time each way; print two Markdown tables."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--rank", nargs=2, metavar=("WHAT", "WAY"))
    given = parser.parse_args()
    if given.rank:
        print(json.dumps(one(*given.rank)))
        return
    print("| ranks meet by | checkpoint round of 8, ms: median, most (must 500) |\n|---|---|")
    for way in WAYS:
        saved = [each["saving"] for each in together("saving", way, SAVING)]
        seconds = [1000 * s for s in _slowest(saved)]
        print(f"| {way} | {statistics.median(seconds):.0f}, {max(seconds):.0f} |")
    print(
        "\n| ranks meet by | ranks | steps between two rounds | delays steps of 10 ms (must 1 %) "
        "| a rank waits, for late data too | a barrier, ms |\n|---|---|---|---|---|---|"
    )
    for ranks in TRAINING:
        for way in WAYS:
            found = together("training", way, ranks)
            steps = len(found[0]["came"])
            came, went = ([each[what] for each in found] for what in ("came", "went"))
            apart = [_less(left, first) for left, first in zip(went, came, strict=True)]
            delay = sum(_less(_slowest(went), _slowest(came))) / (steps * STEP_SECONDS)
            waits = sum(_slowest(apart)) / (steps * STEP_SECONDS)
            barrier = 1000 * statistics.median(_slowest([each["barrier"] for each in found]))
            between = steps / max(each["rounds"][0] for each in found)
            print(
                f"| {way} | {ranks} | {between:.0f} | {delay:.2%} | {waits:.2%} | {barrier:.2f} |"
            )


def together(what: str, way: str, ranks: int) -> list[dict[str, list[float]]]:
    """Run all ranks; give what each found."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
        command = [sys.executable, "-m", "benchmarks.ranks", "--rank", what, way]
        children = [
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                env={**os.environ, **place, "RANK": str(rank), "MEET": folder},
            )
            for rank in range(ranks)
        ]
        found = [child.communicate()[0] for child in children]
        if any(child.returncode for child in children):
            raise SystemExit(f"a rank of {what!r} over {way} failed")
        return [json.loads(printed) for printed in found]


def one(what: str, way: str) -> dict[str, list[float]]:
    """Run this rank; give the seconds of each meeting, or times in each step.

    Ranks begin every step together, as those that train do, whatever they meet by. Their clock is
    that of the machine.
    """
    import torch.distributed as dist

    dist.init_process_group("gloo")
    pipeline = described(way)
    if what == "saving":
        found = _saving(pipeline, dist.barrier)
    else:
        found = _training(pipeline, dist.barrier)
    dist.barrier()
    dist.destroy_process_group()
    return found


def described(way: str) -> Pipeline:
    """Describe a rank's pipeline; its lanes end at rows that nobody knows beforehand."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    tokens = list(range(300))
    rows = [{"input_ids": tokens[: 40 + 13 * i % 250]} for i in range(4000)]
    work = StaticMixtureWorkSource(
        datasets=[Dataset.from_dict("rows", {0: InMemoryShard(rows)})],
        mixture=MixtureSpec({"rows": 1.0}),
        seed=1,
        stop_after_passes=STEPS * _STEP_ROWS * _LENGTH // (4000 * 100),
    )
    options: dict[str, Any] = {"aggregate_timeout_s": 60.0}
    if way == "torch://":
        options["aggregate_store"] = way
    if way == "aggregate_dir":
        options["aggregate_dir"] = os.environ["MEET"]
    pipeline = Pipeline(work).pack_flat(max_length=_LENGTH, algorithm="wrap")
    return pipeline.batch(_STEP_ROWS // world).options(
        global_batch_size=_STEP_ROWS, dp_degree=world, dp_group_id=rank, max_workers=1, **options
    )


def _saving(pipeline: Pipeline, barrier: Callable[[], object]) -> dict[str, list[float]]:
    seconds = []
    items = iter(pipeline)
    for _ in islice(items, ROUNDS):
        barrier()
        seconds.append(_timed(lambda: pipeline.checkpoint(as_bytes=True)))
    items.close()
    return {"saving": seconds[1:]}  # in the first they find each other


def _training(pipeline: Pipeline, barrier: Callable[[], object]) -> dict[str, list[float]]:
    """Hand out steps; give when each came to what ranks agree on, and went on, on this thread.

    What delays a step is how much later the last rank goes on than the last one came: so long a
    rank whose data are late would have been waited for anyway, in the barrier.
    """
    came, went = [0.0], [0.0]
    rounds = 0
    has, hear = Ends.has, Ends._hear

    def timed(self: Ends, step: int, sure: int, outlook: Outlook) -> bool:
        came[-1] = time.perf_counter()
        found = has(self, step, sure, outlook)
        went[-1] = time.perf_counter()
        return found

    def counted(self: Ends, least: int) -> None:
        nonlocal rounds
        rounds += 1
        hear(self, least)

    Ends.has, Ends._hear = timed, counted
    barriers = []
    items = iter(pipeline)
    end = time.perf_counter()
    for _ in islice(items, STEPS):
        end = max(end + STEP_SECONDS, time.perf_counter())
        time.sleep(max(end - time.perf_counter(), 0))
        barriers.append(_timed(barrier))
        came.append(0.0)
        went.append(0.0)
    items.close()
    if len(barriers) < STEPS:
        raise SystemExit(f"the data gave {len(barriers)} steps, expected {STEPS}")
    # In the first step they find each other.
    return {"came": came[1:-1], "went": went[1:-1], "barrier": barriers[1:], "rounds": [rounds]}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _less(later: list[float], sooner: list[float]) -> list[float]:
    return [one - other for one, other in zip(later, sooner, strict=True)]


def _slowest(ranks: list[list[float]]) -> list[float]:
    """Give the time of each meeting or step on the rank where it is latest, or took longest."""
    return [max(times) for times in zip(*ranks, strict=True)]


if __name__ == "__main__":
    main()
