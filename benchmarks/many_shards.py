"""How long from `import zephon` to the first pointer of a directory of very many shards?

10,000 small Parquet files, opened by their catalogue, their index, or one by one; then a catalogue
alone of a million shards that hold 10^12 rows. Each figure is from a process of its own; files are
in the page cache. Memory is what the process holds at most beyond its imports, mapped pages too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Spread, start

_FILES = 10_000
_SHARDS = 1_000_000
_SHARD_ROWS = 1_000_000

_MAKE_FILES = """
import io, sys
import pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path
folder, count = Path(sys.argv[1]), int(sys.argv[2])
table = pa.table({"text": [f"some words, {n}" for n in range(20)]})
content = io.BytesIO()
pq.write_table(table, content, row_group_size=10)
for number in range(count):
    (folder / f"part-{number:05}.parquet").write_bytes(content.getvalue())
"""

_MAKE_CATALOG = """
import sys
import numpy as np
from zephon.build_index import write_catalog
folder, shards, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
names = [f"part-{number:07}.parquet" for number in range(shards)]
write_catalog(folder, names, np.full(shards, rows), np.full(shards, 1 << 30))
"""

_OPEN = """
import json, resource, sys, time
begin = time.perf_counter()
import zephon
imported = time.perf_counter()
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dataset = zephon.Dataset.from_path("data", sys.argv[1])
opened = time.perf_counter()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
source = zephon.StaticMixtureWorkSource([dataset], {"data": 1.0})
refs = source.lane_stream(0, 1).draw(0, 1)
drawn = time.perf_counter()
assert len(refs) == 1
reading = {
    "imports": imported - begin,
    "open": opened - imported,
    "pointer": drawn - opened,
    "all": drawn - begin,
    "memory_mb": memory * 1024 / 1e6,
    "rows": dataset.total(),
    "shards": dataset.shard_count(),
    "by": dataset.shards.listed_by.file if dataset.shards.listed_by else "the files",
}
print(json.dumps(reading))
"""

_TIMED_BUILD = """
import json, sys, time
from zephon import build_index
build = getattr(build_index, sys.argv[1])
begin = time.perf_counter()
words = ["parquet", sys.argv[2]] if sys.argv[1] == "build_index" else [sys.argv[2]]
build(*words, progress=False)
print(json.dumps(time.perf_counter() - begin))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What one process took to get to its first pointer; seconds and megabytes.

    by: what told of the shards. all: of imports, open and pointer together.
    """

    imports: float
    open: float
    pointer: float
    all: float
    memory_mb: float
    rows: int
    shards: int
    by: str


def main() -> None:
    """Make the directories, open each in fresh processes, print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="processes for each way")
    parser.add_argument("--files", type=int, default=_FILES, help="Parquet files to make")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zephon-many-shards-") as folder:
        for readings in (
            *small_files(Path(folder), arguments.files, arguments.rounds),
            catalog_alone(Path(folder), arguments.rounds),
        ):
            print(line(readings), flush=True)


def small_files(folder: Path, count: int, rounds: int) -> list[list[Opening]]:
    """Open a directory of small files in each way; the same rows must come of each."""
    files = folder / "files"
    files.mkdir()
    _python(_MAKE_FILES, str(files), str(count))
    found = [_readings(files, rounds)]
    index = json.loads(_python(_TIMED_BUILD, "build_index", str(files)))
    found.append(_readings(files, rounds))
    catalog = json.loads(_python(_TIMED_BUILD, "build_catalog", str(files)))
    found.append(_readings(files, rounds))
    print(f"making the index took {index:.2f} s, the catalogue of it {catalog:.2f} s")
    if len({reading.rows for readings in found for reading in readings}) != 1:
        raise RuntimeError("the ways to open a directory disagree on its rows")
    return found


def catalog_alone(folder: Path, rounds: int) -> list[Opening]:
    """Open a catalogue of a million shards of a million rows; there are no files."""
    alone = folder / "catalog"
    alone.mkdir()
    _python(_MAKE_CATALOG, str(alone), str(_SHARDS), str(_SHARD_ROWS))
    return _readings(alone, rounds)


def line(readings: list[Opening]) -> str:
    """Show the readings of one way: medians, and the range of the whole."""
    first = readings[0]
    whole = Spread.of([reading.all for reading in readings])
    parts = {
        name: Spread.of([getattr(reading, name) for reading in readings]).median
        for name in ("imports", "open", "pointer", "memory_mb")
    }
    return (
        f"{first.shards:>9,} shards, {first.rows:.0e} rows, by {first.by:<15} import to first "
        f"pointer {whole} s: imports {parts['imports']:.2f}, open {parts['open']:.3f}, pointer "
        f"{parts['pointer']:.3f}; opening holds {parts['memory_mb']:+.0f} MB"
    )


def _readings(folder: Path, rounds: int) -> list[Opening]:
    _python(_OPEN, str(folder))  # the first one reads the disk
    return [Opening(**json.loads(_python(_OPEN, str(folder)))) for _ in range(rounds)]


def _python(program: str, *words: str) -> str:
    return start((sys.executable, "-c", program, *words))[0]


if __name__ == "__main__":
    main()
