"""The public package zephon 0.2.0 on conversations; run by the Python of its own environment.

The argument is a job of `benchmarks.chat` as JSON. The tokenizer is that of transformers, the only
kind that the package takes. Prints one line of JSON: the fields of `benchmarks.timing.Reading`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers
from transformers import PreTrainedTokenizerFast
from zephon import Dataset, Pipeline, StaticMixtureWorkSource


def batches(job: dict[str, Any]) -> Iterator[int]:
    """Yield the tokens of each training batch, without the padding."""
    datasets = [Dataset.from_path(name, str(Path(job["corpus"], name))) for name in job["mixture"]]
    source = StaticMixtureWorkSource(
        datasets=datasets, mixture=job["mixture"], shuffle_shards=False
    )
    config = json.loads(Path(job["tokenizer"], "tokenizer_config.json").read_text("utf-8"))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(Path(job["tokenizer"], "tokenizer.json")),
        eos_token=config["eos_token"],
        pad_token=config["pad_token"],
        chat_template=config["chat_template"],
    )
    pipeline = Pipeline(source).tokenize_chat(
        tokenizer=tokenizer, span_source=job["span_source"], parallelism=job["parallelism"]
    )
    pipeline = pipeline.pack_flat(**job["packing"], parallelism=1)
    pipeline = pipeline.batch(job["rows"]).options(runner=job["runner"])
    for batch in pipeline:
        size = batch.to_training(return_labels=True)["input_ids"].size
        yield size - sum(record.meta.padding_length or 0 for record in batch.records)


def main() -> None:
    """Time the batches until the time is up; the first one is timed apart."""
    job = json.loads(sys.argv[1])
    transformers.logging.set_verbosity_error()
    imports = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    stream = batches(job)
    next(stream)
    first = now = time.perf_counter()
    tokens = 0
    for size in stream:
        tokens += size
        now = time.perf_counter()
        if now - first >= job["seconds"]:
            break
    reading = {
        "tokens": tokens,
        "seconds": now - first,
        "first_batch": first - start,
        "imports_kb": imports,
    }
    print(json.dumps(reading), flush=True)
    stream.close()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
