"""Indexes and catalogues of files in folders, and of files that a pattern picks."""

import json
import os
import warnings

import pytest

from tests.written import lines, parquet
from zephon import Dataset
from zephon.build_index import build_catalog, build_index, format_of_files
from zephon.cli import main
from zephon.errors import ShardError

KINDS = ("parquet", "jsonl", "jsonl.gz")
FILES = ("en/a", "en/x/b", "top")


@pytest.fixture(params=KINDS)
def tree(tmp_path, request):
    for number, file in enumerate(FILES):
        folder, _, name = file.rpartition("/")
        rows = [{"text": f"{file} {row}"} for row in range(number + 2)]
        write = parquet if request.param == "parquet" else lines
        write(tmp_path / folder, f"{name}.{request.param}", rows)
    return tmp_path


def made(how, folder, **wanted):
    if how == "index":
        build_index(format_of_files(folder, **wanted), folder, progress=False, **wanted)
    else:
        build_catalog(folder, progress=False, **wanted)
    return {"index": "index.json", "catalog": "_catalog.arrow"}[how]


def told_by(dataset):
    return dataset.shards.listed_by and dataset.shards.listed_by.file


def strict(folder, **wanted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Dataset.from_path("d", folder, **wanted)


@pytest.mark.parametrize("how", ["index", "catalog"])
def test_it_tells_the_same_as_the_files(tree, how):
    scanned = strict(tree, recursive=True)
    assert [name.partition(".")[0] for name, *_ in scanned.manifest()] == [*FILES]
    file = made(how, tree, recursive=True)
    told = strict(tree, recursive=True)
    assert told_by(told) == file
    assert told.manifest() == scanned.manifest()
    assert told == strict(tree, glob="**/*")


@pytest.mark.parametrize("how", ["index", "catalog"])
def test_a_pattern_picks_from_what_tells_of_all(tree, how):
    scanned = strict(tree, glob="en/**")
    direct = strict(tree)
    file = made(how, tree, recursive=True)
    some = strict(tree, glob="en/**")
    assert (told_by(some), some.manifest()) == (file, scanned.manifest())
    assert any(line.startswith("top.") for line in some.passed_over)
    assert (told_by(strict(tree)), strict(tree).manifest()) == (file, direct.manifest())


@pytest.mark.parametrize("how", ["index", "catalog"])
def test_one_of_other_files_is_not_used_where_it_lacks_some(tree, how):
    scanned = strict(tree, recursive=True)
    made(how, tree)
    lacks = r"it was made of other files, and tells nothing of 'en/a.*' and 1 more; .*--recursive"
    with pytest.warns(RuntimeWarning, match=lacks):
        deep = Dataset.from_path("d", tree, recursive=True)
    assert (told_by(deep), deep.manifest()) == (None, scanned.manifest())
    assert told_by(strict(tree)) is not None
    assert told_by(strict(tree, glob="en/*")) is None  # it tells of none of them


def test_new_files_are_not_read_where_the_index_is_of_these_patterns(tree):
    made("index", tree, recursive=True)
    before = strict(tree, recursive=True)
    lines(tree / "en", "new.jsonl", [{"text": "a"}])
    parquet(tree / "en", "new.parquet", [{"text": "a"}])
    after = strict(tree, recursive=True)
    assert after.manifest() == before.manifest()
    assert "en/new.jsonl: not in index.json" in after.passed_over


def test_a_stale_index_names_the_command_that_makes_it_anew(tree):
    made("index", tree, recursive=True)
    dataset = strict(tree, recursive=True)
    shard = dataset.shards[0]
    with open(shard.path, "ab") as file:
        file.write(b"\n")
    with pytest.raises(ShardError, match=f"`zephon index --recursive {tree}`"):
        shard.check_unchanged("d", os.stat(shard.path))


def test_from_the_command_line(tree, capsys):
    assert main(["index", str(tree), "--glob", "en/*", "--glob", "**/b.*"]) == 0
    written = json.loads((tree / "index.json").read_text())
    assert written["glob"] == ["**/b.*", "en/*"]
    assert [shard["basename"].partition(".")[0] for shard in written["shards"]] == [*FILES[:2]]
    assert capsys.readouterr().out.strip() == str(tree / "index.json")
    assert main(["index", str(tree), "--recursive", "--catalog"]) == 0
    assert told_by(strict(tree, recursive=True)) == "_catalog.arrow"


@pytest.mark.parametrize(
    ("glob", "why"),
    [("a", "must be a list of patterns"), ([], "must be a list"), (["../x"], "a part '..'")],
)
def test_patterns_that_cannot_be(tree, glob, why):
    made("index", tree, recursive=True)
    told = json.loads((tree / "index.json").read_text())
    (tree / "index.json").write_text(json.dumps({**told, "glob": glob}))
    with pytest.warns(RuntimeWarning, match=why):
        Dataset.from_path("d", tree, recursive=True)


@pytest.mark.parametrize("name", ["../a", "en/../a", "/a", "en//a", "./a"])
def test_names_that_lead_elsewhere(tree, name):
    made("index", tree, recursive=True)
    told = json.loads((tree / "index.json").read_text())
    suffix = told["shards"][0]["basename"].partition(".")[2]
    told["shards"][0]["basename"] = f"{name}.{suffix}"
    (tree / "index.json").write_text(json.dumps(told))
    with pytest.warns(RuntimeWarning, match="must be that of a file below the directory"):
        Dataset.from_path("d", tree, recursive=True)
