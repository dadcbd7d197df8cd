"""Global steps as one, two or more ranks hand them out: hashes that must not differ."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing
from itertools import islice
from typing import cast

import numpy as np

from zephon.pipeline import Pipeline
from zephon.types import SampleBatch

_LARGEST_MICROBATCH = 8


def step_hashes(
    describe: Callable[[], Pipeline], *, ranks: int, rows: int, steps: int
) -> list[str]:
    """Run every rank in turn, each a pipeline of its own, and hash the steps that they make up.

    Args:
        describe: makes the pipeline up to its packed rows.
        ranks: how many data-parallel groups share a step; divides ``rows``.
        rows: rows of one global step.
        steps: how many steps to hash.

    Returns:
        One SHA-256 a step, over tokens and positions of its rows in global order; fewer than
        ``steps`` where the data of a rank end before.
    """
    share = rows // ranks
    microbatch = largest_divisor(share, _LARGEST_MICROBATCH)
    hashes = [hashlib.sha256() for _ in range(steps)]
    whole = steps
    for rank in range(ranks):
        pipeline = describe().batch(microbatch)
        pipeline = pipeline.options(global_batch_size=rows, dp_degree=ranks, dp_group_id=rank)
        with closing(batches(pipeline)) as stream:
            for step, digest in enumerate(hashes):
                delivered = 0
                for batch in islice(stream, share // microbatch):
                    fields = batch.to_training(dtype=np.int64)
                    digest.update(np.hstack([fields["input_ids"], fields["positions"]]).tobytes())
                    delivered += len(batch)
                if delivered < share:
                    whole = min(whole, step)
                    break
    return [digest.hexdigest() for digest in hashes[:whole]]


def batches(pipeline: Pipeline) -> Generator[SampleBatch, None, None]:
    """Iterate over a pipeline that ends with ``batch()``."""
    return cast("Generator[SampleBatch, None, None]", iter(pipeline))


def largest_divisor(number: int, limit: int) -> int:
    """Find the largest divisor of ``number`` up to ``limit``.

    >>> largest_divisor(12, 8)
    6
    """
    return next(size for size in range(min(number, limit), 0, -1) if number % size == 0)
