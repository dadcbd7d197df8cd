"""Parquet files of many writers: they differ in types, fields, emptiness and size, and in order."""

import decimal
import subprocess
import sys
from itertools import permutations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import in_order, parquet, pipeline, raw
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.errors import DatasetError, PlanError, ShardError


def orders(folder, tables):
    """Write files in each order; give the dataset and the order."""
    for order in permutations(range(len(tables))):
        place = folder / "".join(map(str, order))
        for number, which in enumerate(order):
            parquet(place, f"{number}.parquet", tables[which])
        yield Dataset.from_path("words", place), order


def payloads(pipe):
    return [record.payload for record in pipe]


# Objects whose keys differ: within one file Parquet has all keys in each row, between files not


def test_fields_of_an_object_in_another_file_are_not_added_to_a_row(tmp_path):
    objects = [{"a": {"type": "int"}}, {"b": {"type": "str"}, "c": None}]
    tables = [pa.table({"tools": [each]}) for each in objects]
    for data, order in orders(tmp_path, tables):
        assert [row["tools"] for row in payloads(pipeline(data))] == [objects[n] for n in order]


def test_a_field_that_is_a_number_here_and_text_there_stays_both(tmp_path):
    objects = [{"time": 1690876800}, {"time": "2025-08-01"}]
    tables = [pa.table({"id": [n], "arguments": [each]}) for n, each in enumerate(objects)]
    for data, order in orders(tmp_path, tables):
        found = payloads(pipeline(data))
        assert [row["arguments"] for row in found] == [objects[n] for n in order]
        assert [row["id"] for row in payloads(pipeline(data).select(pl.col("id")))] == list(order)
        with pytest.raises(PlanError) as caught:
            payloads(pipeline(data).select(pl.col("arguments")))
        for number, which in enumerate(order):
            kind = ("struct<time: int64>", "struct<time: string>")[which]
            assert f"shard '{number}.parquet' has {kind}" in str(caught.value)


# Text in every Arrow type, columns in any order, in every order of the files


def test_text_of_every_layout_is_one_column_in_every_order(tmp_path):
    words = pa.array(["ash", "größe", None])
    tables = [
        pa.table({"text": words, "n": [1, 2, 3]}),
        pa.table({"text": words.dictionary_encode()}),
        pa.table({"text": words.cast(pa.large_string()), "n": [1, 2, 3]}),
        pa.table({"n": [1, 2, 3], "text": words.cast(pa.string_view())}),
    ]
    for data, _ in orders(tmp_path, tables):
        assert {field.name: field.type for field in data.fields()}["text"] == pa.large_string()
        found = payloads(pipeline(data).select(pl.col("text")))
        assert [row["text"] for row in found] == ["ash", "größe", None] * 4


# Files without rows


def test_empty_files_are_passed_over_wherever_they_stand(tmp_path):
    table = pa.table({"input_ids": [[1, 2], [3, 4]]})
    tables = [table.slice(0, 0), table, table.slice(0, 0)]
    for data, order in orders(tmp_path, tables):
        assert data.counts().tolist() == [0 if n != 1 else 2 for n in order]
        for lanes in (1, 3):
            pipe = pipeline(data, stop_after_passes=2).options(canonical_replicas=lanes)
            assert sorted(int(row["input_ids"][0]) for row in payloads(pipe)) == [1, 1, 3, 3]


def test_empty_files_alone_are_refused_at_once(tmp_path):
    table = pa.table({"input_ids": pa.array([], pa.list_(pa.int64()))})
    parquet(tmp_path, "a.parquet", table)
    parquet(tmp_path, "b.parquet", table)
    data = Dataset.from_path("words", tmp_path)
    for passes in (1, 10**6):
        with pytest.raises(DatasetError, match=r"'words' must have rows.*none in 2 shards"):
            StaticMixtureWorkSource([data], {"words": 1}, stop_after_passes=passes)


@pytest.mark.parametrize("name", ["0.parquet", "9.parquet"])
def test_a_file_of_no_bytes_is_named_wherever_it_stands(tmp_path, name):
    parquet(tmp_path, "5.parquet", pa.table({"text": ["x"]}))
    raw(tmp_path, name, b"")
    with pytest.raises(ShardError, match=rf"shard '{name}': .*the file is empty: .*not a Parquet"):
        Dataset.from_path("words", tmp_path)


# Precisions of decimals and timestamps


def test_precisions_matter_only_where_they_are_needed(tmp_path):
    tables = [
        pa.table(
            {
                "id": [0],
                "price": pa.array([decimal.Decimal("1.10")], pa.decimal128(10, 2)),
                "seen": pa.array([1_000], pa.timestamp("ms")),
                "at": pa.array([5], pa.timestamp("ms", "Europe/Berlin")),
            }
        ),
        pa.table(
            {
                "id": [1],
                "price": pa.array([decimal.Decimal("2.0001")], pa.decimal128(12, 4)),
                "seen": pa.array([7], pa.timestamp("us", "UTC")),
                "at": pa.array([6], pa.timestamp("us", "UTC")),
            }
        ),
    ]
    prices = [decimal.Decimal("1.1000"), decimal.Decimal("2.0001")]
    ticks = [np.datetime64(5_000, "us"), np.datetime64(6, "us")]
    seen = [np.datetime64(1_000_000, "us"), np.datetime64(7, "us")]
    for data, order in orders(tmp_path, tables):
        assert [row["id"] for row in payloads(pipeline(data).select(pl.col("id")))] == list(order)
        found = payloads(pipeline(data).select(pl.col("price"), pl.col("at")))
        assert [row["price"] for row in found] == [prices[n] for n in order]
        assert [row["at"] for row in found] == [ticks[n] for n in order]
        with pytest.raises(PlanError) as caught:
            payloads(pipeline(data).select(pl.col("seen")))
        for number, which in enumerate(order):
            kind = ("timestamp[ms]", "timestamp[us, tz=UTC]")[which]
            assert f"shard '{number}.parquet' has {kind}" in str(caught.value)
        told = Dataset.from_path("words", data.path, schema={"seen": "timestamp[us, tz=UTC]"})
        found = payloads(pipeline(told).select(pl.col("seen")))
        assert [row["seen"] for row in found] == [seen[n] for n in order]


# Where a row is


@pytest.mark.parametrize("settings", [{"runner": "inline"}, {"max_workers": 3}])
def test_a_row_has_its_place_in_its_file_whatever_a_filter_drops(tmp_path, settings):
    tables = [pa.table({"n": range(9)}), pa.table({"n": range(9)})]
    for data, _ in orders(tmp_path, tables):
        for wanted in (pl.col("n") == 2, pl.col("n") >= 7, pl.col("n").is_in([0, 5])):
            numbers = pl.DataFrame({"n": range(9)}).filter(wanted)["n"].to_list()
            pipe = Pipeline(in_order(data)).filter(wanted).options(**settings)
            found = [(record.meta.sample_id, int(record.payload["n"])) for record in pipe]
            assert found == [((0, shard, n), n) for shard in (0, 1) for n in numbers]


# Row groups that do not fit into memory

PEAK = """
import sys
import polars
from tests.peak_memory import count_anew, peak_kilobytes
from tests.written import in_order
from zephon import Dataset, Pipeline

pipe = Pipeline(in_order(Dataset.from_path("d", sys.argv[1])))
pipe = pipe.select(polars.col("text").str.len_bytes())
pipe = pipe.options(max_workers=8, memory_budget="96mb")
count_anew()
before = peak_kilobytes()
print(sum(1 for _ in pipe), peak_kilobytes() - before)
"""


def test_eight_workers_share_the_parts_of_a_huge_row_group(tmp_path):
    texts = [f"{n:08}" + "lorem ipsum dolor sit amet. "[n % 8 :] * 720 for n in range(16_000)]
    table = pa.table({"text": texts})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, row_group_size=len(texts))
    size = table.nbytes >> 10
    del table, texts
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, ran.stdout.split())
    assert rows == 16_000
    assert grown < 1.2 * size  # kilobytes; who decodes the group at once takes 1.7 times its size
