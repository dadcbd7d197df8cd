import os
import re

import pytest

from zephon.errors import DatasetError
from zephon.io.dataset import Dataset
from zephon.io.listing import list_directory

SUFFIXES = {"jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"), "parquet": (".parquet",)}


@pytest.fixture
def listed(tmp_path):
    def make(*names, fmt=None):
        for name in names:
            if name.endswith("/"):
                (tmp_path / name).mkdir()
            else:
                (tmp_path / name).touch()
        return list_directory("d", tmp_path, SUFFIXES, fmt)

    return make


def test_only_data_is_read_and_the_rest_is_listed_with_its_reason(listed):
    listing = listed(
        "b.parquet", "a.parquet", "_SUCCESS", ".a.parquet.crc", "x.crc", "c.parquet.tmp", "README",
        "notes.md", ".hidden.parquet", "_metadata", "lang=en/", "index.json", "d.parquet~",
        "_catalog.arrow", "z.json", "z.vortex",
    )  # fmt: skip
    assert listing.kind == "parquet"
    assert listing.files == ("a.parquet", "b.parquet")
    assert listing.passed_over == (
        ".a.parquet.crc: a checksum",
        ".hidden.parquet: hidden",
        "README: not data",
        "_SUCCESS: a marker",
        "_catalog.arrow: a catalogue; not used",
        "_metadata: a marker",
        "c.parquet.tmp: temporary",
        "d.parquet~: temporary",
        "index.json: an index; not used",
        "lang=en: a directory; only direct children are read",
        "notes.md: not data",
        "x.crc: a checksum",
        "z.json: JSON; fmt='json' reads it, or fmt='jsonl' if each line is an object",
        "z.vortex: Vortex is not read yet",
    )


def test_order_is_bytewise(listed):
    names = ["é.jsonl", "z.jsonl", "Z.jsonl", "10.jsonl", "9.jsonl", "a.jsonl.gz", "a.jsonl"]
    assert listed(*names).files == (
        "10.jsonl", "9.jsonl", "Z.jsonl", "a.jsonl", "a.jsonl.gz", "z.jsonl", "é.jsonl",
    )  # fmt: skip


def test_two_formats_are_refused_naming_both(listed):
    with pytest.raises(
        DatasetError,
        match=r"jsonl \(1, such as 'a.jsonl'\) and parquet \(2, such as 'b.parquet'\); "
        r"pass fmt='jsonl' or fmt='parquet'",
    ):
        listed("a.jsonl", "b.parquet", "c.parquet")


def test_fmt_chooses_between_two_formats(listed):
    listing = listed("a.jsonl", "b.parquet", fmt="parquet")
    assert listing.files == ("b.parquet",)
    assert listing.passed_over == ("a.jsonl: jsonl; only parquet is read",)


def test_an_empty_directory(listed):
    with pytest.raises(
        ValueError,
        match=r"Unsupported dataset format at path .*no file with one of the suffixes "
        r".jsonl, .parquet, or .jsonl with .gz, .zst behind; found nothing: the directory is empty",
    ):
        listed()


def test_nothing_recognisable_lists_what_was_found(listed):
    with pytest.raises(DatasetError, match=r"found 'lang=en' \(a directory.*'x.pdf' \(not data"):
        listed("x.pdf", "lang=en/")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("a.txt", "plain text; fmt='text' reads it"),
        ("a.txt.xz", "plain text; fmt='text' reads it"),
        ("a.json.gz", "JSON; fmt='json' reads it, or fmt='jsonl' if each line is an object"),
        ("a.jsonl.zip", "packed in a way that is not read; unpack it, or use gzip"),
        ("a.tgz", "an archive; name it .tar.gz"),
    ],
)
def test_what_could_be_data_is_told_with_what_to_do(listed, file, reason):
    with pytest.raises(DatasetError, match=re.escape(f"found {file!r} ({reason}")):
        listed(file)


def test_a_long_directory_is_cut_in_the_message(listed):
    with pytest.raises(DatasetError, match="and 5 more"):
        listed(*(f"{i:02d}.csv" for i in range(15)))


def test_fmt_without_such_files(listed):
    with pytest.raises(DatasetError, match=r"suffixes .parquet; found 'a.jsonl' \(jsonl; only"):
        listed("a.jsonl", fmt="parquet")


def test_links_and_pipes(listed, tmp_path):
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "x")
    listing = listed("A.JSONL")
    assert listing.files == ("A.JSONL", "link.jsonl")
    assert "gone.jsonl: a broken link" in listing.passed_over
    assert "pipe.jsonl: not a regular file" in listing.passed_over


def test_a_data_file_whose_name_is_not_utf8_is_refused(tmp_path):
    with open(bytes(tmp_path) + b"/f\xff.jsonl", "wb") as file:
        file.write(b'{"text":"a"}\n')
    with pytest.raises(DatasetError, match=r"names of data files must be UTF-8, got b'f\\xff"):
        Dataset.from_path("odd", str(tmp_path))


def test_a_link_to_itself_is_passed_over(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text":"a"}\n')
    (tmp_path / "b.jsonl").symlink_to("b.jsonl")
    assert Dataset.from_path("links", str(tmp_path)).passed_over == ("b.jsonl: a broken link",)


@pytest.mark.parametrize("path", [None, 5, b"data"])
def test_a_path_must_be_text(path):
    with pytest.raises(DatasetError, match="path must be a non-empty str"):
        Dataset.from_path("odd", path)


def test_a_format_must_be_a_word(tmp_path):
    with pytest.raises(DatasetError, match="Unknown format kind"):
        Dataset.from_path("odd", str(tmp_path), fmt=["jsonl"])


def test_json_lines_by_another_name_are_read_when_the_format_is_named(tmp_path):
    for name, text in (("a.json", '{"n": 1}\n{"n": 2}\n'), ("b.json", '{"n": 3}\n')):
        (tmp_path / name).write_text(text)
    with pytest.raises(DatasetError, match=r"'a.json' .*fmt='jsonl'"):
        Dataset.from_path("d", tmp_path)
    dataset = Dataset.from_path("d", tmp_path, fmt="jsonl")
    assert dataset.shards.names.to_pylist() == ["a.json", "b.json"]
    assert dataset.total() == 3
    (tmp_path / "c.jsonl").write_text('{"n": 4}\n')
    dataset = Dataset.from_path("d", tmp_path, fmt="jsonl")
    assert dataset.shards.names.to_pylist() == ["c.jsonl"]


def test_files_that_give_way_are_data_only_alone_or_by_name(tmp_path):
    suffixes = {**SUFFIXES, "csv": (".csv",), "tar": (".tar",)}
    (tmp_path / "a.csv").touch()
    assert list_directory("d", tmp_path, suffixes, None, yielding={"csv", "tar"}).kind == "csv"
    (tmp_path / "b.parquet").touch()
    listing = list_directory("d", tmp_path, suffixes, None, yielding={"csv", "tar"})
    assert (listing.kind, listing.files) == ("parquet", ("b.parquet",))
    assert listing.passed_over == ("a.csv: csv; pass fmt='csv' to read it",)
    assert list_directory("d", tmp_path, suffixes, "csv", yielding={"csv"}).files == ("a.csv",)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "c.tar").touch()
    with pytest.raises(DatasetError, match=r"one format, got csv .* and tar "):
        list_directory("d", tmp_path, suffixes, None, yielding={"csv", "tar"})
