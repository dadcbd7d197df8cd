"""Runs that hand out rows, not tokens: the data, Zephon as a contender, and who takes turns.

`python -m benchmarks.row_runs JOB` is Zephon on one job, given as JSON; `peers/zephon_rows.py` the
public package on the same. Like `timing`, this module imports the standard library alone until it
runs a job itself.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.row_functions import function
from benchmarks.timing import Contender, Spread, start

Job = dict[str, Any]
"""folder: of Parquet files. call: "filter", "below", "mark" or "busy". column, limit: of the first
two. runner: as both packages call it."""

GROUP_ROWS = 200


@dataclass(frozen=True, slots=True)
class RowReading:
    """What one run of one contender gave.

    rows: rows handed over; total: the sum of their numbers, so that all can be seen to be there.
    seconds: from the description of the pipeline to its end; first: to its first batch.
    """

    rows: int
    total: int
    seconds: float
    first: float


def public(corpus: Path, job: Job) -> list[Contender]:
    """Give the public package as a contender; nothing where its environment was not made."""
    python = corpus / "peer-venv" / "bin" / "python"
    if not python.exists():
        return []
    script = Path(__file__).with_name("peers") / "zephon_rows.py"
    return [Contender("public", (str(python), str(script), json.dumps(job)))]


def ours(name: str, job: Job) -> Contender:
    """Give Zephon as a contender."""
    return Contender(name, (sys.executable, "-m", "benchmarks.row_runs", json.dumps(job)))


def alternate(contenders: Sequence[Contender], rounds: int) -> dict[str, list[RowReading]]:
    """Run every contender once a round, in turn; return its readings by name."""
    readings: dict[str, list[RowReading]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            output, _ = start(contender.command)
            readings[contender.name].append(RowReading(**json.loads(output.splitlines()[-1])))
    return readings


def show(title: str, readings: Mapping[str, Sequence[RowReading]]) -> None:
    """Print what was found, a line a contender; the first is what the others are compared with."""
    print(title)
    medians = {name: Spread.of([r.seconds for r in found]) for name, found in readings.items()}
    base = next(iter(medians.values())).median
    for name, found in readings.items():
        first = Spread.of([reading.first for reading in found])
        print(
            f"  {name:<14} {medians[name]} s, {found[0].rows:,} rows, "
            f"{found[0].rows / medians[name].median:,.0f} a second, first batch {first} s, "
            f"{medians[name].median / base:.1f} times the first line"
        )


def check(readings: Mapping[str, Sequence[RowReading]]) -> None:
    """See that all contenders handed out the same rows, each time.

    Raises:
        ValueError: they did not.
    """
    found = {name: {(r.rows, r.total) for r in runs} for name, runs in readings.items()}
    if len(set.union(*found.values())) != 1:
        raise ValueError(f"rows and their sums must be the same, got {found}")


def main() -> None:
    """Run one job once and print its reading."""
    import polars as pl  # late: what is imported here would count among the parent's memory

    import zephon.running  # noqa: F401 (loaded by a first run, which is timed once imports are done)
    from zephon import Dataset, Pipeline, StaticMixtureWorkSource

    job = json.loads(sys.argv[1])
    begin = first = time.perf_counter()
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("rows", job["folder"])],
        mixture={"rows": 1.0},
        shuffle_shards=False,
        exhausted_policy="redistribute",
    )
    pipeline = Pipeline(source)
    if job["call"] == "filter":
        pipeline = pipeline.filter(pl.col(job["column"]) < job["limit"])
    else:
        pipeline = pipeline.map_transform(function(job))
    rows = total = 0
    for batch in pipeline.batch(8, drop_last=False).options(runner=job["runner"]):
        if not rows:
            first = time.perf_counter()
        rows += len(batch.records)
        total += sum(int(record.payload["k"]) for record in batch.records)
    seconds = time.perf_counter() - begin
    print(json.dumps({"rows": rows, "total": total, "seconds": seconds, "first": first - begin}))


if __name__ == "__main__":
    main()
