"""Directories as they are: folders, splits, leftovers and names of all sorts."""

import json
import warnings

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.odd_files.table import odd
from tests.written import pipeline
from zephon import Dataset
from zephon.errors import DatasetError

SECTION = "Directories"


def written(folder, *names):
    """Write files whose one row tells the file's name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(pa.table({"text": [name]}), path)
        else:
            path.write_text(json.dumps({"text": name}) + "\n")
    return folder


def names(dataset):
    return dataset.shards.names.to_pylist()


@odd(SECTION, "folders beside it", "they are not read without `recursive=True` or `glob=`")
def test_folders(tmp_path):
    written(tmp_path, "a.jsonl", "en/b.jsonl", "en/old/c.jsonl", "en-1/d.jsonl")
    assert names(Dataset.from_path("d", tmp_path)) == ["a.jsonl"]
    deep = Dataset.from_path("d", tmp_path, recursive=True)
    # Bytewise by the whole name: "-" comes before "/"
    assert names(deep) == ["a.jsonl", "en-1/d.jsonl", "en/b.jsonl", "en/old/c.jsonl"]
    assert names(Dataset.from_path("d", tmp_path, glob="en/*.jsonl")) == ["en/b.jsonl"]
    both = Dataset.from_path("d", tmp_path, glob=["en/**", "a.jsonl"])
    assert names(both) == ["a.jsonl", "en/b.jsonl", "en/old/c.jsonl"]


@odd(
    SECTION,
    "files of another split beside it (train and test)",
    "both are read, with a warning that names them; `glob='train-*'` reads one",
)
def test_splits(tmp_path):
    written(tmp_path, "train-000.parquet", "test-000.parquet", "train-000.parquet.tmp")
    (tmp_path / "README.md").write_text("about")
    told = (
        r"test \(such as 'test-000.parquet'\) and train \(such as 'train-000.parquet'\); pass "
        r"glob='train-\*' for one split, or glob='\*' to read all"
    )
    with pytest.warns(RuntimeWarning, match=told) as caught:
        Dataset.from_path("d", tmp_path)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train = Dataset.from_path("d", tmp_path, glob="train-*")
        everything = Dataset.from_path("d", tmp_path, glob="*")
    assert names(train) == ["train-000.parquet"]
    assert train.passed_over == (
        "README.md: not data",
        "test-000.parquet: no pattern matches it",
        "train-000.parquet.tmp: temporary",
    )
    assert names(everything) == ["test-000.parquet", "train-000.parquet"]


def test_splits_in_folders_are_told_and_a_lone_split_is_not(tmp_path):
    written(tmp_path, "x/train/0.jsonl", "x/valid/0.jsonl")
    with pytest.warns(RuntimeWarning, match=r"glob='\*/train/\*\*' for one split, or glob='\*\*'"):
        Dataset.from_path("d", tmp_path, recursive=True)
    assert names(Dataset.from_path("d", tmp_path, glob="*/train/**")) == ["x/train/0.jsonl"]
    assert len(Dataset.from_path("d", tmp_path, glob="**").shards) == 2
    of_one = (
        ["train-0.jsonl", "train-1.jsonl"],
        ["test.jsonl"],
        ["train-0.jsonl", "b.jsonl"],
        ["training_notes.jsonl", "testimony.jsonl"],
        ["dev.jsonl", "test.jsonl"],
    )
    for files in of_one:
        folder = tmp_path / f"of {files}"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Dataset.from_path("d", written(folder, *files))


@odd(
    SECTION,
    "hidden, temporary and marker files and folders beside it",
    "they are passed over, each with its reason in `dataset.passed_over`",
)
def test_leftovers(tmp_path):
    written(
        tmp_path, "a.jsonl", ".git/b.jsonl", "_temporary/0/c.jsonl",
        "en/.ipynb_checkpoints/d.jsonl", "en/e.jsonl", "en/f.jsonl.tmp", "en/_g.jsonl",
        "en/.h.jsonl", "en/.e.jsonl.crc",
    )  # fmt: skip
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "en" / "index.json").touch()
    dataset = Dataset.from_path("d", tmp_path, recursive=True)
    assert names(dataset) == ["a.jsonl", "en/e.jsonl"]
    assert dataset.passed_over == (
        ".git: a hidden directory",
        "_SUCCESS: a marker",
        "_temporary: a hidden directory",
        "en/.e.jsonl.crc: a checksum",
        "en/.h.jsonl: hidden",
        "en/.ipynb_checkpoints: a hidden directory",
        "en/_g.jsonl: a marker",
        "en/f.jsonl.tmp: temporary",
        "en/index.json: an index; not used",
    )


ODD_NAMES = [
    "a b.jsonl", "a#1.jsonl", "100%.jsonl", "%41.jsonl", "x[1].jsonl", "x*.jsonl", "what?.jsonl",
    "back\\slash.jsonl", "new\nline.jsonl", "tab\t.jsonl", "中文/é.jsonl", "a'\"b.jsonl",
    "{a,b}.jsonl", "~.jsonl", "$HOME.jsonl", "a&b;c|d.jsonl", "-rf.jsonl",
]  # fmt: skip


@odd(
    SECTION,
    "a name with spaces, brackets, `#`, `%`, a backslash or a line end",
    "it is read; in a pattern `[[]` is the bracket itself",
)
def test_names(tmp_path):
    written(tmp_path, *ODD_NAMES)
    dataset = Dataset.from_path("d", tmp_path, recursive=True)
    assert names(dataset) == sorted(ODD_NAMES, key=str.encode)
    assert names(Dataset.from_path("d", tmp_path, glob="x[[]1].jsonl")) == ["x[1].jsonl"]
    assert names(Dataset.from_path("d", tmp_path, glob="new\nline.*")) == ["new\nline.jsonl"]
    assert names(Dataset.from_path("d", tmp_path, glob="back\\*")) == ["back\\slash.jsonl"]


@odd(
    SECTION,
    "a name that no pattern of `glob` matches",
    "it is passed over; a glob that matches nothing is an error that lists what is there",
)
def test_a_glob_that_matches_nothing(tmp_path):
    written(tmp_path, "notes/x.txt", "en/a.jsonl", "b.jsonl")
    with pytest.raises(
        DatasetError,
        match=r"dataset 'd': glob must match a data file below '.*', with one of the suffixes .*, "
        r"and none matches '\*.parquet' or '{a,b}.jsonl'; found 'b.jsonl' \(no pattern matches it\)"
        r", 'en' \(no pattern looks into it\), 'notes' .*; patterns are relative .*; for braces, "
        r"pass a list",
    ):
        Dataset.from_path("d", tmp_path, glob=["*.parquet", "{a,b}.jsonl"])
    with pytest.raises(DatasetError, match="or recursive=True to read those of its folders"):
        Dataset.from_path("d", tmp_path / "en" / "..", fmt="parquet")


@odd(SECTION, "a path that is a file", "an error that names the directory and the `glob` to pass")
def test_a_path_that_is_a_file(tmp_path):
    written(tmp_path, "a[1].jsonl", "b.jsonl")
    with pytest.raises(ValueError, match="must be a directory, got the file") as caught:
        Dataset.from_path("d", tmp_path / "a[1].jsonl")
    assert "glob='a[[]1].jsonl' to read this file alone" in str(caught.value)
    assert names(Dataset.from_path("d", tmp_path, glob="a[[]1].jsonl")) == ["a[1].jsonl"]


@odd(
    SECTION,
    "a link to a folder beside it",
    "it is followed with `recursive=True`, once: circles and links to folders inside are told",
)
def test_links(tmp_path):
    far = written(tmp_path / "far", "b.jsonl")
    root = written(tmp_path / "root", "de/a.jsonl")
    (root / "en").symlink_to(far)
    (root / "de" / "up").symlink_to(root)
    dataset = Dataset.from_path("d", root, recursive=True)
    assert names(dataset) == ["de/a.jsonl", "en/b.jsonl"]
    assert dataset.passed_over == ("de/up: a link to a directory that holds it",)


def test_the_same_files_are_the_same_data_however_they_were_found(tmp_path):
    one = written(tmp_path / "one", "en/a.jsonl", "en/b.jsonl")
    written(one, "notes.txt")
    one.joinpath("copy").symlink_to(tmp_path / "two")
    ways = [
        Dataset.from_path("d", one, glob="en/*"),
        Dataset.from_path("d", one, glob="en/**/*.jsonl"),
        Dataset.from_path("d", one, glob=["en/a.jsonl", "en/b.jsonl"], recursive=True),
        Dataset.from_path(
            "d", written(tmp_path / "two", "en/a.jsonl", "en/b.jsonl"), recursive=True
        ),
    ]
    recorded = [way.recorded_manifest() for way in ways]
    assert recorded == [recorded[0]] * 4
    assert [shard[0] for shard in recorded[0]] == ["en/a.jsonl", "en/b.jsonl"]


def test_of_many_files_passed_over_some_are_told_and_the_rest_counted(tmp_path):
    written(tmp_path, "a.jsonl", *(f"{number:03}.jsonl" for number in range(120)))
    told = Dataset.from_path("d", tmp_path, glob="a.jsonl").passed_over
    assert told[0] == "000.jsonl: no pattern matches it"
    assert (len(told), told[-1]) == (101, "and 20 more: no pattern matches it")


@odd(
    SECTION,
    "folders such as `lang=en`, below a directory opened with `recursive=True` or `glob=`",
    "`lang` is a column of text, and a filter on it skips whole files; `hive=False` leaves it out",
)
def test_hive_folders(tmp_path):
    written(tmp_path, "lang=en/a.parquet", "lang=a%2Fb/a.parquet", "top.parquet")
    deep = Dataset.from_path("d", tmp_path, recursive=True)
    found = [record.payload["lang"] for record in pipeline(deep)]
    assert found == ["a/b", "en", None]
    english = pipeline(deep).filter(pl.col("lang") == "en")
    assert [r.payload for r in english] == [{"text": "lang=en/a.parquet", "lang": "en"}]
    plain = Dataset.from_path("d", tmp_path, recursive=True, hive=False)
    assert [record.payload.keys() for record in pipeline(plain)] == [{"text"}] * 3


@odd(
    SECTION,
    "a column that is a folder's key, too",
    'it is refused with both values, until `hive="path"`, `"file"` or `False` chooses',
)
def test_hive_folders_that_clash(tmp_path):
    (tmp_path / "lang=en").mkdir()
    pq.write_table(pa.table({"lang": ["fr"]}), tmp_path / "lang=en" / "a.parquet")
    for how in ({"recursive": True}, {"glob": "lang=en/*"}):
        told = "'lang' must come from one place, got 'en' from its folder and 'fr' from the file"
        with pytest.raises(DatasetError, match=told):
            Dataset.from_path("d", tmp_path, **how)
        for hive, wanted in (("path", "en"), ("file", "fr"), (False, "fr")):
            chosen = Dataset.from_path("d", tmp_path, hive=hive, **how)
            assert [record.payload for record in pipeline(chosen)] == [{"lang": wanted}]
