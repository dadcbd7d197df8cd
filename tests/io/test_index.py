"""Reading ``index.json``: what is used, what is passed by with a warning, what is refused."""

import base64
import json
import os
import warnings

import pyarrow as pa
import pytest

from tests.written import lines, parquet, raw
from zephon.build_index import build_catalog, build_index
from zephon.errors import DatasetError, NotYetError, ShardError
from zephon.io import Dataset
from zephon.io.catalog_file import Catalog, write_shards


def write(folder, index, name="index.json"):
    folder.mkdir(exist_ok=True, parents=True)
    content = index if isinstance(index, bytes) else json.dumps(index).encode()
    (folder / name).write_bytes(content)


def opened(folder, fmt=None):
    """Open a directory; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Dataset.from_path("d", folder, fmt=fmt)


@pytest.fixture
def two(tmp_path):
    """Two Parquet files, and their index as it is documented, without anything of ours."""
    entries = []
    for name, rows in (("b.parquet", 3), ("a.parquet", 5)):
        parquet(tmp_path, name, pa.table({"text": [f"{name} {n}" for n in range(rows)]}))
        groups = [min(4, rows - first) for first in range(0, rows, 4)]
        entries.append(
            {
                "basename": name,
                "bytes": (tmp_path / name).stat().st_size,
                "num_rows": rows,
                "hashes": {"sha1": "00ff"},
                "extra": {
                    "num_row_groups": len(groups),
                    "row_groups": [{"num_rows": n, "total_byte_size": 100} for n in groups],
                },
            }
        )
    return tmp_path, {"format_version": 1, "shards": entries}


@pytest.fixture
def scanned(two):
    return Dataset.from_path("d", two[0])


def test_an_index_as_documented(two, scanned, read, text):
    folder, index = two
    write(folder, index)
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "index.json"
    assert dataset.shards == scanned.shards
    assert dataset.manifest() == scanned.manifest()
    assert dataset.group_sizes().tolist() == scanned.group_sizes().tolist() == [4, 1, 3]
    assert dataset.fields() == scanned.fields()
    assert dataset.fields_complete
    assert dataset.passed_over == ()
    assert read(dataset, text).values() == read(scanned, text).values()


def test_shards_are_in_bytewise_order_whatever_the_indexs(two):
    folder, index = two
    write(folder, index)
    assert opened(folder).shards.names.to_pylist() == ["a.parquet", "b.parquet"]


def test_index_json_is_taken_before_its_other_name(two):
    folder, index = two
    write(folder, index, "_index.json")
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "_index.json"
    assert dataset.passed_over == ()
    write(folder, {**index, "shards": index["shards"][:1]})
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "index.json"
    assert dataset.passed_over == (
        "_index.json: an index; not used",
        "a.parquet: not in index.json",
    )


def test_files_that_are_not_in_the_index_are_passed_over(two):
    folder, index = two
    write(folder, index)
    parquet(folder, "c.parquet", pa.table({"text": ["new"]}))
    lines(folder, "z.jsonl", ["{}"])
    (folder / "notes.md").touch()
    (folder / "x").mkdir()
    assert opened(folder).passed_over == (
        "c.parquet: not in index.json",
        "notes.md: not data",
        "x: a directory; only direct children are read",
        "z.jsonl: not in index.json",
    )


def test_many_files_without_an_index_are_told_of_it_once(tmp_path):
    folders = [tmp_path / "few", tmp_path / "many", tmp_path / "more"]
    for folder, count in zip(folders, (63, 64, 70), strict=True):
        folder.mkdir()
        for number in range(count):
            lines(folder, f"{number:02}.jsonl", ["{}"])
    with pytest.warns(RuntimeWarning) as caught:
        for folder in [*folders, *folders]:
            assert len(Dataset.from_path("d", folder).shards) >= 63
    assert [str(each.message) for each in caught] == [
        f"dataset 'd': '{folder}' has no index, so each of its {count} files was looked at to open "
        f"it; write an index once with `zephon index {folder}`"
        for folder, count in zip(folders[1:], (64, 70), strict=True)
    ]
    assert caught[0].filename == __file__
    indexed = tmp_path / "indexed"
    folders[1].rename(indexed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_index("jsonl", indexed, progress=False)
        build_catalog(folders[2], progress=False)
        Dataset.from_path("d", indexed)
        Dataset.from_path("d", folders[2])


def test_a_file_that_is_not_there(two):
    folder, index = two
    write(folder, index)
    (folder / "b.parquet").unlink()
    with pytest.raises(DatasetError, match=r"index.json in .* and 'b.parquet' is not; put it back"):
        Dataset.from_path("d", folder)


def test_a_directory_is_no_file(two):
    folder, index = two
    write(folder, index)
    (folder / "b.parquet").unlink()
    (folder / "b.parquet").mkdir()
    with pytest.raises(
        DatasetError, match=rf"'b.parquet', a directory, is not; .* `zephon index {folder}`"
    ):
        Dataset.from_path("d", folder)


@pytest.mark.parametrize("blocks", [{}, {"blocks": {"bytes": [31], "rows": [2]}}])
def test_a_directory_is_no_file_of_lines(tmp_path, blocks):
    entry = {"basename": "dir.jsonl", "bytes": 31, "num_rows": 2, "extra": blocks}
    write(tmp_path, {"format_version": 1, "shards": [entry]})
    (tmp_path / "dir.jsonl").mkdir()
    with pytest.raises(DatasetError, match=r"index.json in .* 'dir.jsonl', a directory, is not"):
        Dataset.from_path("d", tmp_path)


def test_a_file_of_another_size_is_refused(two, read, text):
    """As the footers are read here, at once; with schemas in the index, when it is opened."""
    folder, index = two
    index["shards"][0]["bytes"] += 1
    write(folder, index)
    with pytest.raises(ShardError, match=r"'b.parquet': the file must be as index.json says"):
        Dataset.from_path("d", folder)
    schema = pa.schema([("text", pa.string())])
    for entry in index["shards"]:
        entry["extra"]["schema"] = base64.b64encode(schema.serialize()).decode()
    write(folder, index)
    rows = read(opened(folder), text)
    assert rows.values(range(5)) == [f"a.parquet {n}" for n in range(5)]
    with pytest.raises(ShardError, match=r"the file has \d+ bytes, not \d+; make that anew"):
        rows.values()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda e: e.update(num_rows="3"), "Expected `int`, got `str` - at `$.num_rows`"),
        (lambda e: e.update(num_rows=3.0), "Expected `int`, got `float`"),
        (lambda e: e.update(num_rows=True), "Expected `int`, got `bool`"),
        (lambda e: e.update(num_rows=2**63), "Expected `int` <= 9223372036854775807"),
        (lambda e: e.update(num_rows=10**30), "Expected `int` <= 9223372036854775807"),
        (lambda e: e.update(bytes=-1), "Expected `int` >= 0"),
        (lambda e: e.pop("bytes"), "missing required field `bytes`"),
        (lambda e: e.update(num_rows=4), "num_rows is 4, but its row groups hold 3"),
        (lambda e: e.update(hashes={"sha1": 5}), "Expected `str`, got `int`"),
        (lambda e: e.update(hashes={"zephon_mark_1": "12"}), "mark_1 must be 12 hexadecimal dig"),
        (lambda e: e.update(hashes={"sha256": "no"}), "sha256 must be 64 hexadecimal digits, got"),
        (lambda e: e.update(hashes=None), "Expected `object`, got `null`"),
        (lambda e: e.update(basename="../b.parquet"), "a file beside the index, without a path"),
        (lambda e: e.update(basename="/etc/b.parquet"), "a file beside the index, without a path"),
        (lambda e: e.update(basename="b\0.parquet"), "a file beside the index, without a path"),
        (lambda e: e.update(basename="a.parquet"), "an earlier entry has the same name"),
        (lambda e: e.update(basename="b.txt"), "name must end in .parquet"),
        (lambda e: e.update(basename=""), "name must end in .parquet"),
        (lambda e: e.update(basename=7), "Expected `str`, got `int`"),
        (lambda e: e["extra"].pop("row_groups"), "missing required field `row_groups`"),
        (lambda e: e["extra"].update(num_row_groups=2), "is 2, but row_groups holds 1"),
        (lambda e: e["extra"].update(schema="AAAA"), "extra.schema is no Arrow schema"),
        (lambda e: e["extra"].update(schema="?"), "extra.schema is no Arrow schema"),
        (lambda e: e["extra"].update(schema=["text"]), "Expected `str | null`, got `array`"),
    ],
)
def test_one_wrong_entry_and_the_files_are_read(two, scanned, change, why):
    folder, index = two
    index["shards"].reverse()  # the wrong one is the second
    change(index["shards"][1])
    write(folder, index)
    with pytest.warns(RuntimeWarning) as caught:
        dataset = Dataset.from_path("d", folder)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"dataset 'd': '{folder}/index.json' is not used")
    assert "its entry 1 (" in message
    assert why in message
    assert message.endswith(f"make it anew with `zephon index {folder}`")
    assert caught[0].filename == __file__
    assert dataset.shards == scanned.shards
    assert dataset.passed_over == ("index.json: an index; not used",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"format_version": 1, "shards": []}, "it lists no shard"),
        (b"", "it is no JSON"),
        (b'{"format_version": 1, "shards": [', "it is no JSON"),
        (b'{"shards": ' + b"[" * 100_000, "it is no JSON"),
        (b"\xff\xfe", "it is no JSON"),
        (b'{"format_version": 1, "shards": [{"basename": "\xff.parquet"}]}', "Invalid UTF-8"),
    ],
)
def test_an_index_that_is_none_and_the_files_are_read(two, scanned, content, why):
    folder, _ = two
    write(folder, content)
    with pytest.warns(RuntimeWarning, match=why):
        assert Dataset.from_path("d", folder).shards == scanned.shards


@pytest.mark.parametrize("version", [2, 0, "1", None, True])
def test_another_version_and_the_files_are_read(two, scanned, version):
    folder, index = two
    write(folder, {**index, "format_version": version})
    with pytest.warns(RuntimeWarning, match="its format_version must be 1, got "):
        assert Dataset.from_path("d", folder).shards == scanned.shards
    del index["format_version"]
    write(folder, index)
    with pytest.warns(RuntimeWarning, match="its format_version must be 1, got nothing"):
        Dataset.from_path("d", folder)


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ({"config": {"data_format": ["int"]}, "chunks": [{"filename": "0.bin"}]}, "litdata"),
        ({"version": 2, "shards": [{"samples": 3, "raw_data": {"basename": "0.mds"}}]}, "mds"),
        ({"format_version": 1, "shards": [{"basename": "a.vortex", "extra": {}}]}, "vortex"),
    ],
)
def test_indexes_of_formats_that_are_not_there_yet(tmp_path, index, kind):
    write(tmp_path, index)
    with pytest.raises(NotYetError, match=f"is the index of a dataset in {kind} format"):
        Dataset.from_path("d", tmp_path)


@pytest.mark.parametrize(
    "content", [{}, [], "index", 5, None, {"shards": {}}, {"shards": [{"name": "a"}]}, {"a": []}]
)
def test_other_json_is_refused(two, content):
    folder, _ = two
    write(folder, content)
    with pytest.raises(ValueError, match="Invalid index format"):
        Dataset.from_path("d", folder)


def test_fmt_passes_by_an_index_of_another_format(two, scanned):
    folder, index = two
    for other in ({}, {"config": 1, "chunks": []}):
        write(folder, other)
        assert opened(folder, fmt="parquet").shards == scanned.shards
    write(folder, index)
    lines(folder, "c.jsonl", ["{}"])
    dataset = opened(folder, fmt="jsonl")
    assert dataset.counts().tolist() == [1]
    assert "index.json: an index; not used" in dataset.passed_over
    assert opened(folder, fmt="parquet").shards.listed_by is not None


LINES = b'{"text":"one"}\n\n{"text":"two"}\n'


@pytest.fixture
def three(tmp_path):
    """A JSONL file of each kind, and their index as it is documented."""
    entries = []
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst"):
        raw(tmp_path, name, LINES)
        entries.append(
            {
                "basename": name,
                "bytes": (tmp_path / name).stat().st_size,
                "num_rows": 2,
                "hashes": {},
                "extra": {} if name == "a.jsonl" else {"raw_bytes": len(LINES)},
            }
        )
    return tmp_path, {"format_version": 1, "shards": entries}


def test_a_jsonl_index_as_documented(three, read, text):
    folder, index = three
    scanned = opened(folder)
    write(folder, index)
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "index.json"
    assert dataset.shards == scanned.shards
    assert dataset.fields() == scanned.fields()
    assert read(dataset, text).values() == ["one", "two"] * 3


@pytest.mark.parametrize(
    ("place", "extra", "why"),
    [
        (1, {}, "extra.raw_bytes is missing, and the file is compressed"),
        (1, {"raw_bytes": None}, "extra.raw_bytes is missing"),
        (1, {"raw_bytes": "31"}, "Expected `int | null`, got `str`"),
        (0, {"blocks": {"bytes": [31], "rows": [1]}}, "num_rows is 2, but its blocks hold 1"),
        (0, {"blocks": {"bytes": [30], "rows": [2]}}, "has 31 bytes, but its blocks hold 30"),
        (0, {"blocks": {"bytes": [31, 0], "rows": [2]}}, "must tell the bytes, rows and lines"),
        (0, {"blocks": {"bytes": [31], "rows": [2], "lines": []}}, "must tell the bytes, rows and"),
        (0, {"blocks": {"bytes": [33, -2], "rows": [2, 0]}}, "Expected `int` >= 0"),
        (0, {"blocks": {"bytes": [31], "rows": [2], "opening": "木"}}, "one sign a byte"),
        (0, {"blocks": 3}, "Expected `object | null`, got `int`"),
    ],
)
def test_wrong_extras_of_jsonl_and_the_files_are_read(three, place, extra, why):
    folder, index = three
    scanned = opened(folder)
    if place == 1:
        extra = {**index["shards"][1]["extra"], **extra} if extra else {}
    index["shards"][place]["extra"] = extra
    write(folder, index)
    with pytest.warns(RuntimeWarning, match="is wrong") as caught:
        dataset = Dataset.from_path("d", folder)
    assert why in str(caught[0].message)
    assert dataset.shards == scanned.shards


def test_a_jsonl_file_that_is_not_what_the_index_says(three):
    folder, index = three
    index["shards"][0]["num_rows"] = 3
    write(folder, index)
    with pytest.raises(ShardError, match=r"'a.jsonl': .* it has 2 rows in 31 bytes, not 3 in 31"):
        Dataset.from_path("d", folder)


def test_compressions_that_are_not_read(three):
    folder, index = three
    index["shards"][1]["basename"] = "b.jsonl.lz4"
    write(folder, index)
    with pytest.warns(RuntimeWarning, match=r"must end in .jsonl or .jsonl.gz or .jsonl.zst"):
        assert len(Dataset.from_path("d", folder)) == 6


def test_a_job_refuses_a_listed_file_that_changes_while_it_runs(three, read, text):
    folder, index = three
    index["shards"][0]["extra"] = {"blocks": {"bytes": [31], "rows": [2], "lines": [3]}}
    index["shards"] = index["shards"][:1]
    write(folder, index)
    dataset = opened(folder)
    assert read(dataset, text).values() == ["one", "two"]
    (folder / "a.jsonl").write_bytes(LINES.replace(b"one", b"six"))
    os.utime(folder / "a.jsonl", ns=(1, 1))
    with pytest.raises(ShardError, match="when it was first read, but it was written to since"):
        read(dataset, text).values()
    assert read(opened(folder), text).values() == ["six", "two"]


def test_a_jsonl_file_of_the_same_size_with_other_lines_is_refused(tmp_path, read, text):
    """Both blocks still count two rows, but a line lies across them."""
    lines(tmp_path, "a.jsonl", ['{"text":"1"}', '{"text":"2"}', '{"text":"3"}', '{"text":"4"}'])
    blocks = {"bytes": [26, 26], "rows": [2, 2]}
    entry = {"basename": "a.jsonl", "bytes": 52, "num_rows": 4, "extra": {"blocks": blocks}}
    write(tmp_path, {"format_version": 1, "shards": [entry]})
    assert read(opened(tmp_path), text).values() == ["1", "2", "3", "4"]
    listed = opened(tmp_path)
    write_shards(tmp_path / "later", Catalog("jsonl", listed.shards, listed.fields(), False))
    lines(tmp_path, "a.jsonl", ['{"text":"1"}', '{"text":"2---"}', '{"text":"3 and 4 too"}'])
    assert (tmp_path / "a.jsonl").stat().st_size == 52
    with pytest.raises(ShardError, match=r"index.json says, but block 0 ends inside a line"):
        opened(tmp_path)  # fields are those of the first rows
    (tmp_path / "later").rename(tmp_path / "_catalog.arrow")
    rows = read(opened(tmp_path), text)
    for row, problem in ((0, "block 0 ends"), (3, "block 1 begins")):
        with pytest.raises(ShardError, match=f"catalog.arrow says, but {problem} inside a line"):
            rows.values([row])
