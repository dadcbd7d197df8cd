import os
import pickle

import numpy as np
import pytest

from zephon.errors import ShardError
from zephon.io.shard import ListedBy, Shard


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"12345")
    return path


def shard(path, **known):
    listed_by = known.pop("listed_by", None)
    told = {"bytes": 5, "mtime_ns": 0 if listed_by else os.stat(path).st_mtime_ns, **known}
    return Shard(
        name=path.name, path=str(path), rows=1, decoded_bytes=5, group_rows=np.ones(1, np.int64),
        listed_by=listed_by, **told,
    )  # fmt: skip


def touch(path, seconds):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + seconds * 10**9))


@pytest.mark.parametrize("content", [b"123456", b"54321"])
def test_a_counted_file_must_stay_as_it_was(file, content):
    counted = shard(file)
    counted.check_unchanged("d", file.stat())
    file.write_bytes(content)
    touch(file, 1)
    with pytest.raises(
        ShardError, match=rf"its rows were counted, .*5 bytes then, {len(content)} now"
    ):
        counted.check_unchanged("d", file.stat())


def test_a_listed_file_must_have_the_size_that_was_told(file):
    listed = shard(file, bytes=7, listed_by=ListedBy("index.json", "d"))
    with pytest.raises(
        ShardError,
        match=r"'a.parquet': the file must be as index.json says, but the file has 5 bytes, not 7; "
        r"make that anew with `zephon index /",
    ):
        listed.check_unchanged("d", file.stat())
    catalogued = shard(file, bytes=7, listed_by=ListedBy("_catalog.arrow", "d"))
    with pytest.raises(ShardError, match=r"as _catalog.arrow says.*`zephon index --catalog /"):
        catalogued.check_unchanged("d", file.stat())


def test_a_listed_file_may_have_been_written_at_any_time_and_must_stay(file):
    listed_by = ListedBy("index.json", "d")
    touch(file, 5)
    shard(file, listed_by=listed_by).check_unchanged("d", file.stat())
    shard(file, listed_by=listed_by).check_unchanged("d", file.stat())
    touch(file, 1)
    with pytest.raises(ShardError, match=r"when it was first read, but it was written to since"):
        shard(file, listed_by=listed_by).check_unchanged("d", file.stat())


def test_a_listed_and_a_counted_shard_are_the_same_data(file):
    listed = shard(file, listed_by=ListedBy("index.json", "d"))
    assert listed == shard(file)
    assert listed.identity == shard(file).identity


def test_the_identity_of_a_listed_shard_stays(file):
    listed = shard(file, listed_by=ListedBy("index.json", "d"))
    before = listed.identity
    touch(file, 1)
    assert listed.identity == before
    with pytest.raises(ShardError, match="written to since"):
        listed.check_unchanged("d", file.stat())
    assert shard(file, listed_by=ListedBy("index.json", "d")).identity != before


@pytest.mark.parametrize(
    ("told", "command"),
    [("index.json", "zephon index"), ("_catalog.arrow", "zephon index --catalog")],
)
def test_the_identity_of_a_listed_file_that_is_gone_names_what_listed_it(file, told, command):
    listed = shard(file, listed_by=ListedBy(told, "d"))
    file.unlink()
    folder = file.parent
    with pytest.raises(ShardError) as gone:
        _ = listed.identity
    assert str(gone.value) == (
        f"dataset 'd', shard 'a.parquet': the file must be there, as {told} in '{folder}' says, "
        f"and it is not; put it back, or make {told} anew with `{command} {folder}`"
    )
    file.mkdir()
    with pytest.raises(ShardError, match=f"the file must be as {told} says, but it is a directory"):
        _ = listed.identity


def test_the_identity_of_a_file_that_cannot_be_looked_at_is_no_error(tmp_path):
    (tmp_path / "a.parquet").symlink_to("a.parquet")
    listed = shard(tmp_path / "a.parquet", listed_by=ListedBy("index.json", "d"))
    assert listed.identity == (str(tmp_path / "a.parquet"), 5, 0)


def test_the_identity_stays_when_the_file_goes_after_the_first_look(file):
    listed = shard(file, listed_by=ListedBy("index.json", "d"))
    before = listed.identity
    file.unlink()
    assert listed.identity == before


def test_another_process_looks_for_itself(file):
    listed_by = ListedBy("index.json", "d")
    shard(file, listed_by=listed_by).check_unchanged("d", file.stat())
    other = pickle.loads(pickle.dumps(listed_by))
    assert (other.file, other.dataset) == ("index.json", "d")
    assert other.first_look("a.parquet") is None
