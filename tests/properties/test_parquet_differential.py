"""Parquet row by row against what pyarrow reads: any types, sizes of row groups, nulls and writers.

Files of one dataset differ in what they may differ in; in each order of files, the rows of each
file and the types of columns are the same.
"""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import pipeline
from zephon import Dataset
from zephon.io.formats import parquet_units
from zephon.io.formats.arrow_values import python_value
from zephon.io.row_filters import FilteredGroups

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
DAY = datetime(1999, 12, 31, 23, 59, 59)


def texts(chance):
    return "".join(chance.choices("aé木 \n\0z", k=chance.choice((0, 1, 5, 40))))


# What a column may be: values at random, and the types in which files may hold them.
MADE = {
    "text": (texts, (pa.string(), pa.large_string(), pa.string_view(), "dictionary")),
    "small": (lambda c: c.randrange(-100, 100), (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    "positive": (lambda c: c.randrange(200), (pa.uint8(), pa.uint16(), pa.uint32(), pa.int64())),
    "number": (lambda c: c.randrange(-(2**10), 2**10) / 4, (pa.float16(), pa.float32(),
                                                            pa.float64())),
    "yes": (lambda c: c.random() < 0.5, (pa.bool_(),)),
    "bytes": (lambda c: c.randbytes(4), (pa.binary(), pa.large_binary(), pa.binary(4))),
    "money": (lambda c: Decimal(c.randrange(10**6)) / 100, (pa.decimal128(10, 2),
                                                          pa.decimal128(14, 4))),
    "day": (lambda c: date(2000, 1, 1) + timedelta(c.randrange(9000)), (pa.date32(), pa.date64())),
    "time": (lambda c: DAY + timedelta(seconds=c.randrange(10**8)),
             (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"))),
    "list": (lambda c: [c.choice((None, c.randrange(99))) for _ in range(c.randrange(4))],
             (pa.list_(pa.int32()), pa.large_list(pa.int8()), pa.list_view(pa.int64()))),
    "words": (lambda c: [texts(c) for _ in range(c.randrange(3))],
              (pa.list_(pa.string()), pa.large_list(pa.large_string()))),
    "object": (lambda c: {"a": c.randrange(9), "b": [texts(c)]},
               (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))]),
                pa.struct([("b", pa.list_(pa.large_string())), ("c", pa.int8()),
                           ("a", pa.int64())]))),
}  # fmt: skip


def column(chance, name, rows):
    make, types = MADE[name]
    share = chance.choice((0.0, 0.0, 0.3, 1.0))
    values = [None if chance.random() < share else make(chance) for _ in range(rows)]
    kind = chance.choice(types)
    if share == 1.0 and chance.random() < 0.5:
        return pa.nulls(rows)
    if kind == "dictionary":
        return pa.array(values, pa.string()).dictionary_encode()
    if name == "number" and kind == pa.float16():
        return pa.array([None if v is None else np.float16(v) for v in values], kind)
    return pa.array(values, kind)


def written(chance, path, number):
    """Write one file; give its table."""
    rows = chance.choice((0, 1, 7, 60))
    names = [name for name in MADE if name == "small" or chance.random() < 0.9]
    chance.shuffle(names)
    table = pa.table({name: column(chance, name, rows) for name in names})
    table = table.append_column("id", pa.array(range(number * 1000, number * 1000 + rows)))
    options = {
        "compression": chance.choice(CODECS),
        "version": chance.choice(("1.0", "2.4", "2.6")),
        "data_page_version": chance.choice(("1.0", "2.0")),
        "write_statistics": chance.choice((True, True, False, ["small"])),
        "store_schema": chance.random() < 0.8,
        "data_page_size": chance.choice((64, 1 << 20)),
        "write_page_checksum": chance.random() < 0.5,
        "row_group_size": chance.choice((1, 5, 64)),
    }
    encodings = {"small": "DELTA_BINARY_PACKED", "id": "BYTE_STREAM_SPLIT"}
    there = {name: how for name, how in encodings.items() if name in table.column_names}
    small = table.schema.field("small").type
    match chance.randrange(3):
        case 0 if small in (pa.int32(), pa.int64()):
            options |= {"use_dictionary": False, "column_encoding": there}
        case 1:
            options |= {"use_dictionary": False}
    pq.write_table(table, path, **options)
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(group) for group in range(file.num_row_groups)]
        return pa.concat_tables(groups) if groups else file.schema_arrow.empty_table()


def same(found, wanted):
    """Say whether two values are equal, NumPy's too, and of one type."""
    if isinstance(found, np.ndarray) or isinstance(wanted, np.ndarray):
        return (
            type(found) is type(wanted)
            and found.dtype == wanted.dtype
            and found.tolist() == wanted.tolist()
        )
    return type(found) is type(wanted) and found == wanted


def read_by_arrow(table):
    return [
        {name: python_value(table.column(name)[row]) for name in table.column_names}
        for row in range(table.num_rows)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_whole_rows_and_columns_are_those_of_arrow(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(parquet_units, "HUGE_BYTES", 400)
        monkeypatch.setattr(parquet_units, "UNIT_BYTES", 200)
    files = [tmp_path / f"made-{number}.parquet" for number in range(3)]
    tables = [written(chance, path, number) for number, path in enumerate(files)]
    types = {}
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        folder = tmp_path / "".join(map(str, order))
        folder.mkdir()
        for place, number in enumerate(order):
            (folder / f"{place}.parquet").write_bytes(files[number].read_bytes())
        data = Dataset.from_path("d", folder)
        if not data.total():
            return
        found = [record.payload for record in pipeline(data)]
        wanted = [row for number in order for row in read_by_arrow(tables[number])]
        assert len(found) == len(wanted)
        for mine, other in zip(found, wanted, strict=True):
            assert mine.keys() == other.keys()
            assert all(same(mine[name], other[name]) for name in mine), (mine, other)
        told = {field.name: field.type for field in data.fields()}
        assert types.setdefault("types", told) == told
        check_columns(data, told, wanted)


def check_columns(data, types, wanted):
    """Read every column as expressions do: of its one type, and as the files have it."""
    names = [name for name in types if not pa.types.is_null(types[name])]
    pipe = pipeline(data).select(*map(pl.col, names))
    for row, other in zip((record.payload for record in pipe), wanted, strict=True):
        for name in names:
            assert as_json(row[name], types[name]) == as_json(other.get(name), types[name]), name


def as_json(value, dtype):
    """Give a value as it is in a wider type, without what tells types apart."""
    if value is None:
        return None
    if isinstance(value, np.datetime64):
        return value.astype("M8[ns]")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if pa.types.is_struct(dtype):
        return {field.name: as_json(value.get(field.name), field.type) for field in dtype}
    return value


PREDICATES = (
    pl.col("small") > 20,
    (pl.col("small") == 7) | pl.col("text").is_null(),
    pl.col("text") >= "a",
    pl.col("number").is_between(-50, 3),
    pl.col("positive") < 5,
    pl.col("yes") & (pl.col("id") % 2 == 0),
    pl.col("time") > datetime(2001, 5, 5),
    pl.col("small").is_not_null() & (pl.col("id") >= 1003),
)


@pytest.mark.parametrize("seed", range(12, 20))
def test_pushing_filters_down_changes_no_row(tmp_path, monkeypatch, seed):
    """Over files with, without and with some statistics: the same rows, in the same order."""
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(parquet_units, "HUGE_BYTES", 400)
        monkeypatch.setattr(parquet_units, "UNIT_BYTES", 200)
    for number in range(3):
        written(chance, tmp_path / f"{number}.parquet", number)
    data = Dataset.from_path("d", tmp_path)
    types = {field.name: field.type for field in data.fields()}
    if not data.total():
        return
    for predicate in PREDICATES:
        names = predicate.meta.root_names()
        if any(types.get(name) in (None, pa.null()) for name in names):
            continue

        def kept(predicate=predicate):
            pipe = pipeline(data).filter(predicate).select(pl.col("id"))
            return [int(record.payload["id"]) for record in pipe]

        pushed = kept()
        with monkeypatch.context() as patch:
            patch.setattr(
                FilteredGroups, "excluded", lambda _, shards, groups: np.zeros(len(groups), bool)
            )
            assert kept() == pushed
        frame = pipeline(data).select(*map(pl.col, dict.fromkeys([*names, "id"])))
        rows = [record.payload for record in frame]
        schema = {name: types[name] for name in dict.fromkeys([*names, "id"])}
        table = pl.from_arrow(pa.Table.from_pylist(rows, pa.schema(schema)))
        assert table.filter(predicate)["id"].to_list() == pushed
