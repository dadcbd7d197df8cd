"""How fast are the pointers of 10^12 rows in 10^6 shards, and does it matter where one begins?

An index alone: a compiled catalogue tells the rows of each shard, and no data lies behind it.
Pointers are drawn through the whole work source as one of 64 lanes draws them, 16,384 at a time.
Each line runs in processes of its own. A second table shows what lanes and components cost.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Spread, start
from zephon.build_index import write_catalog
from zephon.io import Dataset
from zephon.work import StaticMixtureWorkSource
from zephon.work.source import LaneStream

SHARDS = ROWS_OF_A_SHARD = 1_000_000
LANES = 64
CALL = 16_384
FAR_ROW = 9 * 10**11
"""The row of a pass at which a far draw begins."""

ORDERS: Mapping[str, Mapping[str, Any]] = {
    "sequential": {"shuffle_shards": False},
    "shards": {},
    "within shard": {"shuffle_within_shard": True},
    "block": {"shuffle_block_size": "auto"},
    "within and block": {"shuffle_within_shard": True, "shuffle_block_size": "auto"},
    "global": {"shuffle_block_size": "global"},
}
SIZES = ((1, 1), (64, 1), (4096, 1), (64, 10), (64, 100))
"""Lanes and components whose cost a pointer is compared, in global order."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run of one order gave.

    near, far: millions of pointers a second, from the start of a pass and from 9/10 of it.
    first, seek: milliseconds to the first 16,384 there, from opening the catalogue on.
    memory: megabytes that the process grew by until then, mapped pages of the catalogue too.
    """

    near: float
    far: float
    first: float
    seek: float
    memory: float


def write_index(folder: Path, shards: int, rows: int) -> Path:
    """Write a catalogue of equal shards without data."""
    names = [f"part-{number:07}.parquet" for number in range(shards)]
    write_catalog(folder, names, np.full(shards, rows), np.full(shards, 1 << 30))
    return folder


def lane_of(
    folder: Path,
    order: Mapping[str, Any],
    *,
    lane: int = 0,
    lanes: int = LANES,
    components: int = 1,
) -> LaneStream:
    """Open the index, once for each component, and lay out one lane."""
    names = [f"index-{number}" for number in range(components)]
    datasets = [Dataset.from_path(name, folder) for name in names]
    source = StaticMixtureWorkSource(datasets, dict.fromkeys(names, 1.0), seed=1, **order)
    return source.lane_stream(lane, lanes)


def check(order: Mapping[str, Any]) -> None:
    """See on a small index that the order gives each row once, and on any part of it as on all.

    Raises:
        RuntimeError: it does not.
    """
    with tempfile.TemporaryDirectory(prefix="zephon-pointers-") as small:
        folder = write_index(Path(small), 50, 77)
        number: list[int] = []
        for lane in range(LANES):
            stream = lane_of(folder, order, lane=lane)
            whole = stream.draw(0, 10**6)
            number += (whole.shard * 77 + whole.row).tolist()
            parts = [stream.draw(first, 5) for first in range(0, len(whole), 5)]
            if [row for part in parts for row in part.row.tolist()] != whole.row.tolist():
                raise RuntimeError(f"pointers: {order} depends on how many are asked for at once")
        if sorted(number) != list(range(50 * 77)):
            raise RuntimeError(f"pointers: {order} does not give each row once")


def measure(folder: Path, order: Mapping[str, Any], calls: int) -> Figures:
    """Time an order in this process; rates are those of the median of some calls."""
    far = FAR_ROW // LANES
    before = _peak_mb()
    begin = time.perf_counter()
    stream = lane_of(folder, order)
    stream.draw(0, CALL)
    first = time.perf_counter()
    memory = _peak_mb() - before
    again = time.perf_counter()
    sought = lane_of(folder, order)
    sought.draw(far, CALL)
    seek = time.perf_counter()
    return Figures(
        near=rate(stream, 0, calls),
        far=rate(stream, far, calls),
        first=(first - begin) * 1e3,
        seek=(seek - again) * 1e3,
        memory=memory,
    )


def rate(stream: LaneStream, begin: int, calls: int) -> float:
    """Give millions of pointers a second, by the median of some calls."""
    seconds = []
    for number in range(calls):
        started = time.perf_counter()
        stream.draw(begin + number * CALL, CALL)
        seconds.append(time.perf_counter() - started)
    return CALL / statistics.median(seconds) / 1e6


def main() -> None:
    """Run each order in turn, a process each; print a line an order, then one a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes of each order")
    parser.add_argument("--calls", type=int, default=100, help="timed calls in a process")
    parser.add_argument("--order", choices=ORDERS, help="run only this one, here, and print JSON")
    parser.add_argument("--index", type=Path, help="the catalogue to run it on")
    arguments = parser.parse_args()
    if arguments.order:
        found = measure(arguments.index, ORDERS[arguments.order], arguments.calls)
        print(json.dumps(asdict(found)))
        return
    for order in ORDERS.values():
        check(order)
    with tempfile.TemporaryDirectory(prefix="zephon-pointers-") as folder:
        index = write_index(Path(folder), SHARDS, ROWS_OF_A_SHARD)
        readings: dict[str, list[Figures]] = {name: [] for name in ORDERS}
        own = (sys.executable, "-m", "benchmarks.pointers", "--index", str(index))
        for _ in range(arguments.rounds):
            for name, figures in readings.items():
                output, _ = start((*own, "--calls", str(arguments.calls), "--order", name))
                figures.append(Figures(**json.loads(output)))
        print(f"{SHARDS:,} shards of {ROWS_OF_A_SHARD:,} rows, lane 0 of {LANES}, {CALL:,} a call")
        for name, figures in readings.items():
            show(name, figures)
        for lanes, components in SIZES:
            stream = lane_of(index, ORDERS["global"], lanes=lanes, components=components)
            speed = rate(stream, 10**9 // lanes, max(3, arguments.calls // 10))
            print(
                f"global, {lanes:>5,} lanes, {components:>3} components  {speed:5.2f} M pointers/s"
            )


def show(name: str, figures: list[Figures]) -> None:
    """Print the medians of an order's figures, with their spread."""
    found = {
        field.name: Spread.of([getattr(each, field.name) for each in figures])
        for field in fields(Figures)
    }
    print(
        f"{name:<17} {found['near']} M pointers/s, at 9/10 {found['far']}\n"
        f"{'':<17} first {found['first']} ms, seek {found['seek']} ms, "
        f"memory +{found['memory'].median:.0f} MB"
    )


def _peak_mb() -> float:
    """Read the most memory this program held; the usual counter begins with its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024 / 1e6


if __name__ == "__main__":
    main()
