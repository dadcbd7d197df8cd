"""A filter in the reader gives the rows that reading all and then filtering gives."""

from __future__ import annotations

import operator
import tempfile
from datetime import date
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters_by_hand import frame_of, row_filter
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader

TEXT = Column("text", "text", "empty")

VALUES = {
    pa.int64(): st.sampled_from([-(2**63), -1, 0, 1, 5, 2**53 + 1, 2**63 - 1]),
    pa.uint8(): st.integers(0, 255),
    pa.float64(): st.sampled_from([float("nan"), float("-inf"), -1.5, -0.0, 0.0, 0.5, 1e300]),
    pa.float32(): st.sampled_from([float("nan"), float("inf"), -2.0, 0.0, 0.1, 3.0]),
    pa.large_string(): st.sampled_from(["", "a", "ab", "b", "é", "z" * 40, "\U0001f600"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(date(1960, 1, 1), date(1990, 1, 1)),
}
TYPES = dict(zip("abcdefg", VALUES, strict=True))
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@st.composite
def tables(draw):
    """Rows of all types, sorted by one column or by none, so that bounds of groups differ."""
    rows = draw(st.integers(0, 24))
    columns = {}
    for name, dtype in TYPES.items():
        values = st.none() | VALUES[dtype] if draw(st.booleans()) else VALUES[dtype]
        found = draw(st.lists(values, min_size=rows, max_size=rows))
        columns[name] = pa.array(found, dtype)
    columns["text"] = pa.array([f"row {row}" for row in range(rows)], pa.large_string())
    table = pa.table(columns)
    by = draw(st.sampled_from([None, *TYPES]))
    return table if by is None else table.sort_by(by)


@st.composite
def predicates(draw, depth=2):
    kind = draw(st.sampled_from(["compare", "in", "null", "bool", "and", "or", "not"]))
    name = draw(st.sampled_from(list(TYPES)))
    column, value = pl.col(name), draw(VALUES[TYPES[name]])
    if kind in ("and", "or", "not") and depth:
        parts = [draw(predicates(depth - 1)) for _ in range(1 if kind == "not" else 2)]
        if kind == "not":
            return ~parts[0]
        return reduce(operator.and_ if kind == "and" else operator.or_, parts)
    if kind == "in":
        return column.is_in(draw(st.lists(VALUES[TYPES[name]], max_size=3)) or [value])
    if kind == "null":
        return draw(st.sampled_from([column.is_null(), column.is_not_null()]))
    if kind == "bool":
        return pl.col("f")
    compare = draw(st.sampled_from(COMPARE))
    typed = pl.lit(value, dtype=pl.from_arrow(pa.array([], TYPES[name])).dtype)
    return compare(typed, column) if draw(st.booleans()) else compare(column, typed)


@st.composite
def datasets(draw, directory):
    parts = draw(st.lists(tables(), min_size=1, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        shards = {key: InMemoryShard(part.to_pylist()) for key, part in enumerate(parts)}
        return Dataset.from_dict("d", shards)
    for key, part in enumerate(parts):
        path = Path(directory, f"{key}.parquet")
        size = draw(st.integers(1, 8))
        if draw(st.booleans()):
            pl.from_arrow(part).write_parquet(path, row_group_size=size)
        else:
            told = draw(st.sampled_from([True, False, ["a", "e"]]))
            version = draw(st.sampled_from(["1.0", "2.0"]))
            pq.write_table(
                part, path, row_group_size=size, write_statistics=told, data_page_version=version
            )
    return Dataset.from_path("d", directory)


@settings(max_examples=100)
@given(st.data())
def test_reading_what_passes_is_reading_all_and_filtering(data):
    with tempfile.TemporaryDirectory() as directory:
        dataset = data.draw(datasets(directory))
        keep = row_filter(TYPES, *data.draw(st.lists(predicates(), min_size=1, max_size=2)))
        picks = data.draw(st.lists(st.integers(0, max(dataset.total() - 1, 0)), max_size=40))
        if not dataset.total():
            picks = []
        payload = data.draw(st.booleans())
        cache = GroupCache(data.draw(st.sampled_from([0, 3000, 1 << 20])))
        plain = RowReader(dataset, (TEXT,), payload=payload, cache=cache, frame=frame_of(TYPES))
        pushed = RowReader(
            dataset, (TEXT,), payload=payload, cache=cache, keep=keep, frame=frame_of(TYPES)
        )
        shards = np.repeat(np.arange(dataset.shard_count()), dataset.counts())[picks]
        rows = np.concatenate([np.arange(count) for count in dataset.counts()])[picks]
        every = plain.take(shards, rows)
        kept = np.flatnonzero(keep.keeps(every.frame))
        for _ in range(2):  # as it is read, and out of the cache
            found = pushed.take(shards, rows)
            assert found.kept.tolist() == kept.tolist()
            assert found.frame.schema == every.frame.schema
            # Not a number is not equal to itself, but its text is.
            assert str(found.frame.to_pylist()) == str(every.frame.take(kept).to_pylist())
            assert found.columns.to_pylist() == every.columns.take(kept).to_pylist()
            if payload:
                assert str(found.payload.rows()) == str(every.payload.take(kept).rows())
