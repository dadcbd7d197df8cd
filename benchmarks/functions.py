"""What calling a function on every row costs: `python -m benchmarks.functions`.

A function that does next to nothing, in threads, against the public package: what is left is the
cost of making rows and handing them about. And one that computes for 100 microseconds of
processor time, in the caller's thread and in worker processes: how well it scales.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.jobs import parse_arguments
from benchmarks.row_runs import alternate, check, ours, public, show

FOLDER = "rows-short"
ROWS, SHARDS, GROUP_ROWS = 60_000, 4, 2_000
_WORDS = 20


def main() -> None:
    """Time both functions; print what each contender took."""
    if "--build" in sys.argv:
        build(Path(sys.argv[-1]))
        return
    arguments = parse_arguments(str(__doc__))
    folder = arguments.corpus / FOLDER
    if not folder.exists():
        command = (sys.executable, "-m", "benchmarks.functions", "--build", str(arguments.corpus))
        subprocess.run(command, check=True)
    job = {"folder": str(folder), "call": "mark", "runner": "threads"}
    readings = alternate([ours("zephon", job), *public(arguments.corpus, job)], arguments.rounds)
    check(readings)
    show("a function that does nothing, in threads", readings)
    job = {**job, "call": "busy"}
    runners = [ours(runner, {**job, "runner": runner}) for runner in ("inline", "process")]
    readings = alternate(runners, arguments.rounds)
    check(readings)
    show("a function of 100 microseconds", readings)


def build(corpus: Path) -> None:
    """Write rows of 20 words each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    folder = corpus / FOLDER
    folder.mkdir()
    for shard in range(SHARDS):
        rows = range(ROWS * shard // SHARDS, ROWS * (shard + 1) // SHARDS)
        words = rng.integers(0, 5_000, (len(rows), _WORDS)).tolist()
        text = [" ".join(f"word{word}" for word in some) for some in words]
        table = pa.table({"k": np.arange(rows.start, rows.stop), "text": text})
        pq.write_table(table, folder / f"rows-{shard}.parquet", row_group_size=GROUP_ROWS)


if __name__ == "__main__":
    main()
