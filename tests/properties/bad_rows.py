"""Datasets with bad rows, the same with good rows in their places, and jobs over both.

A good row that stands for a bad one says so, and is filtered: others have their places either way.
"""

import json

import polars as pl

from tests.properties.recipes import source
from tests.written import lines
from zephon import Dataset, Pipeline
from zephon.ops import tombstones_for_record

WORDS = ["the tree and ", "ash", "", "größe wood ", "木"]
BAD = {
    "cut off": b'{"text": "the tr',
    "no field": b'{"body": "the tree", "n": 1}',
    "a number": b'{"text": 3.5, "n": 1}',
    "half a pair": b'{"text": "a\\ud800", "n": 1}',
    "no utf-8": b'{"text": "\xff", "n": 1}',
    "no object": b'["the tree"]',
}
NULL = b'{"text": null, "n": 1}'
REFUSED = b'{"text": "the tree", "n": -1, "digits": "none"}'
"""What functions and expressions raise for."""

STANDS_FOR_BAD = b'{"text": "bad", "n": 1, "digits": "1", "bad": 1}'


def texts(count, bad):
    """Give lines, and the same with good ones for the bad; ``bad``: lines by place."""
    rows = [
        {"text": WORDS[i % 5] * (1 + i % 4) + str(i), "n": i, "digits": str(i), "bad": 0}
        for i in range(count)
    ]
    good = [json.dumps(row).encode() for row in rows]
    broken = [bad.get(i, line) for i, line in enumerate(good)]
    return broken, [STANDS_FOR_BAD if i in bad else line for i, line in enumerate(good)]


def write(folder, name, count, bad, **policy):
    """Write both datasets, of three shards."""
    found = []
    for kind, rows in zip(("broken", "clean"), texts(count, bad), strict=True):
        cut = -(-count // 3)
        for number in range(3):
            lines(folder / kind / name, f"{number}.jsonl", rows[number * cut : (number + 1) * cut])
        given = policy if kind == "broken" else {}
        schema = {"text": "string", "n": "int64", "digits": "string", "bad": "int64"}
        given = {**given, "schema": schema}
        found.append(Dataset.from_path(name, folder / kind / name, **given))
    return found


def mixed(count, *kinds):
    """Put bad lines of some kinds at every seventh place, and two side by side."""
    places = sorted({*range(3, count, 7), *range(4, count, 35)})
    return {place: kinds[number % len(kinds)] for number, place in enumerate(places)}


def refuse(row):
    if row["n"] < 0:
        raise ValueError("this row is refused")
    return {**row, "text": row["text"] + "!"}


def counted(records):
    """Tell each record how many came with it, and drop some."""
    found = []
    for record in records:
        if record.payload["n"] % 5 == 0:
            found += tombstones_for_record(record)
        else:
            record.payload["text"] += f" {len(records)}"
            found.append(record)
    return found


def begin(datasets, *, clean, **work):
    settings = {"chunk_size": 8, "shuffle_within_shard": True, "exhausted_policy": "redistribute"}
    pipeline = Pipeline(source(datasets, **{**settings, **work}))
    return pipeline.filter(pl.col("bad") == 0) if clean else pipeline


def rows_of(batch):
    """Give each row with all that is known of it."""
    return [(str(record.meta), list(record.payload["input_ids"])) for record in batch.records]


def tokenized(pipeline, tokenizer, **settings):
    return pipeline.tokenize(tokenizer_id=tokenizer, field="text", **settings)


def wrapped(pipeline):
    return pipeline.pack_flat(9, algorithm="wrap").batch(1)


def digits(pipeline):
    strict = pl.col("digits").cast(pl.Int64, strict=True).alias("number")
    return pipeline.with_columns(strict).filter(pl.col("number") % 11 != 1)


CHAINS = {
    "wrap": lambda p, t: wrapped(tokenized(p, t)),
    "splits": lambda p, t: (
        tokenized(p, t, split_long_samples=True, max_length=7)
        .shuffle(20)
        .pack_flat(9, algorithm="first_fit", num_bins=3, pad_token_id=0)
        .batch(1)
    ),
    "rows": lambda p, t: tokenized(p, t).batch(3),
    "map": lambda p, t: wrapped(tokenized(p.map_transform(refuse), t)),
    "expression": lambda p, t: wrapped(tokenized(digits(p), t)),
    "groups": lambda p, t: wrapped(
        tokenized(p.add_op("counted", process_many=counted, preserves_cursor_order=True), t)
    ),
    "map behind packing": lambda p, t: (
        tokenized(p, t).pack_flat(9, algorithm="wrap").map_transform(dict).batch(1)
    ),
}
UNREADABLE = [BAD["cut off"], BAD["no utf-8"]]
KINDS = {
    **{chain: [*BAD.values(), NULL] for chain in CHAINS},
    "map": [*BAD.values(), NULL, REFUSED],
    "expression": [*BAD.values(), NULL, REFUSED],
    "groups": UNREADABLE,  # what is whole is given to the function, which must take it
}
WORKS = {
    "rows": {},
    "tokens": {"mixture_unit": "tokens"},
    "endless": {"exhausted_policy": "repeat"},
}
