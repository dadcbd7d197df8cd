"""JSON lines as people write them."""

import gzip
import json
import math

import polars as pl
import pytest

from tests.odd_files.table import odd
from tests.written import PACK, pipeline, raw
from zephon import Dataset, InMemoryShard
from zephon.build_index import build_index
from zephon.errors import DataError, ShardError

BOM = b"\xef\xbb\xbf"
either_order = pytest.mark.parametrize("last_first", [False, True], ids=["as is", "reversed"])


def rows_of(folder):
    return [record.payload for record in pipeline(Dataset.from_path("words", folder))]


def texts_of(folder, tokenizer_file, field="text"):
    """Read one field alone, as text."""
    pipe = pipeline(Dataset.from_path("words", folder)).tokenize(
        tokenizer_id=tokenizer_file, field=field, preserve_upstream_payload=True
    )
    return [record.payload[field] for record in pipe]


def two_files(folder, one, two, last_first):
    """Write two files of rows, in either order; give the rows in that order."""
    parts = [two, one] if last_first else [one, two]
    for name, rows in zip("ab", parts, strict=True):
        raw(folder, f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    return parts[0] + parts[1]


@odd("JSON lines", "a byte order mark", "it is left out, at the front of every file")
def test_a_byte_order_mark(tmp_path):
    raw(tmp_path, "a.jsonl", BOM + b'{"text": "one"}\n')
    raw(tmp_path, "b.jsonl", BOM + b'{"text": "two"}\r\n')
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "byte order marks inside, since files were joined", "they are left out, too")
def test_byte_order_marks_of_joined_files(tmp_path):
    one, none, two = BOM + b'{"text": "one"}\n', BOM, BOM + b'{"text": "two"}\n'
    raw(tmp_path, "a.jsonl", one + none + two + BOM)
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "blank lines, or CRLF", "blank lines are no rows; row ids do not count them")
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_blank_lines(tmp_path, end):
    raw(tmp_path, "a.jsonl", end.join([b'{"text": "one"}', b"", b"  ", b'{"text": "two"}']))
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "no bytes, or blank lines alone", "it has no rows, and others are read")
def test_files_without_rows(tmp_path):
    raw(tmp_path, "a.jsonl", b"")
    raw(tmp_path, "b.jsonl", b'{"text": "one"}')
    raw(tmp_path, "c.jsonl", b"\n \r\n")
    raw(tmp_path, "d.jsonl.gz", b"")
    assert Dataset.from_path("words", tmp_path).counts().tolist() == [0, 1, 0, 0]
    assert rows_of(tmp_path) == [{"text": "one"}]


@odd(
    "JSON lines",
    "several gzip members, zstd frames, bzip2 or xz streams, or padding",
    "they are one text; a line may reach over their ends",
)
@pytest.mark.parametrize("end", list(PACK))
def test_several_members(tmp_path, end):
    parts = [b'{"text": "o', b"", b'ne"}\n{"text":', b' "two"}\n']
    padding = b"\0" * 8 if end in (".gz", ".xz") else b""
    content = padding.join([*map(PACK[end], parts), b""])
    (tmp_path / f"a.jsonl{end}").write_bytes(content)
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "its end cut off, compressed", "an error names the file; nothing of it is read")
@pytest.mark.parametrize("end", list(PACK))
def test_a_compressed_file_that_is_cut_off(tmp_path, end):
    whole = PACK[end](b'{"text": "one"}\n' * 999)
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / f"a.jsonl{end}").write_bytes(whole[:length])
        with pytest.raises(ShardError, match=rf"shard 'a.jsonl{end}': .*damaged or cut off"):
            rows_of(tmp_path)


@odd("JSON lines", "other bytes behind its compressed ones", "an error names the file")
@pytest.mark.parametrize("end", list(PACK))
def test_bytes_behind_a_compressed_text(tmp_path, end):
    content = PACK[end](b'{"text": "one"}\n') + b"and more"
    (tmp_path / f"a.jsonl{end}").write_bytes(content)
    with pytest.raises(ShardError, match=rf"shard 'a.jsonl{end}': .*damaged"):
        rows_of(tmp_path)


@odd("JSON lines", "its last line cut off", "that is one bad row; all others are read")
def test_a_last_line_that_is_cut_off(tmp_path):
    raw(tmp_path, "a.jsonl", b'{"text": "one"}\n{"text": "two"}\n{"text": "thr')
    assert Dataset.from_path("words", tmp_path).total() == 3
    found = []
    with pytest.raises(DataError, match=r"shard 'a.jsonl', row 2 \(line 3, byte 32\): .*"):
        for record in pipeline(Dataset.from_path("words", tmp_path)):
            found.append(record.payload)
    assert found == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "a line that is not JSON", "that is one bad row, named with its line and byte")
@pytest.mark.parametrize(
    "line", [b'{"text": "b', b'{"text": "b"} zzz', b"\0" * 80, b"{'text': 'b'}"]
)
def test_a_line_that_is_not_json(tmp_path, tokenizer_file, line):
    raw(tmp_path, "a.jsonl", b'{"text": "a"}\n\n' + line + b'\n{"text": "c"}\n')
    assert Dataset.from_path("words", tmp_path).total() == 3
    with pytest.raises(DataError, match=r"shard 'a.jsonl', row 1 \(line 3, byte 15\): "):
        texts_of(tmp_path, tokenizer_file)


@odd(
    "JSON lines",
    "null or nothing first and values later",
    "rows are the same in any order of files",
)
@either_order
def test_values_that_come_late(tmp_path, tokenizer_file, last_first):
    nulls = [{"text": f"t{n}", "note": None, "m": []} for n in range(150)]
    late = [{"text": "late", "note": "there", "m": [{"role": "u"}]}]
    wanted = two_files(tmp_path, nulls, late, last_first)
    assert rows_of(tmp_path) == wanted
    assert texts_of(tmp_path, tokenizer_file) == [row["text"] for row in wanted]


@odd(
    "JSON lines", "values of several types in one field", "each row keeps its own, never converted"
)
@either_order
def test_values_of_several_types(tmp_path, last_first):
    one = [{"content": "hi", "time": "2025-08-01"}, {"content": True, "time": 3.0}]
    two = [{"content": [{"type": "text"}], "time": 1690876800}, {"content": None, "time": {}}]
    wanted = two_files(tmp_path, one, two, last_first)
    found = rows_of(tmp_path)
    assert found == wanted
    assert [[type(v) for v in row.values()] for row in found] == [
        [type(v) for v in row.values()] for row in wanted
    ]


@odd("JSON lines", "objects with differing keys", "absent keys stay absent, and null stays null")
@either_order
def test_differing_keys(tmp_path, last_first):
    one = [{"tools": {"parameters": {"a": {"type": "int"}}}}]
    two = [
        {"tools": {"parameters": {"b": {"type": "str"}}}},
        {"tools": {"parameters": {"a": None}}},
    ]
    wanted = two_files(tmp_path, one, two, last_first)
    assert list(map(json.dumps, rows_of(tmp_path))) == list(map(json.dumps, wanted))


@odd("JSON lines", "one key twice in an object", "the last one wins, as in Python")
def test_one_key_twice(tmp_path, tokenizer_file):
    raw(tmp_path, "a.jsonl", b'{"text": "a", "text": "z"}\n{"text": 1, "te\\u0078t": "y"}\n')
    assert rows_of(tmp_path) == [{"text": "z"}, {"text": "y"}]
    assert texts_of(tmp_path, tokenizer_file) == ["z", "y"]


@odd("JSON lines", "text that looks like dates, numbers or null", "it stays the text that it is")
@either_order
def test_text_that_looks_like_something_else(tmp_path, tokenizer_file, last_first):
    one = [{"text": "2024-01-01T00:00:00Z"}, {"text": "1e5"}, {"text": "null"}]
    wanted = two_files(tmp_path, one, [{"text": "hello"}, {"text": "true"}], last_first)
    assert rows_of(tmp_path) == wanted
    assert texts_of(tmp_path, tokenizer_file) == [row["text"] for row in wanted]


@odd(
    "JSON lines",
    "half a surrogate pair in a text",
    "that is one bad row; a whole pair is a character",
)
def test_half_a_surrogate_pair(tmp_path, tokenizer_file):
    raw(tmp_path, "a.jsonl", b'{"text": "\\ud83d\\ude00"}\n')
    assert texts_of(tmp_path, tokenizer_file) == ["\U0001f600"]
    raw(tmp_path, "a.jsonl", b'{"text": "a"}\n{"text": "a\\ud800"}\n')
    with pytest.raises(DataError, match=r"row 1 \(line 2, .*must be valid UTF-8"):
        texts_of(tmp_path, tokenizer_file)


@odd("JSON lines", "bytes that are not UTF-8", "that is one bad row, where the field is read")
def test_bytes_that_are_not_utf8(tmp_path, tokenizer_file):
    raw(tmp_path, "a.jsonl", b'{"text": "a", "name": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"row 0 \(line 1, byte 0\): .*UTF-8"):
        rows_of(tmp_path)
    pipe = pipeline(Dataset.from_path("words", tmp_path))
    assert len(list(pipe.tokenize(tokenizer_id=tokenizer_file, field="text"))) == 1


@odd("JSON lines", "UTF-16 or UTF-32", "an error names the file, at once")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings(tmp_path, encoding):
    raw(tmp_path, "a.jsonl", '{"text": "a"}\n'.encode(encoding))
    with pytest.raises(ShardError, match=r"shard 'a.jsonl': .*not UTF-8"):
        Dataset.from_path("words", tmp_path)


@odd("JSON lines", "NaN or Infinity", "they are read as Python reads them")
def test_nan(tmp_path, tokenizer_file):
    raw(tmp_path, "a.jsonl", b'{"x": NaN, "text": "a"}\n{"x": -Infinity, "text": "b"}\n')
    first, second = rows_of(tmp_path)
    assert math.isnan(first["x"])
    assert second["x"] == -math.inf
    assert texts_of(tmp_path, tokenizer_file) == ["a", "b"]


@odd("JSON lines", "integers of any length", "they are read exactly, up to 4,300 digits")
def test_huge_integers(tmp_path):
    raw(
        tmp_path, "a.jsonl", b'{"n": 123456789012345678901234567890}\n{"n": ' + b"9" * 5000 + b"}\n"
    )
    pipe = iter(pipeline(Dataset.from_path("words", tmp_path)))
    assert next(pipe).payload == {"n": 123456789012345678901234567890}
    with pytest.raises(DataError, match=r"row 1 .*beyond limits"):
        next(pipe)


@odd("JSON lines", "U+2028, U+0085 or a lone CR in a line", "it ends no line; only line feeds do")
def test_other_line_ends(tmp_path):
    row = {"text": "one\u2028two\u2029three\u0085four\rfive"}
    text = json.dumps(row, ensure_ascii=False) + "\r" + "\n" + json.dumps({"text": "b"})
    raw(tmp_path, "a.jsonl", text.encode())
    assert rows_of(tmp_path) == [row, {"text": "b"}]


@odd("JSON lines", "values nested some 1,000 levels deep", "that is one bad row")
def test_deep_nesting(tmp_path, tokenizer_file):
    deep = b'{"text": "a", "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    raw(tmp_path, "a.jsonl", b'{"text": "a"}\n' + deep)
    with pytest.raises(DataError, match=r"row 1 \(line 2, byte 14\): .*beyond limits"):
        texts_of(tmp_path, tokenizer_file)


@odd("JSON lines", "a JSON array, or indented JSON", "the error says so, and names fmt='json'")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b'[{"text": "a"}, {"text": "b"}]', "a JSON array"),
        (b'[\n{"text": "a"},\n{"text": "b"}\n]\n', "a JSON array"),
        (b'{\n  "text": "a"\n}\n', "indented JSON"),
    ],
)
def test_other_json(tmp_path, tokenizer_file, text, what):
    raw(tmp_path, "a.jsonl", text)
    with pytest.raises(DataError, match=rf"this looks like {what}, not JSON lines.*fmt='json'"):
        texts_of(tmp_path, tokenizer_file)


@odd("JSON lines", "one object of many megabytes", "it is a row as any other")
@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_large_object(tmp_path, end):
    rows = [{"text": "a"}, {"text": "large " * 2_000_000}, {"text": "c"}]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / f"a.jsonl{end}").write_bytes(gzip.compress(text, 1) if end else text)
    assert rows_of(tmp_path) == rows


@odd(
    "JSON lines",
    "a field that is null or an empty list in a whole file, and expressions that read it",
    "it has one type, that of all files, once an index tells it (`zephon index`)",
)
@either_order
def test_one_type_of_all_files(tmp_path, last_first):
    nulls = [{"n": None, "m": []} for _ in range(150)]
    wanted = two_files(tmp_path / "lines", nulls, [{"n": 7, "m": ["x"]}], last_first)
    build_index("jsonl", tmp_path / "lines", progress=False)
    in_memory = Dataset.from_dict("words", {0: InMemoryShard(wanted)})
    for dataset in (Dataset.from_path("words", tmp_path / "lines"), in_memory):
        pipe = pipeline(dataset).filter((pl.col("n") > 6) & (pl.col("m").list.len() == 1))
        assert [record.payload for record in pipe] == [{"n": 7, "m": ["x"]}]
