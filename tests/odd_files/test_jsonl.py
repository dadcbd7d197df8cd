"""JSON lines as people write them."""

import pytest

from tests.odd_files.table import odd
from tests.written import pipeline, raw
from zephon import Dataset

BOM = b"\xef\xbb\xbf"


def rows_of(folder):
    return [record.payload for record in pipeline(Dataset.from_path("words", folder))]


@odd("JSON lines", "a byte order mark", "it is left out, at the front of every file")
def test_a_byte_order_mark(tmp_path):
    raw(tmp_path, "a.jsonl", BOM + b'{"text": "one"}\n')
    raw(tmp_path, "b.jsonl", BOM + b'{"text": "two"}\r\n')
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]


@odd("JSON lines", "blank lines, or CRLF", "blank lines are no rows; row ids do not count them")
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_blank_lines(tmp_path, end):
    raw(tmp_path, "a.jsonl", end.join([b'{"text": "one"}', b"", b"  ", b'{"text": "two"}']))
    assert rows_of(tmp_path) == [{"text": "one"}, {"text": "two"}]
