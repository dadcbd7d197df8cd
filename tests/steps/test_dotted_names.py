"""A field whose own name has dots: rows that lack it hold null, whatever objects they have."""

import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import in_order
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.build_index import build_index
from zephon.planner.compiler import compile_plan

DOTTED = pl.col("a.b")
OTHERS = {"an object": {"b": 5}, "a list": [1.0], "text": "x"}
KINDS = ["parquet", "jsonl", "in_memory"]


def dataset(kind, directory, rows, schema=None):
    """Write a row a shard, so that no shard has what the others have."""
    if kind == "in_memory":
        shards = {number: InMemoryShard([row]) for number, row in enumerate(rows)}
        return Dataset.from_dict("d", shards, schema=schema)
    for number, row in enumerate(rows):
        path = directory / f"{number}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), path)
        else:
            path.write_text(json.dumps(row) + "\n")
    if kind == "jsonl" and schema is None:
        build_index("jsonl", directory, progress=False)
    return Dataset.from_path("d", directory, schema=schema)


def rows_of(pipeline):
    return [record.payload for record in pipeline.options(runner="inline")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("rules", [{}, {"rewrites": (), "fusions": ()}], ids=["rules", "no rules"])
def test_a_row_without_the_name_holds_null(kind, other, rules, tmp_path):
    rows = [{"a.b": 1, "k": 0}, {"a": other, "k": 1}, {"k": 2}]
    found = dataset(kind, tmp_path, rows)

    def given(add):
        pipeline = add(Pipeline(in_order(found)))
        pipeline._plan = compile_plan(pipeline._node, **rules)
        return rows_of(pipeline)

    assert [row["n"] for row in given(lambda p: p.with_columns(n=DOTTED + 1))] == [2, None, None]
    assert [row["a.b"] for row in given(lambda p: p.select("a.b"))] == [1, None, None]
    assert [row["k"] for row in given(lambda p: p.filter(DOTTED > 0))] == [0]
    assert [row["k"] for row in given(lambda p: p.filter(DOTTED.is_null()))] == [1, 2]
    renamed = given(lambda p: p.rename({"a.b": "z"}).filter(pl.col("z").is_null()))
    assert [row["k"] for row in renamed] == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_declared_name_leads_into_objects(kind, tmp_path):
    rows = [{"a": {"b": 5}, "k": 1}, {"a": None, "k": 2}]
    found = dataset(kind, tmp_path, rows, {"a.b": "int64", "k": "int64"})
    assert [row["a.b"] for row in rows_of(Pipeline(in_order(found)).select("a.b"))] == [5, None]
