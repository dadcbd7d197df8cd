"""A filter in the reader gives the rows, and the errors, that reading all and filtering gives."""

from __future__ import annotations

import json
import operator
import tempfile
from datetime import date, datetime
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.filters_by_hand import frame_of, row_filter
from tests.written import in_order
from zephon import Pipeline
from zephon.errors import DataError
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions import FUSIONS
from zephon.planner.rewrites import REWRITES
from zephon.planner.rewrites.fuse_columns import fuse_columns
from zephon.planner.rewrites.push_predicates import push_predicates

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


SPOILED = {  # by field: its type, good values, a type of Parquet that joins to it, a value beyond
    "k": (pa.int64(), [0, 1, 7], pa.uint64(), 2**63),
    "x": (pa.float64(), [0, 2, 5], pa.int64(), 2**53 + 1),
    "at": (
        pa.timestamp("ns"),
        [datetime(2000, 1, 1), None],
        pa.timestamp("s"),
        datetime(9000, 1, 1),
    ),
    "ids": (pa.large_list(pa.int64()), [[], [1], [5, 2]], pa.large_list(pa.uint64()), [2**64 - 1]),
    "s": (pa.large_string(), ["", "7", "a"], pa.large_string(), None),
    "text": (pa.large_string(), ["", "b"], pa.large_string(), None),  # read as text: null is bad
}
WRONG = {  # as Python has it, or JSON
    "k": ["one", 2.5, True], "x": ["1", 2**53 + 1, {}], "at": [True, [1]], "ids": [5, ["a"], [0.5]],
    "s": [5, ["a"], "\ud800"], "text": [5, None, "\ud800"],
}  # fmt: skip
SCHEMA = pa.schema([(name, about[0]) for name, about in SPOILED.items()])
K, X, AT, IDS, S = (pl.col(name) for name in list(SPOILED)[:5])
LOOKS = [
    K > 0, K < 7, X > 1, X.is_not_null(), AT.is_not_null(), AT.is_null(), S != "a",
    IDS.list.len() > 0, (K > 0) | (X > 1), pl.col("text").is_not_null(), S.is_null(),
    S.cast(pl.Int64) > 3, IDS.list.get(0) > 2, S.fill_null("x").cast(pl.Int64) > 3, pl.lit(True),
]  # fmt: skip
MADE = [K + 1, X.cast(pl.Int8).cast(pl.Int64), S.cast(pl.Int64), IDS.list.get(0), IDS.list.len()]


@st.composite
def spoiled(draw, directory):
    """Two shards of few rows, of which one holds bad values here and there."""
    kind = draw(st.sampled_from(["parquet", "jsonl", "memory"]))
    shards = []
    for bad in (False, True):
        rows = []
        for _ in range(draw(st.integers(1, 5))):
            row = {name: draw(st.sampled_from(about[1])) for name, about in SPOILED.items()}
            for name in draw(st.sets(st.sampled_from(list(row)), max_size=2)) if bad else ():
                wrong = [SPOILED[name][3]] if kind == "parquet" else WRONG[name]
                row[name] = draw(st.sampled_from(wrong))
            rows.append(row)
        shards.append(rows)
    if kind == "memory":
        shards = {key: InMemoryShard(rows) for key, rows in enumerate(shards)}
        return Dataset.from_dict("d", shards, schema=SCHEMA)
    for key, rows in enumerate(shards):
        if kind == "parquet":
            types = {name: about[2 if key else 0] for name, about in SPOILED.items()}
            arrays = {name: pa.array([row[name] for row in rows], types[name]) for name in types}
            pq.write_table(pa.table(arrays), Path(directory, f"{key}.parquet"), row_group_size=2)
            continue
        lines = [json.dumps(row, default=lambda time: None) for row in rows]
        lines[0] = draw(st.sampled_from([lines[0], '{"k": 1,', '["k"]'])) if key else lines[0]
        Path(directory, f"{key}.jsonl").write_text("\n".join(lines))
    in_json = SCHEMA.set(2, pa.field("at", pa.int64()))  # which has no times
    return Dataset.from_path("d", directory, schema=in_json if kind == "jsonl" else None)


@st.composite
def column_calls(draw):
    """Calls that filter and compute, in any order."""
    calls, made = [], 0
    for kind in draw(st.lists(st.sampled_from("ffcs"), min_size=1, max_size=4)):
        if kind == "f":
            found = [*LOOKS, *([pl.col(f"n{made}") > 1] * 3 if made else ())]
            given = draw(st.lists(st.sampled_from(found), min_size=1, max_size=2))
            calls.append(lambda p, given=given: p.filter(*given))
        elif kind == "c":
            made += 1
            given = draw(st.sampled_from(MADE)).alias(f"n{made}")
            calls.append(lambda p, given=given: p.with_columns(given))
        else:
            calls.append(lambda p: p.shuffle(buffer_size=3, seed=1))
    return calls


def outcome(pipeline):
    """Give the rows, the error after them, and what was counted."""
    rows, error = [], None
    try:
        for record in pipeline:
            rows.append((record.meta.cursor.as_key(), str(dict(record.payload))))
    except DataError as raised:
        error = str(raised)
    return rows, error, pipeline.accounting()


@pytest.mark.filterwarnings("ignore:no row is left:RuntimeWarning")
@settings(max_examples=40)
@given(data=st.data())
def test_bad_values_are_the_same_errors_wherever_filters_run(data, tokenizer_file):
    with tempfile.TemporaryDirectory() as directory:
        dataset = data.draw(spoiled(directory))
        calls = data.draw(column_calls())
        tokenized = data.draw(st.booleans())

        def made():
            pipeline = Pipeline(in_order(dataset)).options(runner="inline")
            for call in calls:
                call(pipeline)
            if tokenized:
                pipeline.tokenize(tokenizer_id=tokenizer_file, field="text")
            return pipeline

        wanted = outcome(made())
        for off in ({push_predicates}, {push_predicates, fuse_columns, *FUSIONS}):
            pipeline = made()
            pipeline._plan = compile_plan(
                pipeline._node,
                rewrites=tuple(rule for rule in REWRITES if rule not in off),
                fusions=tuple(rule for rule in FUSIONS if rule not in off),
            )
            assert outcome(pipeline) == wanted
