"""A named pipe in place of a file is refused before it is opened, which would wait for a writer."""

import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.written import dataset, pipeline
from zephon import Dataset
from zephon.build_index import build_catalog, build_index
from zephon.errors import ExecutionError, ShardError
from zephon.io.contents import contents_seen, hashed_whole
from zephon.io.data_file import DataFile
from zephon.io.formats import FORMATS

ROWS = [{"input_ids": [i] * 3} for i in range(20)]
KINDS = ("parquet", "jsonl", "jsonl.gz")
GUARD = 30  # seconds after which who waits at a pipe is let go, and fails


@contextmanager
def pipe_instead_of(file):
    file.unlink()
    os.mkfifo(file)
    guard = threading.Timer(GUARD, lambda: os.close(os.open(file, os.O_RDWR)))
    guard.start()
    try:
        yield
    finally:
        guard.cancel()


READS = {
    "rows": lambda found: next(iter(pipeline(found))),
    "first rows": lambda found: found.first_lists(["input_ids"]),
    "marks": contents_seen,
    "hashes": hashed_whole,
}


def refused(kind, why):
    wanted = f"^(.*: )?dataset 'words', shard '000.{kind}': {why}"
    return pytest.raises((ShardError, ExecutionError), match=wanted)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", KINDS)
def test_under_an_open_dataset(tmp_path, kind, read):
    found = dataset(kind, tmp_path, ROWS)
    why = "the file must stay as it was .*, but it is a named pipe; open the dataset again"
    with pipe_instead_of(tmp_path / f"000.{kind}"), refused(kind, why):
        READS[read](found)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["index.json", "_catalog.arrow"])
def test_behind_an_index(tmp_path, kind, read, index):
    dataset(kind, tmp_path, ROWS)
    if index == "index.json":
        build_index(kind.partition(".")[0], str(tmp_path))
    else:
        build_catalog(str(tmp_path))
    why = f"the file must be as {index} says, but it is a named pipe; make that anew with `zephon"
    with pipe_instead_of(tmp_path / f"000.{kind}"), refused(kind, why):
        READS[read](Dataset.from_path("words", tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_where_a_file_was_to_be_counted(tmp_path, kind):
    dataset(kind, tmp_path, ROWS)
    file = tmp_path / f"000.{kind}"
    why = "it must be a regular file, but it is a named pipe; write the file again, or move it out"
    with pipe_instead_of(file), refused(kind, why):
        FORMATS[kind.partition(".")[0]].count("words", DataFile(str(file), file.name))


def test_of_a_pipe_the_sizes_of_row_groups_are_not_known(tmp_path):
    found = dataset("parquet", tmp_path, ROWS)
    assert len(FORMATS["parquet"].group_bytes(found.shards[0]))
    with pipe_instead_of(Path(found.shards[0].path)):
        assert FORMATS["parquet"].group_bytes(found.shards[0]) is None
