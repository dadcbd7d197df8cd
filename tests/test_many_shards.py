"""The benchmark of directories of many shards: it opens them in each way and shows what it took."""

from __future__ import annotations

from pathlib import Path

from benchmarks.many_shards import Opening, line, small_files


def test_each_way_is_opened_in_a_process_of_its_own(tmp_path: Path) -> None:
    found = small_files(tmp_path, count=3, rounds=1)
    assert [readings[0].by for readings in found] == ["the files", "index.json", "_catalog.arrow"]
    assert {(readings[0].shards, readings[0].rows) for readings in found} == {(3, 60)}
    assert all(readings[0].imports < readings[0].all for readings in found)


def test_a_line_shows_medians_and_the_range_of_the_whole() -> None:
    readings = [
        Opening(
            imports=0.2, open=0.1, pointer=0.0, all=whole, memory_mb=20.0, rows=60, shards=3, by="x"
        )
        for whole in (0.5, 0.3, 0.4)
    ]
    assert "3 shards, 6e+01 rows, by x" in line(readings)
    assert "0.40 [0.30 to 0.50] s" in line(readings)
