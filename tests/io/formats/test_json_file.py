import gzip
import json

import pytest

from tests.written import pipeline
from zephon.build_index import build_index
from zephon.errors import DataError, DatasetError, ShardError
from zephon.io import Dataset
from zephon.io.fields import Column
from zephon.io.formats import block_format

ROWS = [
    {"text": 'a "quoted" \\ word, [x] {y}', "n": 1, "in": [{"a": [1, [2]]}]},
    {"text": "größe\n😀", "n": None},
    {},
    {"text": "", "n": 0.5},
]


def opened(folder, text, name="a.json"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Dataset.from_path("d", folder, fmt="json")


def rows_of(dataset):
    return [record.payload for record in pipeline(dataset)]


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_laid_out_in_any_way(tmp_path, monkeypatch, indent, block):
    monkeypatch.setattr(block_format, "BLOCK_BYTES", block)
    assert rows_of(opened(tmp_path, "\ufeff" + json.dumps(ROWS, indent=indent) + "\n")) == ROWS
    assert rows_of(opened(tmp_path, json.dumps(ROWS, indent=indent, ensure_ascii=False))) == ROWS


def test_one_object_and_objects_one_after_another(tmp_path):
    assert rows_of(opened(tmp_path, json.dumps(ROWS[0], indent=1))) == ROWS[:1]
    assert rows_of(opened(tmp_path, "\n".join(map(json.dumps, ROWS)))) == ROWS
    assert rows_of(opened(tmp_path, "".join(map(json.dumps, ROWS)))) == ROWS


def test_values_are_those_of_python(tmp_path):
    text = '[{"a": 1, "a": 2, "b": NaN}, [1, [2]], 7, "x"]'
    found = rows_of(opened(tmp_path, text))
    assert str(found) == str(json.loads(text))
    assert opened(tmp_path, " [ ] ").total() == opened(tmp_path, "").total() == 0


def test_a_bad_element_is_one_bad_row(tmp_path, read):
    dataset = opened(tmp_path, '[{"text": "a"}, {"text": nul}, {"text": "c"}]')
    rows = read(dataset, Column("text", "text"))
    assert rows.values([0, 2]) == ["a", "c"]
    with pytest.raises(
        DataError, match=r"row 1 \(line 1, byte 16\): .*must be one JSON.* begins '{.text"
    ):
        rows.values([1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"a": 2', "value at byte 11 opens a bracket that nothing closes"),
        ('[{"a": 1}, ', "array is never closed: it is cut off"),
        ('[{"a": "1}]', "text at byte 7 opens a quote that nothing closes"),
        ('[{"a": 1}] {"a": 2}', "more at byte 11, behind the end of its array"),
        ('{"a": 1}]', "bracket at byte 8 closes nothing"),
    ],
)
def test_what_is_cut_off_is_refused(tmp_path, text, message):
    with pytest.raises(ShardError, match=f"shard 'a.json'.*{message}"):
        opened(tmp_path, text)


def test_json_is_read_only_where_it_is_named(tmp_path):
    opened(tmp_path, "[]")
    with pytest.raises(DatasetError, match=r"'a.json' .JSON; fmt='json' reads it, or fmt='jsonl'"):
        Dataset.from_path("d", tmp_path)


def test_compressed_files_and_an_index(tmp_path):
    text = json.dumps(ROWS * 3)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text.encode()))
    assert rows_of(opened(tmp_path, text)) == ROWS * 6
    build_index("json", tmp_path, progress=False)
    indexed = Dataset.from_path("d", tmp_path)
    assert (indexed.kind, indexed.shards.listed_by.file) == ("json", "index.json")
    assert {field.name: str(field.type) for field in indexed.fields()}["n"] == "double"
    assert rows_of(indexed) == ROWS * 6


def test_files_named_as_json_lines_are_read_where_there_are_no_others(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS, indent=1))
    assert rows_of(Dataset.from_path("d", tmp_path, fmt="json")) == ROWS
    (tmp_path / "b.json").write_text("[]")
    beside = Dataset.from_path("d", tmp_path, fmt="json")
    assert beside.shards.names.to_pylist() == ["b.json"]
    assert beside.passed_over == ("a.jsonl: jsonl; only json is read",)
    assert Dataset.from_path("d", tmp_path).kind == "jsonl"


def test_json_lines_in_compressed_json_files(tmp_path):
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode()))
    assert rows_of(Dataset.from_path("d", tmp_path, fmt="jsonl")) == ROWS
