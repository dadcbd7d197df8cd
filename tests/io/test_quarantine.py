"""Bad rows as they are written down: each once, of every format, whatever lies there already."""

import json
import os

import polars as pl
import pyarrow as pa
import pytest

from tests.written import lines, parquet, raw
from zephon import Dataset, InMemoryShard
from zephon.errors import ExecutionError
from zephon.io.quarantine import Condemned, Quarantine

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def condemned(dataset, *rows, shard=0):
    return [Condemned(dataset, shard, row, f"row {row} is bad", None) for row in rows]


def written(root):
    """Give what is written, by its path below the root."""
    found = root.rglob("*.jsonl")
    return {path.relative_to(root).as_posix(): json.loads(path.read_text()) for path in found}


def lines_of(folder, name="words", file="a.jsonl", texts=('{"text": "b', "5")):
    lines(folder, file, ['{"text": "a"}', *texts])
    return Dataset.from_path(name, folder)


def test_lines_are_written_as_they_stand(tmp_path):
    data = lines_of(tmp_path / "data", texts=['{"text": "b', b'{"text": "\xff"}'])
    Quarantine(tmp_path / "q").write(condemned(data, 1, 2))
    assert written(tmp_path / "q") == {
        "words/a.jsonl.rows/1.jsonl": {
            "dataset": "words",
            "shard": "a.jsonl",
            "row": 1,
            "line": 2,
            "byte": 14,
            "reason": "row 1 is bad",
            "raw": '{"text": "b',
        },
        "words/a.jsonl.rows/2.jsonl": {
            "dataset": "words",
            "shard": "a.jsonl",
            "row": 2,
            "line": 3,
            "byte": 26,
            "reason": "row 2 is bad",
            "raw_base64": "eyJ0ZXh0IjogIv8ifQ==",
        },
    }


def test_rows_of_parquet_and_of_memory_are_written_as_json_and_csv_as_it_stands(tmp_path):
    table = pa.table({"text": pa.array([b"one"] * 5 + [b"\xff"], pa.binary()), "n": range(6)})
    parquet(tmp_path / "p", "a.parquet", table)  # groups of four rows
    raw(tmp_path / "c", "a.csv", b"text,n\none,1\ntwo,2\n")
    data = [
        (Dataset.from_path("p", tmp_path / "p"), 5),
        (Dataset.from_dict("m", {0: InMemoryShard([{"n": 1}, {"n": float("nan")}])}), 1),
        (Dataset.from_path("c", tmp_path / "c"), 1),
    ]
    quarantine = Quarantine(tmp_path / "q")
    for dataset, row in data:
        quarantine.write(condemned(dataset, row))
    found = written(tmp_path / "q")
    assert {path: each["raw"] for path, each in found.items()} == {
        "p/a.parquet.rows/5.jsonl": '{"text": {"base64": "/w=="}, "n": 5}',
        "m/0.rows/1.jsonl": '{"n": "nan"}',
        "c/a.csv.rows/1.jsonl": "two,2\n",
    }
    places = {each["dataset"]: (each.get("line"), each.get("byte")) for each in found.values()}
    assert places == {"p": (None, None), "m": (None, None), "c": (3, 13)}


def test_names_stay_parts_of_a_path_and_apart(tmp_path):
    quarantine, root = Quarantine(tmp_path / "q"), tmp_path / "q"
    names = ["web.jsonl", "web%2Ejsonl", "größe", "a b#[1]"]
    for number, name in enumerate(names):
        quarantine.write(condemned(lines_of(tmp_path / str(number), name), 1))
    long = "x" * 240
    quarantine.write(condemned(lines_of(tmp_path / "long", "long", f"{long}.jsonl"), 1))
    nested = Dataset.from_path("nested", tmp_path, glob="0/*.jsonl")
    quarantine.write(condemned(nested, 1))
    found = written(root)
    assert {each["dataset"] for each in found.values()} == {*names, "long", "nested"}
    assert len({path.split("/")[0] for path in found}) == len(names) + 2
    assert all(path.count("/") == 2 for path in found)
    assert [each["shard"] for each in found.values() if each["dataset"] == "nested"] == [
        "0/a.jsonl"
    ]
    read = pl.scan_ndjson(f"{root}/**/*.jsonl").collect()
    assert sorted(read["dataset"]) == sorted([*names, "long", "nested"])


def test_a_row_is_written_once_by_however_many(tmp_path):
    data = lines_of(tmp_path / "data")
    Quarantine(tmp_path / "q").write(condemned(data, 1))
    path = tmp_path / "q" / "words" / "a.jsonl.rows" / "1.jsonl"
    os.utime(path, (1, 1))
    for _ in range(2):
        Quarantine(tmp_path / "q").write(condemned(data, 1, 2))
    assert path.stat().st_mtime == 1
    assert len(written(tmp_path / "q")) == 2
    assert not list((tmp_path / "q").rglob(".*"))


def test_a_row_of_other_data_has_its_own_file(tmp_path):
    one, other = lines_of(tmp_path / "one"), lines_of(tmp_path / "other", texts=["6", "7"])
    for data in (one, other, one, other):
        Quarantine(tmp_path / "q").write(condemned(data, 1))
    found = written(tmp_path / "q")
    assert sorted(each["raw"] for each in found.values()) == ["6", '{"text": "b']


@pytest.mark.parametrize("left", [b"", b'{"row": 1', b"[]", b"\xff\xfe"])
def test_what_is_no_whole_row_is_written_anew(tmp_path, left):
    path = tmp_path / "q" / "words" / "a.jsonl.rows" / "1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(left)
    Quarantine(tmp_path / "q").write(condemned(lines_of(tmp_path / "data"), 1))
    assert [each["raw"] for each in written(tmp_path / "q").values()] == ['{"text": "b']


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    data = lines_of(tmp_path / "data")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match=r"^options: quarantine='.*file' must be a directory"):
        Quarantine(tmp_path / "file").open()
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "words").write_text("")
    with pytest.raises(ExecutionError, match=r"got .*name another, or pass on_error='skip'"):
        Quarantine(tmp_path / "q").write(condemned(data, 1))


def test_files_are_the_users_alone(tmp_path):
    Quarantine(tmp_path / "q").write(condemned(lines_of(tmp_path / "data"), 1))
    paths = [path for path in (tmp_path / "q").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600]
