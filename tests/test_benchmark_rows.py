"""The benchmarks of filters and functions on rows: what they check, and that they weigh nothing."""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import filter as filters
from benchmarks import functions
from benchmarks.peers.row_functions import function
from benchmarks.row_runs import RowReading, check, show
from benchmarks.timing import start


def test_the_parents_import_no_library() -> None:
    program = (
        "import sys, benchmarks.filter, benchmarks.functions; "
        "print(*(m for m in sys.modules if m in {'numpy', 'polars', 'zephon'}))"
    )
    assert start((sys.executable, "-c", program))[0].split() == []


def test_functions_of_jobs() -> None:
    below = function({"call": "below", "column": "k", "limit": 3})
    assert [below({"k": number}) for number in (2, 3)] == [{"k": 2}, None]
    assert function({"call": "mark"})({"k": 1}) == {"k": 1, "marked": True}
    assert function({"call": "busy"})({"k": 1}) == {"k": 1}


def test_contenders_must_hand_out_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = RowReading(10, 45, 0.5, 0.1), RowReading(10, 45, 1.5, 0.1)
    readings = {"fast": [fast, fast], "slow": [slow]}
    check(readings)
    show("title", readings)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "title"
    assert "10 rows, 20 a second" in lines[1]
    assert lines[2].endswith("3.0 times the first line")
    with pytest.raises(ValueError, match="rows and their sums must be the same"):
        check({**readings, "wrong": [RowReading(9, 44, 0.1, 0.1)]})


def test_what_is_decoded_is_counted(tmp_path, capfd, monkeypatch) -> None:
    (tmp_path / "text-parquet").mkdir()
    table = pa.table({"text": [f"{number} " + "tree " * 200 for number in range(4_000)]})
    pq.write_table(table, tmp_path / "text-parquet" / "a.parquet")
    monkeypatch.setattr(filters, "LEAST_BYTES", 1)  # the corpus once
    filters.build(tmp_path)
    filters.count(tmp_path / filters.FOLDER)
    found = capfd.readouterr()
    assert found.out == "40\n"
    assert "together: ReadCounts(read=1, skipped=19, emptied=0" in found.err
    monkeypatch.setattr(filters, "MOST_DECODED", 0.01)
    with pytest.raises(ValueError, match="of the bytes were decoded, at most 1% may be"):
        filters.count(tmp_path / filters.FOLDER)


def test_short_rows_are_numbered(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(functions, "ROWS", 40)
    functions.build(tmp_path)
    found = pq.read_table(tmp_path / functions.FOLDER).column("k").to_pylist()
    assert found == list(range(40))
