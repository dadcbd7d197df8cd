"""Small data of every format, that can be changed behind a checkpoint's back."""

import os
from itertools import islice

from tests.properties.recipes import source
from tests.written import lines, parquet
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.build_index import build_catalog, build_index

FILES = ("parquet", "jsonl", "jsonl.gz")
WAYS = ("files", "index", "catalogue")
CASES = [(kind, way) for kind in FILES for way in WAYS]


def rows(number, count=8, word="word"):
    return [{"input_ids": [number, n, 7, 7], "text": f"{word} {number} {n}"} for n in range(count)]


def write(kind, folder, number, content):
    (parquet if kind == "parquet" else lines)(folder, f"{number:03}.{kind}", content)


def tell(kind, folder, way):
    """Make what tells of the shards, for those that are there now."""
    if way == "index":
        build_index(kind.split(".")[0], folder, progress=False)
    elif way == "catalogue":
        build_catalog(folder, progress=False)


def made(kind, folder, way, shards=4):
    for number in range(shards):
        write(kind, folder, number, rows(number))
    tell(kind, folder, way)
    return folder


def pipe(data, **options):
    if not isinstance(data, Dataset):
        data = Dataset.from_path("prose", data)
    work = source([data], shuffle_within_shard=True, stop_after_passes=2)
    packed = Pipeline(work).pack_flat(max_length=9, algorithm="wrap").batch(1)
    return packed.options(**{"runner": "inline", "canonical_replicas": 2, **options})


def following(batches):
    """Give the tokens of batches, of the first 60 at most."""
    return [batch.to_training()["input_ids"].tolist() for batch in islice(batches, 60)]


def taken(pipeline, batches=3):
    """Run a little; give the state, and what would have followed."""
    running = iter(pipeline)
    for _ in range(batches):
        next(running)
    state = pipeline.checkpoint()
    rest = following(running)
    running.close()
    return state, rest


def rewrite(kind, folder, number):
    """Put other rows in a shard, as many and in as many bytes; give it its old time, too."""
    path = folder / f"{number:03}.{kind}"
    before = path.read_bytes(), path.stat()
    for attempt in range(300):  # compressed, not every text takes as many bytes
        write(kind, folder, number, rows(number, word=f"w{attempt:03}"))
        if path.stat().st_size == len(before[0]) and path.read_bytes() != before[0]:
            os.utime(path, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))
            return
    raise AssertionError("no rows of the same size")


def in_memory(shards):
    return Dataset.from_dict("prose", {n: InMemoryShard(each) for n, each in shards.items()})
