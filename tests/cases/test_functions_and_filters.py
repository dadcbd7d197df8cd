"""Faults seen in the field: mapped streams that jump ahead, types fixed too early, lost row ids."""

import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import PlanError


def pipeline(dataset):
    source = StaticMixtureWorkSource(
        datasets=[dataset], mixture={dataset.name: 1.0}, shuffle_shards=False
    )
    return Pipeline(source)


def ids(batches):
    return [record.payload["id"] for batch in batches for record in batch.records]


def test_a_mapped_stream_resumes_after_what_was_handed_out_not_after_what_was_read():
    rows = Dataset.from_dict("rows", {0: InMemoryShard([{"id": i} for i in range(1000)])})

    def made():
        return pipeline(rows).map_transform(lambda row: {**row, "twice": 2 * row["id"]}).batch(7)

    whole = list(range(994))
    running = made()
    items, seen = iter(running), []
    for k in range(1, 141):
        seen += ids([next(items)])
        if k % 10 == 1:
            resumed = iter(made().restore(json.loads(json.dumps(running.checkpoint()))))
            rest = [next(resumed) for _ in range(3)]
            assert seen + ids(rest) == whole[: len(seen) + 21]
    assert ids(made().restore(running.checkpoint())) == whole[len(seen) :]


@pytest.mark.parametrize("late_first", [False, True])
def test_a_column_that_is_null_at_first_has_the_type_of_its_first_value(tmp_path, late_first):
    early, late = [{"text": None}] * 150, [{"text": "late"}]
    for number, rows in enumerate([late, early] if late_first else [early, late]):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{number}.jsonl").write_text(text)
    dataset = Dataset.from_path("a", tmp_path, schema={"text": "string"})
    kept = list(pipeline(dataset).filter(pl.col("text").is_not_null()))
    assert [record.payload["text"] for record in kept] == ["late"]


def test_text_beside_lists_is_an_error_of_its_row_never_text(tmp_path):
    (tmp_path / "0.jsonl").write_text('{"content":"hi"}\n{"content":[{"type":"text"}]}\n')
    dataset = Dataset.from_path("a", tmp_path, schema={"content": "string"})
    rows = iter(pipeline(dataset).with_columns(n=pl.col("content").str.len_chars()))
    assert next(rows).payload["n"] == 2
    with pytest.raises(ValueError, match=r"shard '0.jsonl', row 1.*'content'.*string"):
        next(rows)


def test_text_of_any_arrow_type_is_one_column(tmp_path):
    kinds = [
        pa.string(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.large_string(),
        pa.string_view(),
    ]
    for number, kind in enumerate(kinds):
        columns = {"n": [number], "text": pa.array(["same"], pa.string()).cast(kind)}
        names = list(columns) if number % 2 else list(columns)[::-1]
        pq.write_table(pa.table({n: columns[n] for n in names}), tmp_path / f"{number}.parquet")
    made = pipeline(Dataset.from_path("a", tmp_path)).with_columns(up=pl.col("text") + "!")
    assert [record.payload["up"] for record in made] == ["same!"] * 4


def test_an_unneeded_column_with_many_types_does_not_matter(tmp_path):
    for number, kind in enumerate([pa.decimal128(10, 2), pa.timestamp("ms")]):
        odd = pa.array([1], pa.int64()).cast(kind) if number else pa.array([1], kind)
        pq.write_table(pa.table({"k": [number], "odd": odd}), tmp_path / f"{number}.parquet")
    dataset = Dataset.from_path("a", tmp_path)
    assert len(list(pipeline(dataset).filter(pl.col("k") >= 0))) == 2
    with pytest.raises(PlanError, match=r"0\.parquet.*decimal.*1\.parquet.*timestamp"):
        pipeline(dataset).filter(pl.col("odd").is_null())


def test_row_ids_are_those_of_the_files_whatever_is_filtered(tmp_path):
    for number in range(2):
        table = pa.table({"id": range(10 * number, 10 * number + 10)})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=3)
    for runner in ("inline", "threads"):
        pipe = pipeline(Dataset.from_path("a", tmp_path)).filter(pl.col("id") % 10 == 2)
        found = [record.meta.sample_id for record in pipe.options(runner=runner)]
        assert found == [(0, 0, 2), (0, 1, 2)]


def test_text_that_looks_like_a_date_stays_text(tmp_path):
    (tmp_path / "0.jsonl").write_text('{"text":"2024-01-01T00:00:00Z"}\n{"text":"hello"}\n')
    dataset = Dataset.from_path("a", tmp_path, schema={"text": "string"})
    made = pipeline(dataset).select("text")
    assert [record.payload["text"] for record in made] == ["2024-01-01T00:00:00Z", "hello"]


def test_the_last_of_two_equal_keys_wins_in_a_filter_too(tmp_path):
    (tmp_path / "0.jsonl").write_text('{"k":1,"k":7}\n{"k":7,"k":1}\n')
    dataset = Dataset.from_path("a", tmp_path, schema={"k": "int64"})
    (kept,) = pipeline(dataset).filter(pl.col("k") == 7)
    assert (kept.meta.sample_id, kept.payload) == ((0, 0, 0), {"k": 7})
