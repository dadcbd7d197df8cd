"""Many lines decoded at once."""

import numpy as np
import pytest

from zephon.errors import DataError
from zephon.io.formats.line_blocks import LineBlocks, RowLines
from zephon.io.formats.line_rows import LineRows, Place


def lines(*texts):
    """Make the rows of a block of lines, the first of which is row 10 of its shard."""
    joined = b"".join(text + b"\n" for text in texts)
    stops = np.cumsum([len(text) + 1 for text in texts]) - 1
    starts = stops - [len(text) for text in texts]
    blocks = LineBlocks(np.array([0]), np.array([10]), np.array([10]), b"{")
    found = RowLines(starts, stops, np.arange(len(texts)), len(texts))
    return LineRows(joined, found, Place("d", "s", blocks, 0))


def test_rows_at_once_are_rows_one_by_one():
    rows = lines(b'{"a": 1}', b'{"a": NaN, "a": 2}', b'"text"', b"[1]")
    assert rows.rows(np.array([3, 1, 1, 2])) == [[1], {"a": 2}, {"a": 2}, "text"]
    some, places = rows.some(np.array([2, 0, 2]))
    assert some.rows(places) == ["text", {"a": 1}, "text"]
    first, second = rows.rows(np.array([3, 3]))
    assert first is not second
    assert rows.rows(np.array([], np.int64)) == []


def test_a_bad_line_among_others_is_named():
    rows = lines(b'{"a": 1}', b'{"a"}')
    assert rows.rows(np.array([0])) == [{"a": 1}]
    with pytest.raises(DataError, match=r"dataset 'd', shard 's', row 11 \(line 12, byte 9\)"):
        rows.rows(np.array([0, 1]))
    some, places = rows.some(np.array([1]))
    with pytest.raises(DataError, match=r"dataset 'd', shard 's', row 11 \(line 12, byte 9\)"):
        some.rows(places)
