"""The benchmark of files: its documents are the same in both formats, and its parts run."""

import json

import pyarrow.parquet as pq
import pytest

from benchmarks import files
from tests.written import parquet
from zephon import Dataset


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SHARD_BYTES", 20_000)
    few = {"zephon": 32}
    monkeypatch.setattr(files, "ROWS", {"at_random": few, "shuffled": few})
    parquet(tmp_path, "text-parquet/a.parquet", [{"text": f"größe {n} " * 9} for n in range(99)])
    files._make(tmp_path, "300")
    return tmp_path


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "text-parquet").mkdir()


def test_both_formats_hold_the_same_documents(corpus):
    for shard in range(files.SHARDS):
        lines = (corpus / f"documents-300-jsonl/{shard:02}.jsonl").read_text().splitlines()
        rows = pq.read_table(corpus / f"documents-300-parquet/{shard:02}.parquet").to_pylist()
        assert list(map(json.loads, lines)) == rows
        sizes = [len(row["text"].encode()) for row in rows]
        assert 290 < sum(sizes) / len(sizes) < 310
    assert len(Dataset.from_path("d", corpus / "documents-300-jsonl")) > 50


@pytest.mark.parametrize("part", ["index", "at_random", "shuffled"])
def test_parts_check_what_they_time(corpus, capsys, part):
    files._PARTS[part](corpus, "documents-300-jsonl")
    found = json.loads(capsys.readouterr().out)
    if part == "index":
        assert len(found) == 7
    else:
        assert found["rows"] == 32
        assert found["seconds"] > 0
