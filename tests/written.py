"""Small datasets in every format, written to disk from plain rows."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from backports import zstd

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource

PACK = {".gz": gzip.compress, ".zst": zstd.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
KINDS = ("parquet", "jsonl", "jsonl.gz", "jsonl.zst", "in_memory")


def dataset(kind, folder, rows, *, name="words", shards=2):
    """Write rows in order into so many shards of one format."""
    size = max(1, -(-len(rows) // shards))
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    if kind == "in_memory":
        return Dataset.from_dict(name, {i: InMemoryShard(part) for i, part in enumerate(parts)})
    for number, part in enumerate(parts):
        if kind == "parquet":
            parquet(folder, f"{number:03}.parquet", part)
        else:
            lines(folder, f"{number:03}.{kind}", part)
    return Dataset.from_path(name, folder)


def parquet(folder, file, rows, **settings):
    """Write rows, each a dict, as one Parquet file of small row groups."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    pq.write_table(table, Path(folder) / file, **{"row_group_size": 4, **settings})


def lines(folder, file, rows):
    """Write rows as JSON lines: text or bytes as they stand, everything else encoded."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = b"".join(_line(row) + b"\n" for row in rows)
    raw(folder, file, text)


def raw(folder, file, text):
    """Write bytes, compressed as the name says."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / file).write_bytes(PACK.get(Path(file).suffix, bytes)(text))


def in_order(*datasets, **settings):
    """Read datasets as they lie: no shuffling, equal weights, one pass."""
    return StaticMixtureWorkSource(
        datasets=list(datasets),
        mixture={each.name: 1.0 for each in datasets},
        **{"shuffle_shards": False, **settings},
    )


def pipeline(*datasets, **settings):
    """Begin a pipeline that reads as the datasets lie, on one thread."""
    return Pipeline(in_order(*datasets, **settings)).options(runner="inline")


def texts_to_tokens(tokenizer_folder):
    """Return what turns a text into ids without special tokens, by the reference library."""
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(str(Path(tokenizer_folder) / "tokenizer.json"))
    return lambda text: reference.encode(text, add_special_tokens=False).ids


def _line(row):
    if isinstance(row, bytes):
        return row
    return row.encode() if isinstance(row, str) else json.dumps(row, ensure_ascii=False).encode()
