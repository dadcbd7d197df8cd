"""Bad rows of formats that are read in blocks: left out, or written down as they stand there."""

import base64
import gzip
import json

import pyarrow as pa
import pytest

from tests.written import pipeline
from zephon import Dataset
from zephon.errors import DataError
from zephon.io.formats import FORMATS, RecordFormat, block_format, register
from zephon.io.formats.registering import FILE_FORMATS

pytestmark = pytest.mark.filterwarnings("ignore:dataset 'words'")


class Notes(RecordFormat):
    """A line a record, without its line end."""

    kind = "notes"
    suffixes = (".notes",)

    def records(self, file):
        place = 0
        for line in file:
            yield place, place + len(line) - 1
            place += len(line)

    def row(self, record):
        if not record.startswith(b"say "):
            raise ValueError("a note must begin with 'say'")
        return {"text": record[4:].decode()}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_format, "BLOCK_BYTES", 16)
    register(Notes())
    yield
    FORMATS.pop("notes")
    FILE_FORMATS.pop("notes")


def arrow_of(*values):
    table = pa.table({"text": pa.array(values).view(pa.string())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table, 2)
    return sink.getvalue().to_pybytes()


# A file, how it is read, its good rows, and its bad ones: bytes as they stand there, line, byte.
FILES = {
    "csv": (
        "a.csv",
        b'text,n\r\n"a\nb",1\r\nc,2,3\r\n\r\nd,4\r\n\xff,5\r\n',
        {},
        [0, 2],
        {1: (b"c,2,3\r\n", 4, 17), 3: (b"\xff,5\r\n", 7, 31)},
    ),
    "json": (
        "a.json",
        b'[\n {"text": "a"},\n {"text": nil},\n\n {"text":\n  "b"}, 7, {"text": "\xff"}]\n',
        {"fmt": "json"},
        [0, 2],
        {1: (b'{"text": nil}', 3, 19), 3: (b"7", 6, 53), 4: (b'{"text": "\xff"}', 6, 56)},
    ),
    "text": (
        "a.txt",
        b"one\n\n\n\ntw\xff\n\nthree\nfour\n\nfi\xffe",
        {"fmt": "text", "format_options": {"separator": "\n\n"}},
        [0, 2],
        {1: (b"tw\xff", 5, 7), 3: (b"fi\xffe", 10, 24)},
    ),
    "notes": (
        "a.notes",
        b"say one\nno\nsay two\nsay \xff\n",
        {},
        [0, 2],
        {1: (b"no", None, 8), 3: (b"say \xff", None, 19)},
    ),
    "arrow": (
        "a.arrow",
        arrow_of(b"one", b"tw\xff", b"three"),
        {},
        [0, 2],
        {1: (b'{"text": {"base64": "dHf/"}}', None, None)},
    ),
}


def job(folder, tokenizer_file, how, **more):
    options = {key: more.pop(key) for key in ("quarantine",) if key in more}
    made = pipeline(Dataset.from_path("words", folder, **how, **more))
    made = made.tokenize(tokenizer_id=tokenizer_file, field="text", special_tokens="none")
    return made.options(**options) if options else made


def delivered(job):
    return [record.meta.sample_id[2] for record in job]


@pytest.mark.parametrize("name", FILES)
def test_a_bad_row_is_left_out_or_written_down_as_it_stands(name, tmp_path, tokenizer_file):
    file, content, how, good, bad = FILES[name]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / file).write_bytes(content)
    found = job(tmp_path / "data", tokenizer_file, how, on_error="skip")
    assert delivered(found) == good
    assert found.accounting()["words"]["rows_skipped"] == len(bad)
    more = {"on_error": "quarantine", "quarantine": str(tmp_path / "bad")}
    found = job(tmp_path / "data", tokenizer_file, how, **more)
    assert delivered(found) == good
    assert found.accounting()["words"]["rows_quarantined"] == len(bad)
    told = [json.loads(path.read_text()) for path in (tmp_path / "bad").rglob("*.jsonl")]
    assert {each["row"]: (raw(each), each.get("line"), each.get("byte")) for each in told} == bad


def raw(told):
    if "raw" in told:
        return told["raw"].encode()
    return base64.b64decode(told["raw_base64"])


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_message_names_line_and_byte(name, tmp_path):
    file, content, how, _, bad = FILES[name]
    (tmp_path / file).write_bytes(content)
    _, line, byte = bad[1]
    with pytest.raises(DataError, match=rf"row 1 \(line {line}, byte {byte}\): "):
        list(pipeline(Dataset.from_path("words", tmp_path, **how)))


def test_lines_of_compressed_files_are_not_counted(tmp_path, tokenizer_file):
    _, content, how, good, bad = FILES["csv"]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"row 1 \(byte 17\): a record must have 2 fields"):
        list(pipeline(Dataset.from_path("words", tmp_path)))
    more = {"on_error": "quarantine", "quarantine": str(tmp_path / "bad")}
    assert delivered(job(tmp_path, tokenizer_file, how, **more)) == good
    told = [json.loads(path.read_text()) for path in (tmp_path / "bad").rglob("*.jsonl")]
    assert {each["row"]: (raw(each), each["byte"]) for each in told} == {
        row: (text, byte) for row, (text, _, byte) in bad.items()
    }


def test_a_row_for_which_a_function_raises_is_written_as_it_stands(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\none\n007\n")
    made = pipeline(Dataset.from_path("words", tmp_path, on_error="quarantine"))
    made = made.map_transform(refuse_digits).options(quarantine=str(tmp_path / "bad"))
    assert [record.payload["text"] for record in made] == ["one"]
    (told,) = (json.loads(path.read_text()) for path in (tmp_path / "bad").rglob("*.jsonl"))
    assert (told["raw"], told["line"], told["byte"]) == ("007\n", 3, 9)
    assert "digits" in told["reason"]


def refuse_digits(row):
    if row["text"].isdigit():
        raise ValueError("digits")
    return row
