"""The jobs done slowly and plainly, a token at a time: what the output must equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
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
        for row in _column(corpus / job.data, "input_ids"):
            yield from row


def token_count(job: Job, corpus: Path) -> int:
    """Count the tokens of one pass over the job's data."""
    if job.text:
        facts = json.loads((corpus / "corpus.json").read_text(encoding="utf-8"))
        return facts["tokens"] + 2 * facts["documents"]
    tables = (pq.read_table(path) for path in (corpus / job.data).glob("*.parquet"))
    return sum(len(chunk.flatten()) for t in tables for chunk in t.column("input_ids").chunks)


def _column(directory: Path, name: str) -> Iterator[Any]:
    for path in sorted(directory.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(100, columns=[name]):
            yield from batch.column(name).to_pylist()
