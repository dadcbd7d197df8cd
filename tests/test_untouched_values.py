"""Bytes, images and nested values travel untouched from the source into records."""

import pickle
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from tests import written
from tests.properties.recipes import source
from zephon import Dataset, InMemoryShard, Pipeline

ROWS = 60


def nested(n):
    """Make the values of one row that every format can hold."""
    return {
        "n": n,
        "text": f"the tree {n} " * (n % 5),
        "meta": {"source": f"s{n}", "deep": {"tags": ["a", "größe"][: n % 3], "score": n / 7}},
        "turns": [{"role": "user", "content": f"c{i}", "parts": [i, None]} for i in range(n % 4)],
        "matrix": [[n, 1], [2]],
        "nothing": None,
    }


def binary(n):
    """Make values that Parquet can hold beside."""
    return {
        "image": bytes(range(n % 7)) * n,
        "images": [b"\x00\xff" * n, b""],
        "wrapped": {"bytes": bytes([n]), "path": None},
    }


@dataclass
class Picture:
    pixels: np.ndarray
    caption: str


def objects(n):
    """Make values that rows in memory can hold beside."""
    rng = np.random.default_rng(n)
    return {
        "pixels": rng.integers(0, 256, (2, 3, 3), np.uint8),
        "audio": rng.random((n % 5, 2), np.float32),
        "set": {n, "a"},
        "complex": np.array([1 + 2j, n]),
        "picture": Picture(rng.random((2, 2)), f"p{n}"),
        "pair": (n, [b"x"]),
    }


TABLE = pa.schema(
    [
        ("n", pa.int64()), ("text", pa.string()), ("nothing", pa.int8()),
        ("meta", pa.struct([
            ("source", pa.string()),
            ("deep", pa.struct([("tags", pa.list_(pa.string())), ("score", pa.float64())])),
        ])),
        ("turns", pa.list_(pa.struct([
            ("role", pa.string()), ("content", pa.string()), ("parts", pa.list_(pa.int64())),
        ]))),
        ("matrix", pa.list_(pa.list_(pa.int64()))),
        ("image", pa.binary()), ("images", pa.list_(pa.large_binary())),
        ("wrapped", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    ]
)  # fmt: skip


def dataset(kind, folder):
    """Write the rows; give the dataset and what each row must be in the end."""
    rows = [nested(n) for n in range(ROWS)]
    if kind == "jsonl":
        written.lines(folder, "a.jsonl", rows[:31])
        written.lines(folder, "b.jsonl", rows[31:])
        return Dataset.from_path("d", folder), rows
    if kind == "parquet":
        rows = [{**row, **binary(row["n"])} for row in rows]
        for name, part in (("a", rows[:31]), ("b", rows[31:])):
            written.parquet(folder, f"{name}.parquet", pa.Table.from_pylist(part, schema=TABLE))
        return Dataset.from_path("d", folder), rows
    rows = [{**row, **binary(row["n"]), **objects(row["n"])} for row in rows]
    copies = pickle.loads(pickle.dumps(rows))
    shards = {0: InMemoryShard(rows[:31]), 1: InMemoryShard(rows[31:])}
    return Dataset.from_dict("d", shards), copies


def same(found, wanted):
    """Compare values of any kind; arrays by type, shape and content."""
    if isinstance(wanted, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and found.dtype == wanted.dtype
            and np.array_equal(found, wanted)
        )
    if isinstance(wanted, Picture):
        return isinstance(found, Picture) and same(vars(found), vars(wanted))
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list | tuple):
        return (
            type(found) is type(wanted)
            and len(found) == len(wanted)
            and all(map(same, found, wanted))
        )
    return found == wanted and isinstance(found, type(wanted) | np.generic)


STEPS = {
    "as they lie": lambda pipe: pipe,
    "shuffled": lambda pipe: pipe.shuffle(16, seed=3),
    "in blocks": lambda pipe: pipe.shuffle(16, seed=3, algorithm="block"),
}


def pipeline(made, tokenizer, steps, *, kept):
    pipe = steps(Pipeline(source([made])).options(canonical_replicas=2, global_batch_size=4))
    if kept:
        pipe.tokenize(tokenizer_id=tokenizer, field="text", preserve_upstream_payload=True)
    return pipe.batch(2)


@pytest.mark.parametrize("kept", [False, True], ids=["raw", "beside tokens"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_records_hold_the_values_of_their_row(kind, steps, kept, tmp_path, tokenizer_file):
    made, wanted = dataset(kind, tmp_path)
    order = list(next(iter(pipeline(made, tokenizer_file, steps, kept=False))).records[0].payload)
    seen = []
    for batch in pipeline(made, tokenizer_file, steps, kept=kept):
        for record in batch.records:
            found = dict(record.payload)
            if kept:
                assert len(found.pop("input_ids")) == len(found.pop("attention_mask")) >= 2
            row = wanted[int(found["n"])]
            assert same(found, {name: row[name] for name in order})
            seen.append(int(found["n"]))
    assert sorted(seen) == list(range(ROWS))


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_so_do_records_after_a_restore(kind, tmp_path, tokenizer_file):
    made, _ = dataset(kind, tmp_path)

    def make():
        return pipeline(made, tokenizer_file, STEPS["shuffled"], kept=True)

    whole = [record.payload for batch in make() for record in batch.records]
    first = make()
    items = iter(first)
    taken = [record.payload for batch in islice(items, 7) for record in batch.records]
    rest = [r.payload for b in make().restore(first.checkpoint()) for r in b.records]
    items.close()
    assert same([*taken, *rest], whole)


def test_a_record_is_the_callers_own(tmp_path):
    made, wanted = dataset("in_memory", tmp_path)
    for batch in Pipeline(source([made])).batch(4):
        for record in batch.records:
            record.payload["pixels"][:] = 0
            record.payload["meta"]["deep"]["tags"].append("mine")
    for batch in Pipeline(source([made])).batch(4):
        for record in batch.records:
            assert same(record.payload, wanted[record.payload["n"]])
