import gzip
import random

import pytest

from tests.written import pipeline
from zephon.errors import DataError, DatasetError
from zephon.io import Dataset
from zephon.io.formats import text as text_format


def opened(folder, text, name="a.txt", **options):
    (folder / name).write_bytes(text)
    return Dataset.from_path("d", folder, fmt="text", format_options=options or None)


def texts(dataset):
    return [record.payload["text"] for record in pipeline(dataset)]


def test_a_document_a_file(tmp_path):
    (tmp_path / "b.md").write_bytes(b"# b\r\n\r\nlast ")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress("größe".encode()))
    (tmp_path / "d.txt").touch()
    dataset = opened(tmp_path, b"\xef\xbb\xbfone\n\ntwo\n")
    assert dataset.counts().tolist() == [1, 1, 1, 0]
    assert texts(dataset) == ["one\n\ntwo\n", "# b\r\n\r\nlast ", "größe"]
    with pytest.raises(DatasetError, match=r"no file with one of the suffixes"):
        Dataset.from_path("d", tmp_path)


@pytest.mark.parametrize("piece", [1, 5, 1 << 20])
def test_documents_between_separators(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(text_format, "BLOCK_BYTES", piece)
    text = b"\xef\xbb\xbfone\ntwo\n\nthree\n\n\n\n \n\nfour"
    assert texts(opened(tmp_path, text, separator="\n\n")) == ["one\ntwo", "three", "four"]
    assert texts(opened(tmp_path, text, separator="\n")) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("separator", ["\n\n", "aba", "\n"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_documents_are_those_of_split_wherever_pieces_end(tmp_path, monkeypatch, piece, separator):
    monkeypatch.setattr(text_format, "BLOCK_BYTES", piece)
    draw = random.Random(piece)
    for _ in range(20):
        text = "".join(draw.choices(["\n", "\n\n", "x", "aba", "ba", " "], k=40))
        wanted = [each for each in text.split(separator) if each.strip()]
        assert texts(opened(tmp_path, text.encode(), separator=separator)) == wanted


def test_text_that_is_not_utf8_is_a_bad_row(tmp_path, read, text):
    rows = read(opened(tmp_path, b"one\n\xff\nthree", separator="\n"), text)
    assert rows.values([0, 2]) == ["one", "three"]
    with pytest.raises(
        DataError, match=r"row 1: field 'text' must be text, got bytes that are not"
    ):
        rows.values([1])


def test_a_separator_is_part_of_the_recipe(tmp_path):
    dataset = opened(tmp_path, b"a\nb", separator="\n")
    assert dataset.recorded_manifest()["format_options"] == {"separator": "\n"}
    with pytest.raises(DatasetError, match="must have a text, or None, as separator, got ''"):
        opened(tmp_path, b"a", separator="")
