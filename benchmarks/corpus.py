"""The benchmark's data, built once: `python -m benchmarks.corpus [DIRECTORY]`.

One set of documents as Parquet text and as JSONL, and its GPT-2 tokens cut into lists of about
2,200 and about 275. Every form has 8 shards; documents lie in one fixed random order, so that the
work is even from the first shard to the last. 1,000 documents a row group: a few groups a shard.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gigatoken
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.documents import debian_documents, python_documents
from benchmarks.gpt2 import write_gpt2

DIRECTORY = Path("bench-data")
SHARDS = 8
TEXT_ROWS = 1_000  # documents of a row group
LEAST_DOCUMENTS = 20_000  # the public package wants 16,384 rows or more a dataset
LEAST_BYTES, MOST_BYTES = 100_000_000, 400_000_000
LIST_LENGTHS = {"tokens-2200": (2_200, 500), "tokens-275": (275, 4_000)}  # mean, lists a group


def main() -> None:
    """Build the corpus if it is not there."""
    parser = argparse.ArgumentParser(description=build.__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY)
    build(parser.parse_args().directory)


def build(directory: Path) -> None:
    """Write the text, the token lists and the tokenizer below ``directory``."""
    done = directory / "corpus.json"
    if done.exists():
        print(f"{done}: {done.read_text(encoding='utf-8')}")
        return
    print("building the benchmark corpus; this takes a few minutes", flush=True)
    texts, origin = _documents()
    size = sum(len(text.encode()) for text in texts)
    if not LEAST_BYTES <= size <= MOST_BYTES or len(texts) < LEAST_DOCUMENTS:
        raise ValueError(f"corpus: {len(texts)} documents with {size} bytes are out of range")
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
    write_gpt2(directory / "gpt2")
    _write_text(directory, texts)
    tokens = _tokens(directory / "gpt2" / "tokenizer.json", texts)
    for name, (mean, group) in LIST_LENGTHS.items():
        _write_lists(directory / name, tokens, mean=mean, group_rows=group)
    facts = {"origin": origin, "documents": len(texts), "bytes": size, "tokens": len(tokens)}
    done.write_text(json.dumps(facts), encoding="utf-8")
    print(f"{done}: {json.dumps(facts)}")


def _documents() -> tuple[list[str], str]:
    texts = debian_documents()
    if texts is not None and sum(map(len, texts)) >= LEAST_BYTES:
        return texts, "debian packages"
    texts = python_documents(least_bytes=LEAST_BYTES * 3 // 2, least_documents=LEAST_DOCUMENTS)
    return texts, "sources of the running Python"


def _write_text(directory: Path, texts: Sequence[str]) -> None:
    parquet, jsonl = _fresh(directory / "text-parquet"), _fresh(directory / "text-jsonl")
    for shard in range(SHARDS):
        rows = range(len(texts) * shard // SHARDS, len(texts) * (shard + 1) // SHARDS)
        table = pa.table({"id": [f"document-{i}" for i in rows], "text": [texts[i] for i in rows]})
        path = parquet / f"text-{shard:02}.parquet"
        pq.write_table(table, path, compression="zstd", row_group_size=TEXT_ROWS)
        with (jsonl / f"text-{shard:02}.jsonl").open("w", encoding="utf-8") as file:
            for row in table.to_pylist():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _tokens(tokenizer: Path, texts: Sequence[str]) -> NDArray[np.int32]:
    """Encode all documents; return their tokens as one array."""
    fast = gigatoken.Tokenizer(os.fspath(tokenizer))
    parts = []
    for start in range(0, len(texts), TEXT_ROWS):
        batch = [text.encode() for text in texts[start : start + TEXT_ROWS]]
        layout: Any = fast.encode_batch(batch, parallel=False).layout
        parts.append(np.array(layout.content.data).view(np.int32))
    return np.concatenate(parts)


def _write_lists(directory: Path, tokens: NDArray[np.int32], *, mean: int, group_rows: int) -> None:
    """Cut the tokens into lists of log-normal length with this mean."""
    spread = 0.8
    draw = np.random.default_rng(mean)
    count = len(tokens) // mean
    lengths = draw.lognormal(np.log(mean) - spread**2 / 2, spread, count).astype(np.int64) + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    offsets = offsets[offsets <= len(tokens)]
    lists = pa.LargeListArray.from_arrays(offsets, tokens[: offsets[-1]])
    table = pa.table({"input_ids": lists.cast(pa.list_(pa.int32()))})
    _fresh(directory)
    for shard in range(SHARDS):
        start, stop = len(lists) * shard // SHARDS, len(lists) * (shard + 1) // SHARDS
        path = directory / f"tokens-{shard:02}.parquet"
        part = table.slice(start, stop - start)
        pq.write_table(part, path, compression="zstd", row_group_size=group_rows)


def _fresh(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


if __name__ == "__main__":
    main()
