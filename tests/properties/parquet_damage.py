"""Damages Parquet files at random, reads them, and prints what is not as it must be.

Run as a process of its own, so that one that a library ends is noticed:
``python -m tests.properties.parquet_damage FOLDER SECONDS SEED``.
"""

import json
import random
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.written import pipeline
from zephon import Dataset
from zephon.errors import PlanError, ZephonError

ROWS = 60
MOST_MEMORY = 4 << 30
OPTIONS = (
    {},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "none", "use_dictionary": False},
    {"compression": "gzip", "write_page_index": True},
    {"compression": "lz4", "column_encoding": {"id": "DELTA_BINARY_PACKED"},
     "use_dictionary": False},
    {"compression": "none", "write_page_checksum": True},
    {"compression": "snappy", "write_page_checksum": True, "data_page_version": "2.0"},
)  # fmt: skip


def clean(folder):
    """Write files; give the bytes of each, its rows, and whether its pages have checksums."""
    numbers = range(ROWS)
    table = pa.table(
        {
            "id": numbers,
            "text": [f"text {n}" * (n % 4) if n % 9 else None for n in numbers],
            "kind": pa.array([f"{n % 3}" for n in numbers]).dictionary_encode(),
            "list": [[n, None] if n % 3 else None for n in numbers],
            "object": [{"a": n, "b": [str(n)]} for n in numbers],
        }
    )
    path = folder / "clean.parquet"
    for options in OPTIONS:
        pq.write_table(table, path, row_group_size=25, **options)
        yield path.read_bytes(), table.to_pylist(), "write_page_checksum" in options
    path.unlink()


def damaged(data, chance):
    """Change, cut out or put in some bytes; give these, and whether the footer stays."""
    made = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    kept = True
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        start, stop = chance.choice(((0, footer), (footer, len(data)), (footer, len(data))))
        place = min(chance.randrange(start, stop), len(made) - 1)
        kept &= place < footer
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                made[place] ^= 1 << chance.randrange(8)
            case 4 | 5:
                made[place] = chance.randrange(256)
            case 6 | 7:
                del made[place : place + chance.randrange(1, 8)]
                kept = False  # it is elsewhere now
            case 8:
                made[place:place] = chance.randbytes(chance.randrange(1, 5))
                kept = False
            case _:
                del made[place:]
                kept = False
        if not made:
            break
    return bytes(made), kept


def outcome(read):
    """Give what is read, or the message of the error, which must be one of ours."""
    try:
        return read(), None
    except ZephonError as exc:
        return None, exc


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def problems(folder, rows, *, sure):
    """Read a damaged file in several ways; give what is wrong with what comes of it.

    Args:
        folder: of the file.
        rows: that the file held.
        sure: whether nothing but these rows may be read.
    """
    long = pl.col("text") > "text 3"
    ways = {
        "rows": lambda: [r.payload for r in pipeline(Dataset.from_path("d", folder))],
        "ids": lambda: [
            r.payload for r in pipeline(Dataset.from_path("d", folder)).select(pl.col("id"))
        ],
        "filter": lambda: [
            r.payload
            for r in pipeline(Dataset.from_path("d", folder)).filter(long).select(pl.col("id"))
        ],
    }
    wanted = {
        "rows": rows,
        "ids": [{"id": row["id"]} for row in rows],
        "filter": [{"id": row["id"]} for row in rows if (row["text"] or "") > "text 3"],
    }
    for way, read in ways.items():
        found, error = outcome(read)
        if error is not None:
            said = str(error)
            if isinstance(error, PlanError) and not sure:
                continue  # a column has another name or type now
            if "dataset 'd'" not in said or "shard 'a.parquet'" not in said or "\n" in said:
                yield f"{way}: the error has no place: {type(error).__name__}: {said}"
            continue
        found = [{name: plain(value) for name, value in row.items()} for row in found]
        if sure and found != wanted[way]:
            yield f"{way}: rows that were never written"
        elif way == "rows" and found != wanted[way] and found != of_arrow(folder / "a.parquet"):
            yield "rows: others than Arrow has"


def of_arrow(path):
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(use_threads=False).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as exc:
        return str(exc)


def main(folder, seconds, seed):
    """Damage and read for so many seconds; print each problem, and at last how many files."""
    warnings.simplefilter("ignore")
    files = list(clean(folder))
    chance = random.Random(seed)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    path, count, slowest = folder / "a.parquet", 0, 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data, rows, checked = chance.choice(files)
        made, kept = damaged(data, chance)
        path.unlink(missing_ok=True)
        path.write_bytes(made)
        began = time.monotonic()
        for problem in problems(folder, rows, sure=kept and checked):
            (folder / f"wrong-{count}").write_bytes(made)
            print(json.dumps({"file": f"wrong-{count}", "problem": problem}), flush=True)
        slowest = max(slowest, time.monotonic() - began)
        count += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps({"files": count, "slowest": slowest, "peak": peak}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
