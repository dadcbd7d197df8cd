"""Rows with the keys of their folders: as columns, whole, filtered, in any process and restored."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.filters_by_hand import frame_of, row_filter
from tests.written import lines, parquet, pipeline
from zephon import Dataset
from zephon.errors import CheckpointError, DataError, DatasetError
from zephon.io.fields import TEXT, Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.io.spill.rows import restored_rows, spilled_rows

SCHEMA = {"text": "large_string", "day": "int32"}
WRITE = {"parquet": parquet, "jsonl": lines, "jsonl.gz": lines}


@pytest.fixture(params=WRITE)
def folder(request, tmp_path):
    kind = request.param
    for lang in ("en", "fr", "__HIVE_DEFAULT_PARTITION__"):
        for day in ("01", "02"):
            rows = [{"text": f"{lang} {day} {n}"} for n in range(6)]
            WRITE[kind](tmp_path / f"lang={lang}" / f"day={day}", f"a.{kind}", rows)
    WRITE[kind](tmp_path, f"top.{kind}", [{"text": "None None 0"}])
    return tmp_path


def opened(folder, **how):
    return Dataset.from_path("d", folder, **{"recursive": True, "schema": SCHEMA, **how})


def expected():
    """Give the rows of the folder, in bytewise order of their shards."""
    found = []
    for lang in ("__HIVE_DEFAULT_PARTITION__", "en", "fr"):
        for day in (1, 2):
            for n in range(6):
                key = None if lang.startswith("__") else lang
                found.append({"text": f"{lang} {day:02} {n}", "lang": key, "day": day})
    return [*found, {"text": "None None 0", "lang": None, "day": None}]


def everything(reader, dataset):
    counts = dataset.counts()
    shards = np.repeat(np.arange(len(counts)), counts)
    return reader.take(shards, np.concatenate([np.arange(count) for count in counts]))


def test_whole_rows_and_columns_have_the_keys(folder):
    dataset = opened(folder)
    frame = frame_of({"lang": TEXT, "day": pa.int64()})
    columns = (Column("text", "text"), Column("lang", "text", null="empty"))
    reader = RowReader(dataset, columns, payload=True, cache=GroupCache(1 << 30), frame=frame)
    taken = everything(reader, dataset)
    assert taken.payload.rows() == expected()
    assert list(taken.payload.row(0)) == ["text", "lang", "day"]
    assert taken.frame.to_pylist() == [{"lang": e["lang"], "day": e["day"]} for e in expected()]
    assert taken.columns["lang"].to_pylist() == [e["lang"] or "" for e in expected()]


def test_whole_shards_are_skipped_by_their_keys(folder):
    dataset = opened(folder)
    types = {"lang": TEXT, "day": pa.int32()}
    keep = row_filter(types, pl.col("lang") == "en", pl.col("day") > 1)
    columns = (Column("text", "text"),)
    how = {"payload": True, "cache": GroupCache(1 << 30), "keep": keep, "frame": frame_of(types)}
    reader = RowReader(dataset, columns, **how)
    taken = everything(reader, dataset)
    wanted = [e for e in expected() if e["lang"] == "en" and e["day"] == 2]
    assert taken.payload.rows() == wanted
    groups = dataset.group_counts().tolist()
    counts = reader.counts()
    assert (counts.read, counts.skipped) == (groups[3], sum(groups) - groups[3])


def test_datasets_of_the_same_files_share_no_rows(folder):
    cache, found = GroupCache(1 << 30), []
    for dataset in (
        opened(folder),
        opened(folder / "lang=en"),
        opened(folder, hive=False, schema={"text": "string"}),
        opened(folder, schema=None),
    ):
        rows = RowReader(dataset, (), payload=True, cache=cache)
        found.append(everything(rows, dataset).payload.rows())
    assert found[0] == expected()
    assert found[1] == [{"text": e["text"], "day": e["day"]} for e in expected()[12:24]]
    assert found[2] == [{"text": e["text"]} for e in expected()]
    assert found[3][12] == {"text": "en 01 0", "lang": "en", "day": "01"}


def test_whole_rows_go_to_the_spill_and_back(folder):
    dataset = opened(folder)
    reader = RowReader(dataset, (), payload=True, cache=GroupCache(1 << 30))
    sources = everything(reader, dataset).payload._sources
    for source in sources:
        rows = spilled_rows(source)
        assert restored_rows(rows.about, rows.arrays).rows(np.arange(1)) == [source.row(0)]


def _english(row):
    return row if row["lang"] == "en" and row["day"] == 1 else None


@pytest.mark.parametrize("runner", ["inline", "process"])
def test_a_pipeline_sees_keys_pushed_down_or_not(folder, runner):
    dataset = opened(folder)
    english = [e for e in expected() if e["lang"] == "en" and e["day"] == 1]
    keys = pl.col("lang") == "en", pl.col("day") == 1
    pushed = pipeline(dataset).filter(*keys).options(runner=runner)
    late = pipeline(dataset).map_transform(_english).options(runner=runner)
    chosen = pipeline(dataset).filter(*keys).select("text", "lang", "day").options(runner=runner)
    for each in (pushed, late, chosen):
        assert [record.payload for record in each] == english


def test_a_key_is_tokenized_and_restored(folder, tokenizer_file):
    def job(**how):
        made = pipeline(opened(folder, **how)).filter(pl.col("lang").is_not_null())
        return made.tokenize(tokenizer_id=tokenizer_file, field="lang", special_tokens="none")

    whole = [record.payload["input_ids"] for record in job()]
    assert len(whole) == 24 and whole[0] != whole[-1] and whole[:12] == whole[:1] * 12
    running = iter(first := job())
    head = [next(running).payload["input_ids"] for _ in range(5)]
    state = first.checkpoint()
    assert head + [record.payload["input_ids"] for record in job().restore(state)] == whole
    with pytest.raises(DataError, match=r"field 'lang' must be text, got null"):
        list(pipeline(opened(folder)).tokenize(tokenizer_id=tokenizer_file, field="lang"))


def test_a_checkpoint_knows_which_keys_are_columns(folder):
    first = pipeline(opened(folder))
    next(iter(first))
    schema = {"text": "large_string"}
    told = r"(?s)data of 'd'.*keys of folders.*day, lang.*pass hive as then"
    with pytest.raises(CheckpointError, match=told):
        iter(pipeline(opened(folder, hive=False, schema=schema)).restore(first.checkpoint()))


def test_a_clash_far_inside_a_file_is_one_bad_row(tmp_path):
    rows = [{"text": str(n)} for n in range(100)]
    rows[80]["lang"], rows[90]["lang"], rows[95]["lang"] = "fr", None, 5
    lines(tmp_path / "lang=en", "a.jsonl", rows)
    for late in (80, 95):
        dataset = opened(tmp_path, schema=None)
        frame = frame_of({"lang": TEXT})
        for payload in (True, False):
            reader = RowReader(dataset, (), payload=payload, cache=GroupCache(1 << 30), frame=frame)
            zero = np.zeros(1, np.int64)
            told = rf"row {late}: field 'lang' must come from one place, got .* and 'en' from its"
            with pytest.raises(DataError, match=told):
                reader.take(zero, zero + late)
            assert reader.take(zero, zero + 90).frame["lang"].to_pylist() == ["en"]
    path = opened(tmp_path, schema=None, hive="path")
    reader = RowReader(path, (), payload=True, cache=GroupCache(1 << 30))
    assert {row["lang"] for row in everything(reader, path).payload.rows()} == {"en"}


def test_whichever_is_chosen_wins(tmp_path):
    for kind in ("parquet", "jsonl"):
        WRITE[kind](tmp_path / "lang=en", f"a.{kind}", [{"lang": "fr", "text": "x"}])
        for hive, wanted in (("path", "en"), ("file", "fr"), (False, "fr")):
            dataset = opened(tmp_path, fmt=kind, hive=hive, schema={"lang": "string"})
            assert [r.payload["lang"] for r in pipeline(dataset)] == [wanted]
            kept = pipeline(dataset).filter(pl.col("lang") == wanted)
            assert [r.payload for r in kept] == [{"lang": wanted, "text": "x"}]


def test_a_key_is_no_list(folder):
    told = r"column 'lang' must be a list of 32-bit integers, but it is a key of folders"
    with pytest.raises(DatasetError, match=told):
        RowReader(
            opened(folder), (Column("lang", "tokens"),), payload=False, cache=GroupCache(1 << 20)
        )
