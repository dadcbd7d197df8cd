"""The jobs done slowly and plainly, a token at a time: what the output must equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.jobs import Job

_END_OF_TEXT = 50256  # GPT-2's begin and end are one token


def tokens(job: Job, corpus: Path) -> Iterator[int]:
    """Yield the tokens of a sequential job in order; text is encoded by the reference."""
    if job.text:
        encoder = Tokenizer.from_file(str(corpus / "gpt2" / "tokenizer.json"))
        for text in _column(corpus / "text-parquet", "text"):
            yield _END_OF_TEXT
            yield from encoder.encode(text, add_special_tokens=False).ids
            yield _END_OF_TEXT
    else:
        for row in _column(corpus / _only(job), "input_ids"):
            yield from row


def token_count(job: Job, corpus: Path) -> int:
    """Count the tokens of one pass over the job's data."""
    if job.text:
        facts = json.loads((corpus / "corpus.json").read_text(encoding="utf-8"))
        return facts["tokens"] + 2 * facts["documents"]
    return sum(int(of.sum()) for name in job.data for of in lengths(corpus / name))


def lengths(directory: Path) -> list[NDArray[np.int64]]:
    """Count the tokens of each list, shard by shard."""
    columns = (pq.read_table(path)["input_ids"] for path in sorted(directory.glob("*.parquet")))
    return [pc.list_value_length(column).to_numpy().astype(np.int64) for column in columns]  # pyright: ignore[reportAttributeAccessIssue]


@lru_cache(maxsize=4)
def shard(directory: Path, number: int) -> Any:
    """Read the token lists of one shard, an Arrow column."""
    return pq.read_table(sorted(directory.glob("*.parquet"))[number])["input_ids"]


def _only(job: Job) -> str:
    (name,) = job.data
    return name


def _column(directory: Path, name: str) -> Iterator[Any]:
    for path in sorted(directory.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(100, columns=[name]):
            yield from batch.column(name).to_pylist()
