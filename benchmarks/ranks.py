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
from itertools import islice
from typing import Any

from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource

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
        seconds = [1000 * s for s in _slowest(together("saving", way, SAVING))]
        print(f"| {way} | {statistics.median(seconds):.0f}, {max(seconds):.0f} |")
    print(
        "\n| ranks meet by | ranks | steps between two rounds | a round, ms | of steps of 10 ms "
        "(must 1 %) |\n|---|---|---|---|---|"
    )
    for ranks in TRAINING:
        for way in WAYS:
            rounds = _slowest(together("training", way, ranks))
            share = sum(rounds) / (STEPS * STEP_SECONDS)
            each = 1000 * statistics.median(rounds)
            print(f"| {way} | {ranks} | {STEPS / len(rounds):.0f} | {each:.2f} | {share:.2%} |")


def together(what: str, way: str, ranks: int) -> list[list[float]]:
    """Run all ranks; give the seconds of each of their meetings, by rank."""
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


def one(what: str, way: str) -> list[float]:
    """Run this rank; give the seconds of each meeting.

    Ranks begin every step together, as those that train do, whatever they meet by.
    """
    import torch.distributed as dist

    dist.init_process_group("gloo")
    pipeline = described(way)
    if what == "saving":
        seconds = _saving(pipeline, dist.barrier)
    else:
        seconds = _training(pipeline, dist.barrier)
    dist.barrier()
    dist.destroy_process_group()
    return seconds


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


def _saving(pipeline: Pipeline, barrier: Any) -> list[float]:
    seconds = []
    items = iter(pipeline)
    for _ in islice(items, ROUNDS):
        barrier()
        begin = time.perf_counter()
        pipeline.checkpoint(as_bytes=True)
        seconds.append(time.perf_counter() - begin)
    items.close()
    return seconds[1:]  # in the first they find each other


def _training(pipeline: Pipeline, barrier: Any) -> list[float]:
    """Hand out steps; give the seconds of each round on the end."""
    from zephon.exec.ends import Ends, Outlook

    seconds: list[float] = []
    has = Ends.has

    def timed(self: Ends, step: int, sure: int, outlook: Outlook) -> bool:
        asks = step >= self._agreed
        begin = time.perf_counter()
        found = has(self, step, sure, outlook)
        if asks:
            seconds.append(time.perf_counter() - begin)
        return found

    Ends.has = timed
    items = iter(pipeline)
    steps = 0
    end = time.perf_counter()
    for _ in islice(items, STEPS):
        steps += 1
        end = max(end + STEP_SECONDS, time.perf_counter())
        time.sleep(max(end - time.perf_counter(), 0))
        barrier()
    items.close()
    if steps < STEPS:
        raise SystemExit(f"the data gave {steps} steps, expected {STEPS}")
    return seconds[1:]


def _slowest(ranks: list[list[float]]) -> list[float]:
    """Give each meeting's time on the rank where it took longest."""
    return [max(times) for times in zip(*ranks, strict=True)]


if __name__ == "__main__":
    main()
