"""What the bytes of footers say of column chunks: what pyarrow says, or nothing."""

import random

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.odd_files.encrypted import encrypted
from zephon.io.formats.parquet_thrift import chunk_facts, footer_bytes

TABLE = pa.table(
    {
        "n": pa.array([3, None, -7, 5], pa.int64()),
        "small": pa.array([1, 2, 3, 4], pa.uint8()),
        "text": ["b", "a", None, "größe"],
        "float": [0.5, -2.0, None, 1.0],
        "list": [[1, 2], [], None, [3]],
        "yes": [True, False, None, True],
    }
)


def of_arrow(path):
    """Give what pyarrow says of a file that is whole, in the same words."""
    footer = pq.read_metadata(path)
    for group in range(footer.num_row_groups):
        chunks = {}
        for column in range(footer.num_columns):
            chunk = footer.row_group(group).column(column)
            told = chunk.statistics
            nulls = told.null_count if told is not None and told.has_null_count else None
            bounds = (None, None)
            if told is not None and told.has_min_max:
                bounds = (told.min_raw, told.max_raw)
            chunks[column] = (chunk.physical_type, chunk.num_values, nulls, *bounds)
        yield chunks


def plain(facts):
    """Give bounds as Python values."""
    kinds = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8", "BOOLEAN": "?"}
    bounds = (facts.low, facts.high)
    if facts.physical in kinds:
        dtype = kinds[facts.physical]
        bounds = [None if raw is None else np.frombuffer(raw, dtype)[0].item() for raw in bounds]
    return (facts.physical, facts.values, facts.nulls, *bounds)


@pytest.mark.parametrize(
    "options",
    [{}, {"version": "1.0"}, {"write_statistics": False}, {"write_statistics": ["n"]},
     {"write_page_index": True, "data_page_version": "2.0"}, {"store_schema": False}],
    ids=str,
)  # fmt: skip
def test_what_arrow_says(tmp_path, options):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=3, **options)
    found = chunk_facts(footer_bytes(path), range(6))
    assert found is not None
    assert [{n: plain(each) for n, each in group.items()} for group in found] == [*of_arrow(path)]
    assert [*chunk_facts(footer_bytes(path), [1])[0]] == [1]


def test_what_polars_writes(tmp_path):
    path = tmp_path / "a.parquet"
    pl.from_arrow(TABLE).write_parquet(path, row_group_size=3)
    found = chunk_facts(footer_bytes(path), range(6))
    assert [{n: plain(each) for n, each in group.items()} for group in found] == [*of_arrow(path)]


def test_encrypted_columns_are_left_out(tmp_path):
    encrypted(TABLE, tmp_path / "a.parquet", columns=["text"], footer=False)
    assert [*chunk_facts(footer_bytes(tmp_path / "a.parquet"), range(6))[0]] == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 8, b"hello, hello, hello"])
def test_no_footer(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    assert footer_bytes(path) == b""
    assert chunk_facts(b"", [0]) is None


def test_damaged_footers_say_something_or_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=3)
    footer, chance = footer_bytes(path), random.Random(3)
    outcomes = set()
    for _ in range(3000):
        made = bytearray(footer)
        for _ in range(chance.randrange(1, 4)):
            made[chance.randrange(len(made))] = chance.randrange(256)
        found = chunk_facts(bytes(made[: chance.choice((None, chance.randrange(len(made))))]), [2])
        outcomes.add(found is None)
    assert outcomes == {True, False}


def test_lists_that_never_end_are_given_up(tmp_path):
    endless = b"\x19\xf5" + b"\xff" * 8 + b"\x7f"  # field 1: a list of 2^63 integers
    assert chunk_facts(endless, [0]) is None
    assert chunk_facts(b"\x1c" * 10_000, [0]) is None  # structs in structs
    assert chunk_facts(b"\x1b\xff\xff\xff\xff\x0f\x11", [0]) is None  # a map of booleans
