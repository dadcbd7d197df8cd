"""The public package zephon 0.2.0 on one job; run by the Python of its own virtual environment.

It has our name, so it can never be imported beside us, and this file imports nothing of ours. Its
tokenizer argument wants a callable in the manner of Hugging Face; the one here is the thinnest that
serves, around `tokenizers`. It prints one line of JSON: the fields of `benchmarks.timing.Reading`.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer
from zephon import Dataset, Pipeline, StaticMixtureWorkSource


class Gpt2:
    """GPT-2 as the callable that the package asks for."""

    bos_token_id = eos_token_id = pad_token_id = 50256
    pad_token = eos_token = bos_token = "<|endoftext|>"
    name_or_path = "gpt2"
    is_fast = True

    def __init__(self, path: str) -> None:
        self._tokenizer = Tokenizer.from_file(path)

    def __call__(self, texts: list[str], **_options: object) -> dict[str, list[list[int]]]:
        """Encode without special tokens; the package adds its own."""
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return {"input_ids": [encoding.ids for encoding in encoded]}


def batches(arguments: argparse.Namespace) -> Iterator[int]:
    """Yield the tokens of each training batch, without the padding."""
    described = json.loads(arguments.job)
    keywords = described["source"]
    folders = [(name, str(Path(arguments.corpus, name))) for name in keywords["mixture"]]
    datasets = [Dataset.from_path(name, folder) for name, folder in folders]
    pipeline = Pipeline(StaticMixtureWorkSource(datasets=datasets, **keywords))
    if arguments.fetch is not None:
        parallelism, together = arguments.fetch
        pipeline = pipeline.fetch_parallelism(parallelism, max_batch=together)
    if arguments.tokenizer is not None:
        pipeline = pipeline.tokenize(
            tokenizer=Gpt2(arguments.tokenizer),
            field="text",
            add_attention_mask=False,
            parallelism=arguments.parallelism,
        )
    for name, keywords in described["steps"]:
        pipeline = getattr(pipeline, name)(**keywords, parallelism=1)
    pipeline = pipeline.batch(8).options(runner=arguments.runner)
    for batch in pipeline:
        size = batch.to_training(return_labels=True)["input_ids"].size
        yield size - sum(record.meta.padding_length or 0 for record in batch.records)


def main() -> None:
    """Time the batches until the time is up; the first one is timed apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="the folder that holds the datasets")
    parser.add_argument("job", help="JSON: keywords of the work source, and steps to packed rows")
    parser.add_argument(
        "--tokenizer", help="the path of a tokenizer.json; without it rows hold tokens"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="measured time, at least")
    parser.add_argument("--runner", choices=("threads", "process", "inline"), default="threads")
    parser.add_argument("--parallelism", type=int, default=2, help="threads that encode text")
    parser.add_argument(
        "--fetch", type=int, nargs=2, help="fetch workers, and rows that each fetches together"
    )
    arguments = parser.parse_args()
    if arguments.tokenizer is not None and not Path(arguments.tokenizer).is_file():
        parser.error(f"no tokenizer.json at {arguments.tokenizer}")

    imports = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    stream = batches(arguments)
    next(stream)
    first = now = time.perf_counter()
    tokens = 0
    for size in stream:
        tokens += size
        now = time.perf_counter()
        if now - first >= arguments.seconds:
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
