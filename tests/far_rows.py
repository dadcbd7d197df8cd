"""Small datasets for far places, and the digest of all batches that a pipeline makes of one."""

import gzip
import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zephon import MixtureSpec, Pipeline, StaticMixtureWorkSource

SHARDS, ROWS = 4, 120


def rows_of(shard):
    return [
        {"text": f"{shard} {row} " + "word " * (row % 17 + 1), "other": "x" * 50}
        for row in range(ROWS)
    ]


def content_of(kind, shard):
    """Give the bytes of a shard: "parquet", "jsonl" or "jsonl.gz"."""
    rows = rows_of(shard)
    if kind == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=40)
        return sink.getvalue().to_pybytes()
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return gzip.compress(text, mtime=0) if kind.endswith(".gz") else text


def files_of(kind):
    return {f"{shard}.{kind}": content_of(kind, shard) for shard in range(SHARDS)}


def write_files(kind, directory):
    directory.mkdir(parents=True)
    for name, content in files_of(kind).items():
        (directory / name).write_bytes(content)
    return directory


def pipeline_of(dataset, **options):
    source = StaticMixtureWorkSource(
        datasets=[dataset], mixture=MixtureSpec({dataset.name: 1.0}), seed=4, chunk_size=64
    )
    return (
        Pipeline(source)
        .options(**options)
        .tokenize(field="text")
        .pack_flat(max_length=33, algorithm="wrap")
        .batch(microbatch_size=4)
        .take(160)
    )


def digest_of(batches):
    found = hashlib.sha256()
    for batch in batches:
        for value in batch.to_training(tokens_field="input_ids").values():
            found.update(np.asarray(value).tobytes())
    return found.hexdigest()
