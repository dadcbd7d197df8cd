"""Files of other formats as people write them."""

import io
import tarfile

import numpy as np
import pyarrow as pa
import pytest

from tests.odd_files.table import odd
from tests.written import lines, pipeline
from zephon import Dataset
from zephon.errors import DataError, DatasetError, ShardError


def rows_of(folder, **how):
    found = [record.payload for record in pipeline(Dataset.from_path("words", folder, **how))]
    return [{key: _plain(value) for key, value in row.items()} for row in found]


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


TABLE = pa.table({"text": ["one", "two", "three"], "tag": pa.array(["x", "y", "x"])})


def arrow(path, new, table=TABLE, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new(str(path), table.schema, options=options) as file:
        file.write_table(table, 2)


@odd("Other formats", "Arrow IPC as a file or a stream", "both are read, compressed or not")
@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_both_formats_of_arrow(tmp_path, new):
    arrow(tmp_path / "a.arrow", new, compression="zstd")
    arrow(tmp_path / "b.arrow", new)
    assert rows_of(tmp_path) == TABLE.to_pylist() * 2


@odd("Other formats", "an Arrow file that is cut off", "it is refused when the dataset is opened")
def test_an_arrow_file_that_is_cut_off(tmp_path):
    arrow(tmp_path / "a.arrow", pa.ipc.new_file)
    whole = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(whole[:-30])
    with pytest.raises(ShardError, match=r"shard 'a.arrow'.*it is cut off"):
        rows_of(tmp_path)


@odd("Other formats", "Arrow files beside JSONL or Parquet", "they are passed over without `fmt=`")
def test_arrow_files_beside_others(tmp_path):
    arrow(tmp_path / "cache.arrow", pa.ipc.new_stream)
    lines(tmp_path, "a.jsonl", [{"text": "four"}])
    assert rows_of(tmp_path) == [{"text": "four"}]
    assert rows_of(tmp_path, fmt="arrow") == TABLE.to_pylist()


@odd(
    "Other formats",
    "CSV values such as 007, NA, 1e5 or nothing",
    "each is the text that stands there; an empty field is an empty text",
)
def test_csv_values(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n007,NA\n1e5,\n")
    assert rows_of(tmp_path) == [{"a": "007", "b": "NA"}, {"a": "1e5", "b": ""}]


@odd("Other formats", "CSV with line ends within quotes", "they belong to the value")
def test_csv_line_ends_within_quotes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'a,b\r\n"one\r\ntwo",3\r\n')
    assert rows_of(tmp_path) == [{"a": "one\r\ntwo", "b": "3"}]


@odd("Other formats", "a CSV record with too few or too many fields", "that row alone is bad")
def test_csv_ragged_records(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n")
    dataset = Dataset.from_path("words", tmp_path)
    records = iter(pipeline(dataset))
    assert next(records).payload == {"a": "1", "b": "2"}
    with pytest.raises(DataError, match=r"row 1 .line 3, byte 8.: a record must have 2 fields"):
        next(records)


@odd(
    "Other formats",
    "a `.json` array, or indented objects",
    'it is read with `fmt="json"`, element by element; a bad element is one bad row',
)
def test_a_json_array(tmp_path):
    (tmp_path / "a.json").write_text('[\n {"text": "one"},\n {"text": "two"}\n]')
    with pytest.raises(DatasetError, match="fmt='json'"):
        rows_of(tmp_path)
    assert rows_of(tmp_path, fmt="json") == [{"text": "one"}, {"text": "two"}]


@odd("Other formats", "JSON lines in `.json` files", 'they are read with `fmt="jsonl"`')
def test_json_lines_in_json_files(tmp_path):
    (tmp_path / "a.json").write_text('{"text": "one"}\n{"text": "two"}\n')
    assert rows_of(tmp_path, fmt="jsonl") == [{"text": "one"}, {"text": "two"}]


@odd(
    "Other formats",
    "plain text",
    'with `fmt="text"` a file is a document, or what lies between two separators',
)
def test_plain_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\n\r\ntwo\n\n\n\nthree")
    assert rows_of(tmp_path, fmt="text") == [{"text": "one\r\n\r\ntwo\n\n\n\nthree"}]
    options = {"separator": "\n\n"}
    found = rows_of(tmp_path, fmt="text", format_options=options)
    assert found == [{"text": "one\r\n\r\ntwo"}, {"text": "three"}]


def tar(path, *members):
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
        for name, content in members:
            made = tarfile.TarInfo(name)
            made.size = len(content)
            file.addfile(made, io.BytesIO(content))


@odd(
    "Other formats",
    "WebDataset samples in `.tar`, or `.tar.gz` and such",
    "a sample is a row: text, JSON and `cls` as values, all else as bytes, and `__key__`",
)
def test_web_dataset(tmp_path):
    tar(tmp_path / "a.tar", ("d/1.txt", b"one"), ("d/._1.txt", b"x"), ("d/1.cls", b"3"))
    assert rows_of(tmp_path) == [{"__key__": "d/1", "txt": "one", "cls": 3}]


@odd(
    "Other formats",
    "a tar member that is no UTF-8, no JSON, a link, or there twice",
    "its sample alone is a bad row",
)
def test_a_bad_sample(tmp_path):
    tar(tmp_path / "a.tar", ("1.txt", b"\xff"), ("2.txt", b"1"), ("2.txt", b"2"), ("3.txt", b"3"))
    assert rows_of(tmp_path, on_error="skip") == [{"__key__": "3", "txt": "3"}]


@odd(
    "Other formats",
    "a tar file that is cut off or damaged",
    "it is refused when the dataset is opened, with the byte; only the zeros at its end may lack",
)
def test_a_tar_file_that_is_cut_off(tmp_path):
    tar(tmp_path / "a.tar", ("1.txt", b"one"))
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[:1024])
    assert len(rows_of(tmp_path)) == 1
    (tmp_path / "a.tar").write_bytes(whole[:514])
    with pytest.raises(ShardError, match=r"shard 'a.tar'.*it is cut off: member '1.txt' lacks 1"):
        rows_of(tmp_path)
