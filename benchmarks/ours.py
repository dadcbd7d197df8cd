"""Zephon on one job, in this process: `python -m benchmarks.ours text_parquet [--check]`."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

import zephon.running  # noqa: F401 (loaded by a first run, which is timed once imports are done)
from benchmarks.jobs import CORPUS, JOBS, LENGTH, PAD, WRAP, Job
from benchmarks.timing import measure
from zephon import Dataset, Pipeline, SampleBatch, StaticMixtureWorkSource

ROWS = 8
_COMPARED = 4  # batches
_SHARE = 0.01  # of the tokens, how far a kept mixture may be from its target


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


def described(job: Job, corpus: Path) -> Pipeline:
    """Describe the job as a user would."""
    passes: dict[str, Any] = {"stop_after_passes": job.passes} if len(job.data) == 1 else {}
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path(name, str(corpus / name)) for name in job.data],
        **job.source(),
        **passes,
    )
    # The spill lies beside the corpus, and its files stay from run to run.
    pipeline = Pipeline(source).options(io_options={"cache": {"root": str(corpus / "cache")}})
    if job.text:
        pipeline = pipeline.tokenize(tokenizer_id=str(corpus / "gpt2"), field="text")
    for name, keywords in job.steps:
        pipeline = getattr(pipeline, name)(**keywords)
    pipeline = pipeline.batch(ROWS)
    if job.step_rows is not None:
        pipeline = pipeline.options(global_batch_size=job.step_rows)
    return pipeline


def batches(pipeline: Pipeline) -> Generator[SampleBatch, None, None]:
    """Run a pipeline that ends in batches."""
    return cast("Generator[SampleBatch, None, None]", iter(pipeline))


def check(job: Job, corpus: Path) -> None:
    """Compare the first batches with plain loops, and all that came with the data.

    Raises:
        AssertionError: they differ; the message says in what.
    """
    from benchmarks import plain  # late: what they load would count among a timed run's imports
    from benchmarks.delivered import Delivered, check_tokens

    pipeline = described(job, corpus)
    count, first, delivered = 0, [], Delivered()
    for batch in batches(pipeline):
        tensors = batch.to_training(return_labels=True)
        inputs, labels = tensors["input_ids"], tensors["labels"]
        assert inputs.shape == labels.shape == (ROWS, LENGTH - 1), inputs.shape
        assert inputs.dtype == labels.dtype == torch.int64, inputs.dtype
        if not job.text:
            delivered.add(batch)
        if count < _COMPARED:
            first.append(np.column_stack([inputs.numpy(), labels[:, -1].numpy()]))
            if not job.text:
                check_tokens(batch, [corpus / name for name in job.data], PAD)
        count += 1
    if job.steps == (WRAP,):
        stream = np.concatenate(first).reshape(-1)
        if job.order == "sequential" and job.step_rows is None:
            expected = np.fromiter(islice(plain.tokens(job, corpus), len(stream)), np.int64)
            assert np.array_equal(stream, expected), "the first batches differ from the plain loop"
        most = plain.token_count(job, corpus) // (ROWS * LENGTH)
        most *= job.passes
        # Steps end with the lane of fewest tokens.
        least = most if job.step_rows is None else most // 2
        assert least <= count <= most, f"{count} batches, not {least} to {most}"
    if not job.text:
        _check_placement(delivered, job, corpus, pipeline.accounting())


def _check_placement(delivered: Any, job: Job, corpus: Path, account: Mapping[str, Any]) -> None:
    """See that each token came once or is accounted for, and that a kept mixture was kept."""
    from benchmarks import plain  # late, as above

    missing = delivered.check([plain.lengths(corpus / name) for name in job.data])
    came = delivered.tokens_of_datasets()
    for number, (name, found) in enumerate(account.items()):
        lost = sum(found["tokens_dropped"].values())
        assert found["tokens_delivered"] == came[-1, number], f"{name}: {found}"
        assert found["tokens_made"] == found["tokens_delivered"] + lost, f"{name}: {found}"
        if len(job.data) == 1:
            assert missing[number] <= lost, f"{name}: {missing[number]} never came; {found}"
    for step, keywords in job.steps:
        if step == "ensure_mixture":
            target = np.array([keywords["mixture"][name] for name in job.data])
            shares = came / came.sum(axis=1, keepdims=True)
            # The first tenth is left to fill the buffer.
            worst = np.abs(shares[len(shares) // 10 :] - target).max()
            assert worst <= _SHARE, f"shares are up to {worst:.3f} from {target}"


def _sizes(job: Job, corpus: Path) -> Iterator[int]:
    for batch in batches(described(job, corpus)):
        size = batch.to_training(return_labels=True)["input_ids"].numel()
        yield size - _padding(batch)


def _padding(batch: SampleBatch) -> int:
    rows = batch._rows
    return 0 if rows is None or rows.padding is None else int(rows.padding.sum())


if __name__ == "__main__":
    main()
