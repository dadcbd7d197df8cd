"""Zephon on one job, in this process: `python -m benchmarks.ours text_parquet [--check]`."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import torch

from benchmarks.jobs import CORPUS, JOBS, Job
from benchmarks.timing import measure
from zephon import Dataset, MixtureSpec, Pipeline, SampleBatch, StaticMixtureWorkSource

ROWS, LENGTH = 8, 2049
_COMPARED = 4  # batches


def main() -> None:
    """Run the job once and print its reading, or check what it gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=sorted(JOBS))
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--batches", type=int, help="stop after so many")
    parser.add_argument("--check", action="store_true", help="compare with a slow, plain version")
    arguments = parser.parse_args()
    job = JOBS[arguments.job]
    torch.set_num_threads(1)
    if arguments.check:
        check(job, arguments.corpus)
    else:
        measure(lambda: islice(_sizes(job, arguments.corpus), arguments.batches))


def batches(job: Job, corpus: Path) -> Generator[SampleBatch, None, None]:
    """Describe the job as a user would, and run it."""
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("corpus", str(corpus / job.data))],
        mixture=MixtureSpec({"corpus": 1.0}),
        shuffle_shards=False,
        shuffle_within_shard=job.order != "sequential",
        shuffle_block_size="auto" if job.order == "blocks" else None,
        stop_after_passes=job.passes,
    )
    # The spill lies beside the corpus, and its files stay from run to run.
    pipeline = Pipeline(source).options(io_options={"cache": {"root": str(corpus / "cache")}})
    if job.text:
        pipeline = pipeline.tokenize(tokenizer_id=str(corpus / "gpt2"), field="text")
    pipeline = pipeline.pack_flat(max_length=LENGTH, algorithm="wrap").batch(ROWS)
    if job.step_rows is not None:
        pipeline = pipeline.options(global_batch_size=job.step_rows)
    return cast("Generator[SampleBatch, None, None]", iter(pipeline))


def check(job: Job, corpus: Path) -> None:
    """Compare the first batches with a plain loop, and the number of batches with the tokens."""
    from benchmarks import plain  # late: what it loads would count among the imports of a timed run

    count, first = 0, []
    for batch in batches(job, corpus):
        tensors = batch.to_training(return_labels=True)
        inputs, labels = tensors["input_ids"], tensors["labels"]
        assert inputs.shape == labels.shape == (ROWS, LENGTH - 1), inputs.shape
        assert inputs.dtype == labels.dtype == torch.int64, inputs.dtype
        assert torch.equal(inputs[:, 1:], labels[:, :-1])
        if count < _COMPARED:
            first.append(np.column_stack([inputs.numpy(), labels[:, -1].numpy()]))
        count += 1
    stream = np.concatenate(first).reshape(-1)
    if job.order == "sequential" and job.step_rows is None:
        expected = np.fromiter(islice(plain.tokens(job, corpus), len(stream)), np.int64)
        assert np.array_equal(stream, expected), "the first batches differ from the plain loop"
    most = plain.token_count(job, corpus) // (ROWS * LENGTH)
    most *= job.passes
    least = most if job.step_rows is None else most // 2  # steps end with the lane of fewest tokens
    assert least <= count <= most, f"{count} batches, not {least} to {most}"


def _sizes(job: Job, corpus: Path) -> Iterator[int]:
    for batch in batches(job, corpus):
        yield batch.to_training(return_labels=True)["input_ids"].numel()


if __name__ == "__main__":
    main()
