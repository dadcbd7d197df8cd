from pathlib import Path

import pytest

from zephon.errors import DatasetError, DatasetNotFoundError
from zephon.io.location import check_name, local_directory


@pytest.mark.parametrize("scheme", ["s3", "gs", "gcs", "az", "azure", "abfs", "abfss", "hf", "S3"])
def test_what_must_lie_here_does_not_lie_in_a_store(scheme):
    with pytest.raises(DatasetError, match=f"on this machine, got '{scheme}://bucket/key'"):
        local_directory("d", f"{scheme}://bucket/key")


def test_an_unknown_scheme_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown URL scheme 'ftp://'.*local paths, s3://, gs://"):
        local_directory("d", "ftp://host/x")


def test_a_missing_path_names_the_nearest_directory_that_exists(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"nearest directory that exists is '{tmp_path}'"):
        local_directory("d", tmp_path / "no" / "where")
    with pytest.raises(DatasetNotFoundError):
        local_directory("d", tmp_path / "no")


def test_a_path_with_a_pattern_is_told_where_patterns_go(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"with glob='\*/train-\*.jsonl'$"):
        local_directory("d", tmp_path / "*" / "train-*.jsonl")


def test_a_file_is_refused_and_its_directory_named(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("{}\n")
    with pytest.raises(DatasetError, match=f"pass its directory '{tmp_path}'"):
        local_directory("d", file)


def test_a_path_is_made_absolute(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    assert local_directory("d", "data") == (tmp_path / "data").resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_directory("d", "~/data") == (tmp_path / "data").resolve()


@pytest.mark.parametrize("path", ["", b"x", "a\0b", Path("a\0b"), None])
def test_a_path_must_be_text(path):
    with pytest.raises(DatasetError, match="path must be a non-empty str without NUL, got"):
        local_directory("d", path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("circle/data", "Symlink loop"),
        ("~nobody-of-that-name/data", "home directory"),
        ("n" * 300, "name too long"),
        ("\ud800", "can't encode"),
    ],
)
def test_a_path_that_cannot_be_looked_up(path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(DatasetError, match=f"must be one that can be looked up, got .*{why}.*pass"):
        local_directory("d", path)


@pytest.mark.parametrize("name", ["", ".", "..", ".parquet-rg-cache", None, 3])
def test_names_that_cannot_be_used(name):
    with pytest.raises(DatasetError, match=r"dataset name must be a non-empty str"):
        check_name(name)


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a\0b", "/"])
def test_names_with_separators(name):
    with pytest.raises(DatasetError, match="must hold no slash"):
        check_name(name)


def test_other_names_pass():
    check_name("prose v1.0 (ünï)")
