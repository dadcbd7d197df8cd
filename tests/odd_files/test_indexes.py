"""Indexes that no longer say what the files hold."""

import os
import time

import pytest

from tests.io.conftest import TEXT, Rows
from tests.odd_files.table import odd
from tests.written import lines
from zephon import Dataset
from zephon.build_index import build_index
from zephon.errors import ShardError
from zephon.io import kept_counts, stamps


@pytest.fixture
def folder(tmp_path):
    lines(tmp_path, "a.jsonl", [{"text": "one"}, {"text": "two"}])
    lines(tmp_path, "b.jsonl", [{"text": "three"}])
    return tmp_path


def values(folder):
    return Rows(Dataset.from_path("d", folder), TEXT).values()


def rewritten(file):
    """Write other rows in as many bytes, and put the time back."""
    was = file.stat()
    file.write_bytes(file.read_bytes().replace(b"two", b"TWO"))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


@odd(
    "Indexes",
    "been rewritten in as many bytes, with its old time, after its `index.json` was made",
    "it is refused when it is opened, by its content mark; the message has the command to run",
)
def test_same_size_and_time_as_its_index_says(folder):
    build_index("jsonl", folder, progress=False)
    rewritten(folder / "a.jsonl")
    with pytest.raises(ShardError, match=r"'a\.jsonl'.* as index\.json says.*`zephon index /"):
        values(folder)


@odd(
    "Indexes",
    "been rewritten in as many bytes, with its old time, since its directory was opened last",
    "it is counted anew: what is kept in the cache root is not trusted for it",
)
def test_same_size_and_time_as_what_is_kept(folder, monkeypatch):
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(folder / ".kept"))
    monkeypatch.setattr(kept_counts, "KEPT_SECONDS", 0)
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    assert values(folder) == ["one", "two", "three"]
    time.sleep(0.02)
    was = (folder / "a.jsonl").stat()
    (folder / "a.jsonl").write_bytes(b'{"text":"one more"}\n')
    assert (folder / "a.jsonl").stat().st_size < was.st_size
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b"\n" * (was.st_size - file.tell()))
    os.utime(folder / "a.jsonl", ns=(was.st_atime_ns, was.st_mtime_ns))
    assert values(folder) == ["one more", "three"]


@odd("Indexes", "grown since its `index.json` was made", "it is refused by its size")
def test_another_size_than_its_index_says(folder):
    build_index("jsonl", folder, progress=False)
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b'{"text": "more"}\n')
    with pytest.raises(ShardError, match=r"'a\.jsonl'.*the file has \d+ bytes, not \d+; make that"):
        values(folder)


@odd(
    "Indexes",
    "come into a directory whose `index.json` does not name it",
    "it is not read, and `explain()` lists it",
)
def test_a_file_that_its_index_does_not_name(folder):
    build_index("jsonl", folder, progress=False)
    lines(folder, "c.jsonl", [{"text": "four"}])
    dataset = Dataset.from_path("d", folder)
    assert dataset.total() == 3
    assert dataset.passed_over == ("c.jsonl: not in index.json",)
