"""Rows of JSON lines at random; the public package zephon 0.2.0 and ours alike run it.

As a program, by the Python of the public package's environment: `at_random FOLDER ROWS`, or
`shuffled`. Prints one line of JSON: rows, and the seconds that they took once the dataset was open.
"""

from __future__ import annotations

import json
import random
import sys
import time

from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.debug import DatasetInspector


def at_random(folder: str, rows: int) -> None:
    """Read so many rows, one by one, from anywhere in the first file."""
    dataset = Dataset.from_path("documents", folder)
    chance = random.Random(0)
    with open(sorted(_files(folder))[0], encoding="utf-8") as file:
        ids = [json.loads(line)["id"] for line in file]
    with DatasetInspector(dataset) as inspector:
        inspector.read(0, 0)
        begin = time.perf_counter()
        for _ in range(rows):
            pick = chance.randrange(len(ids))
            (found,) = inspector.read_many(0, [pick])
            assert found["id"] == ids[pick]
        _tell(rows, time.perf_counter() - begin)


def shuffled(folder: str, rows: int) -> None:
    """Read so many rows in the order of a shuffle within shards, from the first one on."""
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("documents", folder)],
        mixture={"documents": 1.0},
        shuffle_shards=False,
        shuffle_within_shard=True,
        exhausted_policy="redistribute",
    )
    items = iter(Pipeline(source).options(runner="inline"))
    begin = time.perf_counter()
    for _ in range(rows):
        assert next(items).payload["text"]
    _tell(rows, time.perf_counter() - begin)


def _files(folder: str) -> list[str]:
    import os

    return [entry.path for entry in os.scandir(folder) if entry.name.endswith(".jsonl")]


def _tell(rows: int, seconds: float) -> None:
    print(json.dumps({"rows": rows, "seconds": seconds}))


if __name__ == "__main__":
    {"at_random": at_random, "shuffled": shuffled}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
