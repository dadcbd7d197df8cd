"""Whole rows that went through the spill are those that were decoded, errors included."""

import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.written import lines, parquet
from zephon.errors import DataError
from zephon.io import Dataset
from zephon.io.fields import Column
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.io.spill.file import MappedGroup
from zephon.io.spill.room import SUFFIX
from zephon.io.spill.rows import spilled_rows
from zephon.io.spill.spill import Spill, SpillSettings

TEXT = Column("text", "text")


def table():
    n = 40
    points = pa.array([{"x": i, "tags": [str(i), None]} for i in range(n)])
    return pa.table(
        {
            "text": pa.array([f"row {i} é" for i in range(n)]),
            "half": pa.array(np.arange(n), pa.float16()),
            "flag": pa.array([i % 2 == 0 if i % 3 else None for i in range(n)]),
            "point": points,
            "day": pa.array([datetime.date(2020, 1, 1 + i % 28) for i in range(n)]),
            "when": pa.array(range(n), pa.timestamp("us", tz="Europe/Berlin")),
            "kind": pa.array([f"kind {i % 3}" for i in range(n)]).dictionary_encode(),
            "numbers": pa.array([list(range(i % 4)) for i in range(n)], pa.list_(pa.int64())),
            "vector": pa.array([[i, i + 1.0] for i in range(n)], pa.list_(pa.float32(), 2)),
            "raw": pa.array([b"\xff" * (i % 5) for i in range(n)]),
            "nothing": pa.nulls(n),
            "price": pa.array([None if i % 7 == 0 else i for i in range(n)], pa.decimal128(9, 2)),
        }
    )


JSON = [
    "",
    *({"text": f"row {i}", "deep": {"list": [i, None, "é"]}, "n": i / 3} for i in range(30)),
    "",
    "   ",
    *({"text": f"row {i}", "other": i} for i in range(30, 40)),
]


@pytest.fixture(params=["parquet", "jsonl", "jsonl.gz"])
def dataset(request, tmp_path):
    if request.param == "parquet":
        parquet(tmp_path, "a.parquet", table())
    else:
        lines(tmp_path, f"a.{request.param}", JSON)
        lines(tmp_path, f"b.{request.param}", JSON[1:2])
    return Dataset.from_path("d", tmp_path)


def reader(dataset, *columns, spill=None):
    return RowReader(dataset, columns, payload=True, cache=GroupCache(0, spill))


def whole(rows, picks):
    payload = rows.take(np.zeros(len(picks), np.int64), np.array(picks, np.int64)).payload
    return [payload.row(i) for i in range(len(picks))]


def said(rows):
    """Show values with their types, since 1 == 1.0 == True."""
    return [repr(row) for row in rows]


@pytest.mark.parametrize("columns", [(), (TEXT,)])
def test_rows_are_the_same_from_the_spill(dataset, tmp_path_factory, columns):
    spill = Spill(SpillSettings(tmp_path_factory.mktemp("spill"), 1 << 30, 0))
    wanted = said(whole(reader(dataset, *columns), range(40)))
    rows = reader(dataset, *columns, spill=spill)
    other = np.ones(1, np.int64) if dataset.kind == "jsonl" else np.zeros(1, np.int64)
    for _ in range(3):
        picks = np.random.default_rng(0).permutation(40).tolist()
        assert said(whole(rows, picks)) == [wanted[pick] for pick in picks]
        assert said(whole(rows, range(40))) == wanted
        rows.take(other, np.zeros(1, np.int64))  # pushes the block of JSON lines out
    assert spill.counts().written > 0
    assert spill.counts().mapped > spill.counts().written
    assert spill.counts().damaged == 0


def test_some_rows_of_a_mapped_group_keep_nothing_of_it(tmp_path, tmp_path_factory):
    # Arrow picks no half floats, and a pick of a dictionary column shares the dictionary.
    parquet(tmp_path, "a.parquet", table().drop_columns(["half", "kind"]))
    spill = Spill(SpillSettings(tmp_path_factory.mktemp("spill"), 1 << 30, 0))
    rows = reader(Dataset.from_path("d", tmp_path), spill=spill)
    for _ in range(2):
        taken = rows.take(np.zeros(1, np.int64), np.array([3]))
        rows.take(np.zeros(1, np.int64), np.array([39]))
    assert spill.counts().mapped == 2
    rows._cache.clear()
    assert SUFFIX not in Path("/proc/self/maps").read_text()
    assert taken.payload.row(0)["text"].startswith("row 3")


@pytest.mark.parametrize("columns", [(), (TEXT,)])
def test_bad_lines_are_refused_in_the_same_words(tmp_path, tmp_path_factory, columns):
    bad = [json.dumps(row) if isinstance(row, dict) else row for row in JSON]
    bad[6] = '{"text": "unfinished'
    bad[35] = b'{"text": "\xff"}'
    lines(tmp_path, "a.jsonl", bad)
    lines(tmp_path, "b.jsonl", JSON[1:2])
    dataset = Dataset.from_path("d", tmp_path)
    spill = Spill(SpillSettings(tmp_path_factory.mktemp("spill"), 1 << 30, 0))

    def problem(rows, pick):
        try:
            return said(whole(rows, [pick]))
        except DataError as exc:
            return str(exc)

    plain, spilled = reader(dataset, *columns), reader(dataset, *columns, spill=spill)
    wanted = [problem(plain, pick) for pick in range(40)]
    assert sum("line" in str(each) and "byte" in str(each) for each in wanted) == 2
    for pick in range(40):
        spilled.take(np.ones(1, np.int64), np.zeros(1, np.int64))
        assert problem(spilled, pick) == wanted[pick]
    assert spill.counts().mapped > 39


def test_rows_of_several_datasets_with_the_same_files_name_their_own(tmp_path, tmp_path_factory):
    lines(tmp_path, "a.jsonl", ['{"text": "x"}', "nonsense"])
    lines(tmp_path, "b.jsonl", JSON[1:2])
    root = tmp_path_factory.mktemp("spill")
    for name in ("one", "two"):
        dataset = Dataset.from_path(name, tmp_path)
        rows = reader(dataset, spill=Spill(SpillSettings(root, 1 << 30, 0)))
        for _ in range(2):
            with pytest.raises(DataError, match=f"dataset '{name}', shard 'a.jsonl', row 1"):
                whole(rows, [1])
            rows.take(np.ones(1, np.int64), np.zeros(1, np.int64))


def test_rows_that_cannot_be_written_say_so():
    chunks = pa.chunked_array([["a"], ["b"]])
    joined = spilled_rows(TableRows(pa.table({"text": chunks})))
    assert joined is not None
    assert joined.arrays[0].to_pylist() == ["a", "b"]
    some, _ = TableRows(pa.table({"text": ["a", "b"]})).some(np.array([1]))
    assert spilled_rows(some) is None


def test_a_type_that_arrow_cannot_write_is_decoded_again(tmp_path, tmp_path_factory):
    """Two dictionaries of one column are joined; what Arrow refuses stays out of the spill."""
    one = pa.table({"text": pa.array(["a", "b"] * 4).dictionary_encode()})
    parquet(tmp_path, "a.parquet", one, row_group_size=2)
    spill = Spill(SpillSettings(tmp_path_factory.mktemp("spill"), 1 << 30, 0))
    rows = reader(Dataset.from_path("d", tmp_path), TEXT, spill=spill)
    for _ in range(2):
        assert [row["text"] for row in whole(rows, range(8))] == ["a", "b"] * 4
    assert isinstance(spill.load(rows._key(0, 0)), MappedGroup)
