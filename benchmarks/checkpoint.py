"""How long `checkpoint()` takes, and how large it is: `python -m benchmarks.checkpoint`.

Taken after every batch, in processes of their own: packing alone over 8 and over 64 lanes, and a
full shuffle of 8,192 documents in each of 8 lanes before packing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.jobs import parse_arguments
from benchmarks.resuming import PACKING, PASSES, SHUFFLED, Saved, own, public
from benchmarks.timing import Spread

CASES = {**PACKING, "shuffle": SHUFFLED}
TIMES = 15
MOST = {**dict.fromkeys(PACKING, (5.0, 64.0)), "shuffle": (20.0, 1000.0)}
"""Milliseconds, and kilobytes as JSON, that each may take."""
_PUBLIC = ("wrap", "best_fit", "shuffle")


def main() -> None:
    """Time each case in several processes, in turn; print a Markdown table."""
    if "--run" in sys.argv:
        print(
            json.dumps(saved(CASES[sys.argv[-1]], Path(sys.argv[sys.argv.index("--corpus") + 1])))
        )
        return
    arguments = parse_arguments(str(__doc__))
    ours: dict[str, list[dict[str, Any]]] = {name: [] for name in CASES}
    for _ in range(arguments.rounds):
        for name, found in ours.items():
            found.append(own("checkpoint", arguments.corpus, "--run", name))
    theirs = {
        name: public(arguments.corpus, CASES[name], "checkpoint", times=5) for name in _PUBLIC
    }
    print(
        "| job | checkpoint(), ms (must) | of processor, ms | as JSON, KB (must) | as bytes, ms "
        "| KB | public 0.2.0, ms | of processor, ms | as JSON, KB |\n" + "|---" * 9 + "|"
    )
    for name, found in ours.items():
        print(line(name, found, theirs.get(name)))


def saved(case: Saved, corpus: Path) -> dict[str, Any]:
    """Run one case here and save it after each of some batches.

    Returns:
        seconds and bytes_seconds of each call, processor: seconds of processor time that the first
        took in its thread; json and bytes, the largest sizes.
    """
    pipeline = case.described(corpus, PASSES)
    items = iter(pipeline)
    list(islice(items, case.batches))
    seconds, processor, bytes_seconds, sizes = [], [], [], []
    for _ in range(TIMES):
        next(items)
        begin, worked = time.perf_counter(), time.thread_time()
        state = pipeline.checkpoint()
        processor.append(time.thread_time() - worked)
        middle = time.perf_counter()
        data = pipeline.checkpoint(as_bytes=True)
        seconds.append(middle - begin)
        bytes_seconds.append(time.perf_counter() - middle)
        sizes.append((len(json.dumps(state)), len(data)))
    items.close()
    return {
        "seconds": seconds,
        "processor": processor,
        "bytes_seconds": bytes_seconds,
        "json": max(size for size, _ in sizes),
        "bytes": max(size for _, size in sizes),
    }


def line(name: str, ours: Sequence[Mapping[str, Any]], theirs: Mapping[str, Any] | None) -> str:
    """Lay out what one case gave, as one line of the table."""
    most_ms, most_kb = MOST[name]
    cells = (
        CASES[name].title,
        f"{_milliseconds([s for run in ours for s in run['seconds']])} ({most_ms:.0f})",
        _milliseconds([s for run in ours for s in run["processor"]]),
        f"{max(run['json'] for run in ours) / 1e3:.0f} ({most_kb:.0f})",
        _milliseconds([s for run in ours for s in run["bytes_seconds"]]),
        f"{max(run['bytes'] for run in ours) / 1e3:.0f}",
        _milliseconds(theirs["seconds"]) if theirs else "",
        _milliseconds(theirs["processor"]) if theirs else "",
        f"{theirs['json'] / 1e3:,.0f}" if theirs else "",
    )
    return f"| {' | '.join(cells)} |"


def _milliseconds(seconds: Sequence[float]) -> str:
    found = Spread.of([1e3 * each for each in seconds])
    return f"{found.median:.1f} [{found.least:.1f} to {found.most:.1f}]"


if __name__ == "__main__":
    main()
