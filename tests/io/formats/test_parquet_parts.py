"""Row groups that are decoded in parts: the same rows, in bounded memory, forwards."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import pipeline
from zephon.build_index import build_index
from zephon.errors import ShardError
from zephon.io import Dataset
from zephon.io.catalog import write_catalog
from zephon.io.formats import parquet_parts, parquet_units
from zephon.io.formats.parquet_parts import ForwardParts
from zephon.io.formats.parquet_units import Part

ROWS = 1000


@pytest.fixture
def small_units(monkeypatch):
    """Take a kilobyte for huge."""
    monkeypatch.setattr(parquet_units, "HUGE_BYTES", 1000)
    monkeypatch.setattr(parquet_units, "UNIT_BYTES", 500)


@pytest.fixture(name="table")
def make_table():
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "id": numbers,
            "text": pa.array([f"text {n}" if n % 7 else None for n in range(ROWS)]),
            "nested": pa.array([{"a": [n, None], "b": str(n)} for n in range(ROWS)]),
            "kind": pa.array([f"kind {n // 300}" for n in range(ROWS)]).dictionary_encode(),
        }
    )


def written(folder, table, **options):
    pq.write_table(table, folder / "a.parquet", **{"row_group_size": ROWS, **options})
    return Dataset.from_path("d", folder)


def rows_of(dataset):
    return [record.payload for record in pipeline(dataset)]


def same(found, table):
    assert len(found) == table.num_rows
    for row, wanted in zip(found, table.to_pylist(), strict=True):
        assert {name: getattr(v, "item", lambda v=v: v)() for name, v in row.items()} == wanted


@pytest.mark.parametrize("options", [{}, {"row_group_size": 400}, {"data_page_version": "2.0"}])
def test_rows_are_those_of_whole_groups(small_units, tmp_path, table, options):
    dataset = written(tmp_path, table, **options)
    assert len(dataset.group_sizes()) > 50
    assert dataset.group_sizes().sum() == ROWS
    same(rows_of(dataset), table)


def test_rows_at_random_are_the_same_too(small_units, tmp_path, table, read, text):
    dataset = written(tmp_path, table.set_column(1, "text", pa.array(map(str, range(ROWS)))))
    picks = np.random.default_rng(5).integers(0, ROWS, 300)
    rows = read(dataset, text, limit_bytes=2000)
    assert rows.values(picks) == [str(pick) for pick in picks]
    for pick in picks[:50].tolist():
        assert rows.values([pick]) == [str(pick)]


def test_filters_skip_by_what_the_whole_group_says(small_units, tmp_path, table):
    dataset = written(tmp_path, table, row_group_size=500)
    for wanted, expected in (
        (pl.col("id") >= 700, list(range(700, ROWS))),
        (pl.col("text").is_null(), list(range(0, ROWS, 7))),
        (pl.col("text").is_not_null() & (pl.col("id") < 5), [1, 2, 3, 4]),
        (pl.col("id") == 5000, []),
    ):
        pipe = pipeline(dataset).filter(wanted).select(pl.col("id"))
        assert [int(record.payload["id"]) for record in pipe] == expected


def test_nulls_of_a_group_are_not_those_of_its_parts(small_units, tmp_path):
    texts = [None] * 500 + ["word"] * 500
    dataset = written(tmp_path, pa.table({"id": range(ROWS), "text": pa.array(texts)}))
    for wanted, count in ((pl.col("text").is_null(), 500), (pl.col("text") == "word", 500)):
        assert len(list(pipeline(dataset).filter(wanted).select(pl.col("id")))) == count


def test_the_order_of_rows_does_not_depend_on_parts(tmp_path, table, monkeypatch):
    def order():
        pipe = pipeline(Dataset.from_path("d", tmp_path), shuffle_within_shard=True)
        return [int(record.payload["id"]) for record in pipe]

    pq.write_table(table, tmp_path / "a.parquet", row_group_size=ROWS)
    whole = order()
    monkeypatch.setattr(parquet_units, "HUGE_BYTES", 1000)
    monkeypatch.setattr(parquet_units, "UNIT_BYTES", 500)
    assert len(Dataset.from_path("d", tmp_path).group_sizes()) > 50
    assert order() == whole != list(range(ROWS))


def test_an_index_and_a_catalogue_tell_of_the_groups_of_the_file(small_units, tmp_path, table):
    counted = written(tmp_path, table, row_group_size=600)
    build_index("parquet", str(tmp_path))
    told = json.loads((tmp_path / "index.json").read_text())
    assert [g["num_rows"] for g in told["shards"][0]["extra"]["row_groups"]] == [600, 400]
    indexed = Dataset.from_path("d", tmp_path)
    assert indexed.group_sizes().tolist() == counted.group_sizes().tolist()
    same(rows_of(indexed), table)
    assert indexed.shards.group_rows.tolist() == [600, 400]


def test_what_an_index_tells_must_be_parts_of_the_file(small_units, tmp_path, table):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=ROWS)
    write_catalog(
        str(tmp_path),
        names=["a.parquet"],
        rows=[ROWS],
        bytes=[os.path.getsize(path)],
        group_counts=[2],
        group_rows=[999, 1],
        schema=table.schema,
    )
    same_rows = rows_of(Dataset.from_path("d", tmp_path))
    same(same_rows, table)
    pq.write_table(table, path, row_group_size=500)
    write_catalog(
        str(tmp_path),
        names=["a.parquet"],
        rows=[ROWS],
        bytes=[os.path.getsize(path)],
        group_counts=[2],
        group_rows=[999, 1],
        schema=table.schema,
    )
    with pytest.raises(ShardError, match=r"it has 1000 rows in 2 row groups, not 1000 in"):
        rows_of(Dataset.from_path("d", tmp_path))


def test_one_pass_serves_readers_that_go_forward(small_units, tmp_path, table, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=ROWS)
    opened = []

    def open_file(_):
        opened.append(pq.ParquetFile(path, buffer_size=1 << 16))
        return opened[-1]

    parts = ForwardParts(open_file)
    for start in range(0, ROWS, 100):
        found = parts.read(0, Part(0, start, start + 100, False, 100), ["id"])
        assert found.column("id").to_pylist() == list(range(start, start + 100))
    assert len(opened) == 1
    assert opened[0].closed
    monkeypatch.setattr(parquet_parts, "WAITING_READERS", 2)
    for start in (500, 300, 100, 600, 200):
        found = parts.read(0, Part(0, start, start + 100, False, 100), ["id"])
        assert found.column("id").to_pylist() == list(range(start, start + 100))
    assert [file.closed for file in opened] == [True, True, False, False]
    parts.close()
    assert all(file.closed for file in opened)


def test_threads_that_read_parts_at_once(small_units, tmp_path, read, text):
    dataset = written(tmp_path, pa.table({"text": [f"{n} text" for n in range(ROWS)]}))
    rows = read(dataset, text, limit_bytes=3000)
    wrong = []

    def go(seed):
        for pick in np.random.default_rng(seed).integers(0, ROWS, 60).tolist():
            if rows.values([pick]) != [f"{pick} text"]:
                wrong.append(pick)

    threads = [threading.Thread(target=go, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_damaged_page_is_an_error_of_the_parts_behind_it(small_units, tmp_path, read, text):
    table = pa.table({"text": [os.urandom(20).hex() for _ in range(ROWS)]})
    dataset = written(
        tmp_path, table, data_page_size=2000, write_batch_size=50, use_dictionary=False
    )
    path = tmp_path / "a.parquet"
    content, status = bytearray(path.read_bytes()), path.stat()
    half = len(content) // 2
    content[half : half + 100] = b"\xff" * 100
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    rows = read(dataset, text)
    assert rows.values([3]) == table.column("text").to_pylist()[3:4]
    with pytest.raises(ShardError, match=r"shard 'a.parquet': row group 0 must be readable"):
        rows.values([ROWS - 1])
    assert rows.values([20]) == table.column("text").to_pylist()[20:21]


PEAK = """
import sys
import numpy as np
from tests.peak_memory import count_anew, peak_kilobytes
from zephon import Dataset
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader

dataset = Dataset.from_path("d", sys.argv[1])
import polars  # what a reader imports late is not what reading takes
rows = RowReader(dataset, (Column("text", "text"),), payload=False, cache=GroupCache(1 << 25))
count_anew()
before = peak_kilobytes()
for start in (0, 7_500):
    found = rows.take(np.zeros(10, np.int64), np.arange(start, start + 10)).columns.column(0)
    assert [text.as_py()[:8] for text in found] == [f"{n:08}" for n in range(start, start + 10)]
print(peak_kilobytes() - before)
"""


def test_ten_rows_of_a_huge_group_take_no_more_memory_than_some_parts(tmp_path):
    schema = pa.schema({"text": pa.string()})
    texts = [f"{n:08}" + "lorem ipsum dolor sit amet. "[n % 8 :] * 720 for n in range(8_000)]
    pq.write_table(
        pa.table({"text": texts}, schema),
        tmp_path / "a.parquet",
        use_dictionary=False,
        row_group_size=len(texts),
    )  # 160 MB of text
    del texts
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) < 230_000  # kilobytes; the group would take twice its size
