"""The public package zephon 0.2.0 saved and restored; run by the Python of its own environment.

The argument is a job of `benchmarks.resuming` as JSON, and what is to be done with it: "checkpoint"
times saving, "reach" writes states of some positions, "restore" goes on from one, "count" runs to
the end of the data. Prints one line of JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zephon import Dataset, Pipeline, StaticMixtureWorkSource


def described(job: dict[str, Any]) -> Pipeline:
    """Describe the job, with the fastest settings that were found for lists."""
    keywords = job["source"]
    datasets = [
        Dataset.from_path(name, str(Path(job["corpus"], name))) for name in keywords["mixture"]
    ]
    changes = {name: job[name] for name in ("chunk_size", "exhausted_policy") if name in job}
    pipeline = Pipeline(StaticMixtureWorkSource(datasets=datasets, **keywords, **changes))
    pipeline = pipeline.fetch_parallelism(1, max_batch=4096)
    for name, arguments in job["steps"]:
        pipeline = getattr(pipeline, name)(**arguments, parallelism=1)
    return pipeline.batch(8).options(runner="inline", canonical_replicas=job["lanes"])


def tokens_of(batch: Any) -> int:
    """Count the tokens of documents in a batch."""
    return sum(
        len(record.payload["input_ids"]) - (record.meta.padding_length or 0)
        for record in batch.records
    )


def checkpoint(job: dict[str, Any]) -> dict[str, Any]:
    """Time saving after some batches."""
    pipeline = described(job)
    items = iter(pipeline)
    for _ in range(job["batches"]):
        next(items)
    seconds, processor, size = [], [], 0
    for _ in range(job["times"]):
        next(items)
        begin, worked = time.perf_counter(), time.process_time()
        state = pipeline.checkpoint()
        processor.append(time.process_time() - worked)
        seconds.append(time.perf_counter() - begin)
        size = len(json.dumps(state))
    items.close()
    return {"seconds": seconds, "processor": processor, "json": size}


def reach(job: dict[str, Any]) -> dict[str, Any]:
    """Write the states of some positions, and what follows each."""
    pipeline = described(job)
    items, tokens = iter(pipeline), 0
    for goal in job["positions"]:
        while tokens < goal:
            tokens += tokens_of(next(items))
        state = pipeline.checkpoint()
        batch = next(items)
        tokens += tokens_of(batch)
        Path(job["folder"], str(goal)).write_bytes(pickle.dumps((state, _ids(batch))))
    items.close()
    return {"tokens": tokens}


def restore(job: dict[str, Any]) -> dict[str, Any]:
    """Go on from a state, and time the first batch."""
    state, following = pickle.loads(Path(job["folder"], str(job["position"])).read_bytes())
    begin, worked = time.perf_counter(), time.process_time()
    pipeline = described(job)
    pipeline.restore(state)
    items: Iterator[Any] = iter(pipeline)
    batch = next(items)
    seconds, processor = time.perf_counter() - begin, time.process_time() - worked
    same = _ids(batch) == following
    items.close()  # type: ignore[attr-defined]
    return {"seconds": seconds, "processor": processor, "same": same}


def count(job: dict[str, Any]) -> dict[str, Any]:
    """Count what is delivered of one pass."""
    tokens = 0
    for batch in described(job):
        tokens += tokens_of(batch)
    return {"tokens": tokens}


def _ids(batch: Any) -> list[Any]:
    return [[int(each) for each in record.payload["input_ids"][:64]] for record in batch.records]


if __name__ == "__main__":
    calls = {"checkpoint": checkpoint, "reach": reach, "restore": restore, "count": count}
    described_job = json.loads(sys.argv[1])
    print(json.dumps(calls[described_job["call"]](described_job)), flush=True)
