"""Column steps give what Polars gives of all rows at once, however rows are cut, read and moved."""

import json
from itertools import islice

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.properties.recipes import NUMBERS, source
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions import FUSIONS
from zephon.planner.rewrites import REWRITES
from zephon.planner.rewrites.fuse_columns import fuse_columns
from zephon.planner.rewrites.push_predicates import push_predicates

K, SCORE, TEXT, IDS, M = (pl.col(name) for name in ("k", "score", "text", "ids", "m"))
WORDS, FIELD = TEXT.str.split(" ").list.len(), pl.col("s").struct.field("k")
SCHEMA = {"k": pl.Int64, "score": pl.Float32, "text": pl.String, "ids": pl.List(pl.Int32)}

CHAINS = {
    "filter": lambda f: f.filter(K < 40),
    "filters": lambda f: f.filter(K >= 20, SCORE > 0.3).filter(TEXT.str.contains("ash") | (K > 60)),
    "select": lambda f: f.select("text", SCORE * 2, n=K + 1),
    "with_columns": lambda f: f.with_columns(K.cast(pl.Float32), words=WORDS),
    "constants": lambda f: f.with_columns(one=pl.lit(1), none=pl.lit(None)),
    "rename, drop": lambda f: f.rename({"k": "text", "text": "k"}).drop("ids", "score"),
    "made, filtered": lambda f: f.with_columns(n=WORDS).filter(pl.col("n") > 1, K < 70).drop("n"),
    "made anew": lambda f: f.filter(K < 70).with_columns(k=K * 2).filter(K < 70).rename({"k": "n"}),
    "renamed, filtered": lambda f: f.rename({"k": "n"}).filter(pl.col("n") < 30).select("n", "ids"),
    "nulls": lambda f: f.filter(SCORE.is_null() | SCORE.is_nan()).with_columns(SCORE.fill_null(-1)),
    "lists": lambda f: f.select(IDS.list.eval(pl.element() * 2), m=IDS.list.max()).filter(M > 1),
    "selectors": lambda f: f.select(pl.col("k", "score") * 2, pl.exclude("k", "score", "ids")),
    "spared": lambda f: f.filter(TEXT.str.contains(r"^\d+$")).with_columns(n=TEXT.cast(pl.Int64)),
    "nothing left": lambda f: f.filter(K < 0).with_columns(n=K + 1),
    "structs": lambda f: f.select(s=pl.struct("k", "text")).with_columns(FIELD),
}  # fmt: skip


def made_up():
    """Make rows with nulls and NaN, clustered by ``k``."""
    rng = NUMBERS(3)
    words = np.array(["ash", "birch", "größe", "12", "木"])
    return [
        {
            "k": k if k % 11 else None,
            "score": [None, float("nan"), float(np.float32(rng.random()))][min(2, k % 7)],
            "text": " ".join(rng.choice(words, size=k % 4)) if k % 13 else None,
            "ids": list(range(k % 5)),
        }
        for k in range(90)
    ]


ROWS = made_up()
ARROW = pa.schema(
    {"k": pa.int64(), "score": pa.float32(), "text": pa.string(), "ids": pa.list_(pa.int32())}
)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    parquet, lines = folder / "parquet", folder / "lines"
    for place in (parquet, lines):
        place.mkdir()
    for shard in range(3):
        rows = ROWS[shard * 30 : shard * 30 + 30]
        table = pa.Table.from_pylist(rows, ARROW)
        pq.write_table(table, parquet / f"{shard}.parquet", row_group_size=8)
        written = "".join(json.dumps(row).replace("NaN", "null") + "\n" for row in rows)
        (lines / f"{shard}.jsonl").write_text(written)
    shards = {n: InMemoryShard(ROWS[n * 45 : n * 45 + 45]) for n in range(2)}
    return {
        "parquet": Dataset.from_path("parquet", parquet),
        "lines": Dataset.from_path("lines", lines, schema=ARROW),
        "memory": Dataset.from_dict("memory", shards, schema=ARROW),
    }


def start(dataset, **options):
    pipeline = Pipeline(source([dataset], chunk_size=4, shuffle_within_shard=True))
    return pipeline.options(**{"runner": "inline", **options})


def plain(value):
    if isinstance(value, np.ndarray | list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return "nan" if value != value else value


def rows(pipeline):
    found = []
    for item in pipeline:
        for record in getattr(item, "records", (item,)):
            found.append((record.meta.cursor.as_key(), plain(dict(record.payload))))
    return found


@pytest.mark.parametrize(
    ("kind", "chain"),
    [
        (kind, chain)
        for kind in ("parquet", "lines", "memory")
        for chain in CHAINS
        if kind == "parquet" or chain != "selectors"  # there, nobody knows all fields
    ],
)
def test_rows_are_those_of_polars(datasets, kind, chain):
    drawn = rows(start(datasets[kind]))
    frame = pl.DataFrame([row for _, row in drawn], schema=SCHEMA, strict=False)
    scores = [float("nan") if row["score"] == "nan" else row["score"] for _, row in drawn]
    frame = frame.with_columns(score=pl.Series(scores, dtype=pl.Float32))
    wanted = CHAINS[chain](frame)
    found = rows(CHAINS[chain](start(datasets[kind])))
    assert [row for _, row in found] == [plain(row) for row in wanted.to_dicts()]
    assert [list(row) for _, row in found] == [list(row) for row in wanted.to_dicts()]
    assert [key for key, _ in found] == [key for key, _ in drawn if key in dict(found)]


@pytest.mark.parametrize("chain", CHAINS)
def test_rules_memory_and_threads_change_no_row(datasets, chain):
    def made(**options):
        return CHAINS[chain](start(datasets["parquet"], canonical_replicas=3, **options)).batch(
            2, drop_last=False
        )

    wanted = rows(made())
    assert rows(made(memory_budget="1kb")) == wanted
    assert rows(made(runner="threads", prefetch_batches=3)) == wanted
    counts = made()
    list(counts)
    for off in ({*REWRITES, *FUSIONS}, {push_predicates}, {fuse_columns}):
        pipeline = made()
        pipeline._plan = compile_plan(
            pipeline._node,
            rewrites=tuple(rule for rule in REWRITES if rule not in off),
            fusions=tuple(rule for rule in FUSIONS if rule not in off),
        )
        assert rows(pipeline) == wanted
        assert pipeline.accounting() == counts.accounting()


@pytest.mark.parametrize("chain", ["filters", "made, filtered", "selectors"])
def test_a_cut_at_any_row_goes_on_with_the_next_one(datasets, chain):
    whole = rows(CHAINS[chain](start(datasets["parquet"])))
    running = CHAINS[chain](start(datasets["parquet"]))
    items = iter(running)
    for count in range(len(whole)):
        if count % 7 == 0:
            resumed = CHAINS[chain](start(datasets["parquet"])).restore(running.checkpoint())
            assert rows(islice(iter(resumed), 3)) == whole[count : count + 3]
        next(items)
