"""What a filter that runs in the reader saves: `python -m benchmarks.filter`.

100 MB of Parquet files with texts, of which a filter keeps 1 %: rows that lie together, or rows
that lie anywhere. Zephon with an expression, Zephon with a function, and the public package, which
has functions only. How much was decoded is counted by the reader that pipelines use.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

from benchmarks.jobs import parse_arguments
from benchmarks.row_runs import GROUP_ROWS, Job, alternate, check, ours, public, show

FOLDER = "rows-text"
LEAST_BYTES = 100_000_000  # of the files
SHARE = 0.01
MOST_DECODED = 0.1  # of all bytes, where the rows that are kept lie together
TITLES = {"k": "1 % of the rows, which lie together", "r": "1 % of the rows, anywhere"}


def main() -> None:
    """Time both cases; print what each contender took, and how much was decoded."""
    if "--build" in sys.argv:
        build(Path(sys.argv[-1]))
        return
    if "--count" in sys.argv:
        count(Path(sys.argv[-1]))
        return
    arguments = parse_arguments(str(__doc__))
    folder = arguments.corpus / FOLDER
    own = (sys.executable, "-m", "benchmarks.filter")
    if not folder.exists():
        subprocess.run((*own, "--build", str(arguments.corpus)), check=True)
    counted = subprocess.run((*own, "--count", str(folder)), check=True, stdout=subprocess.PIPE)
    limit = int(counted.stdout)
    for column, title in TITLES.items():
        job: Job = {
            "folder": str(folder),
            "column": column,
            "limit": limit,
            "runner": "threads",
            "call": "below",
        }
        contenders = [
            ours("expression", {**job, "call": "filter"}),
            ours("function", job),
            *public(arguments.corpus, job),
        ]
        readings = alternate(contenders, arguments.rounds)
        check(readings)
        show(title, readings)


def build(corpus: Path) -> None:
    """Write documents of the corpus, over and over, with their number and a number at random."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables, size = [], 0
    for path in itertools.cycle(sorted((corpus / "text-parquet").glob("*.parquet"))):
        tables.append(pq.read_table(path, columns=["text"]))
        size += path.stat().st_size
        if size >= LEAST_BYTES:
            break
    rows = sum(len(table) for table in tables)
    anywhere = np.random.default_rng(0).permutation(rows)
    folder = corpus / FOLDER
    folder.mkdir()
    first = 0
    for number, table in enumerate(tables):
        stop = first + len(table)
        columns = {"k": np.arange(first, stop), "r": anywhere[first:stop], "text": table["text"]}
        path = folder / f"rows-{number:02}.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=GROUP_ROWS)
        first = stop


def count(folder: Path) -> None:
    """Print what the reader decodes with each filter and without, then how many rows are kept.

    Raises:
        ValueError: more was decoded than the benchmark allows.
    """
    import numpy as np
    import polars as pl
    import pyarrow as pa

    from zephon import Dataset
    from zephon.expressions import RowFilter, resolve
    from zephon.io.fields import Column
    from zephon.io.group_cache import GroupCache
    from zephon.io.reader import RowReader

    dataset = Dataset.from_path("rows", folder)
    limit = int(dataset.total() * SHARE)
    shards = np.repeat(np.arange(dataset.shard_count()), dataset.counts())
    rows = np.concatenate([np.arange(count) for count in dataset.counts()])
    everything = 0
    for column in (None, *TITLES):
        keep, frame = None, ()
        if column is not None:
            predicate = pl.col(column) < limit
            keep = RowFilter(resolve("filter", [predicate], [(column, pa.int64())], False, str))
            frame = (Column(column, "any", values=pa.int64()),)
        cache = GroupCache(64 << 20)
        reader = RowReader(dataset, (), payload=True, cache=cache, keep=keep, frame=frame)
        reader.take(shards, rows)
        found = reader.counts()
        everything = everything or found.bytes
        share = found.bytes / everything
        print(
            f"{TITLES.get(column or '', 'no filter')}: {found}, {share:.1%} of the bytes",
            file=sys.stderr,
        )
        if column == "k" and share > MOST_DECODED:
            raise ValueError(
                f"{share:.1%} of the bytes were decoded, at most {MOST_DECODED:.0%} may be"
            )
    print(limit)


if __name__ == "__main__":
    main()
