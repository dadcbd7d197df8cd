"""Files as people write them: mixed types, broken lines, byte marks, empty shards, odd JSON."""

import json
import logging
import os
import re

import numpy as np
import pyarrow as pa
import pytest

from tests.written import dataset, in_order, lines, parquet, pipeline, raw, texts_to_tokens
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.errors import DataError, DatasetError, ShardError

BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def encoded(tokenizer_file):
    return texts_to_tokens(tokenizer_file)


@pytest.fixture
def ids(tokenizer_file):
    """Give the tokens of each row's text, without special ones."""

    def read(data, **changes):
        pipe = pipeline(data).tokenize(
            tokenizer_id=tokenizer_file, field="text", special_tokens="none", **changes
        )
        return [record.payload["input_ids"] for record in pipe]

    return read


def rows_of(data):
    return [record.payload for record in pipeline(data)]


def from_lines(folder, text, file="a.jsonl", name="words"):
    raw(folder, file, text)
    return Dataset.from_path(name, folder)


# A column that is null or empty at first, in either order of the files

NULLS_FIRST = [{"text": f"t{i}", "note": None, "m": []} for i in range(150)]
VALUES_LATE = [{"text": "late", "note": "there", "m": [{"role": "u"}]}]


@pytest.mark.parametrize("late_first", [False, True])
@pytest.mark.parametrize("end", ["jsonl", "jsonl.zst"])
def test_the_first_rows_fix_no_type(tmp_path, ids, encoded, late_first, end):
    one, two = (VALUES_LATE, NULLS_FIRST) if late_first else (NULLS_FIRST, VALUES_LATE)
    lines(tmp_path, f"a.{end}", one)
    lines(tmp_path, f"b.{end}", two)
    data = Dataset.from_path("words", tmp_path)
    assert rows_of(data) == [*one, *two]
    assert ids(data) == [encoded(row["text"]) for row in (*one, *two)]


@pytest.mark.parametrize("late_first", [False, True])
def test_a_text_that_is_null_in_a_whole_file_fixes_no_type(tmp_path, tokenizer_file, late_first):
    nulls = pa.table({"text": pa.nulls(3), "id": [0, 1, 2]})
    texts = pa.table({"text": ["late"], "id": [3]})
    files = ("b.parquet", "a.parquet") if late_first else ("a.parquet", "b.parquet")
    for file, table in zip(files, (nulls, texts), strict=True):
        parquet(tmp_path, file, table)
    data = Dataset.from_path("words", tmp_path)
    pipe = pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text")
    found = []
    with pytest.raises(DataError, match=rf"shard '{files[0]}', row 0.*'text'.*null"):
        for record in pipe:
            found.append(record.meta.sample_id[2])
    assert found == ([0] if late_first else [])
    assert [row["text"] for row in rows_of(data)].count("late") == 1


# Values of several types in one field

MIXED = [
    {"content": "hi", "arguments": {"time": "2025-08-01"}},
    {"content": [{"type": "text", "text": "hi"}], "arguments": {"time": 1690876800}},
    {"content": True, "arguments": {"time": 3.0}},
    {"content": None, "arguments": {}},
]


def test_every_row_keeps_the_json_value_that_it_was_written_with(tmp_path):
    found = rows_of(from_lines(tmp_path, "\n".join(map(json.dumps, MIXED)).encode()))
    assert found == MIXED
    assert [type(row["content"]) for row in found] == [str, list, bool, type(None)]
    assert [type(row["arguments"].get("time")) for row in found] == [str, int, float, type(None)]


def test_kept_payload_keeps_the_json_value_too(tmp_path, tokenizer_file):
    texts = [{"text": f"row {i}", **row} for i, row in enumerate(MIXED)]
    pipe = pipeline(from_lines(tmp_path, "\n".join(map(json.dumps, texts)).encode())).tokenize(
        tokenizer_id=tokenizer_file, field="text", preserve_upstream_payload=True
    )
    for record, row in zip(pipe, texts, strict=True):
        kept = {k: v for k, v in record.payload.items() if k in row}
        assert kept == row


@pytest.mark.parametrize(("row", "kind"), [(1, "a list"), (2, "a boolean"), (3, "null")])
def test_a_value_that_is_no_text_is_refused_with_its_place_and_never_made_text(
    tmp_path, tokenizer_file, row, kind
):
    data = from_lines(tmp_path, "\n".join(map(json.dumps, [MIXED[0], MIXED[row]])).encode())
    pipe = pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="content")
    message = rf"shard 'a.jsonl', row 1 \(line 2, .*'content' must be text, got {kind}"
    with pytest.raises(DataError, match=message):
        list(pipe)


def test_absent_keys_stay_absent_and_nulls_stay_null(tmp_path):
    tools = [
        {"tools": {"parameters": {"a": {"type": "int"}}}},
        {"tools": {"parameters": {"b": {"type": "str"}}}},
        {"tools": {"parameters": {"a": None}}},
    ]
    assert rows_of(from_lines(tmp_path, "\n".join(map(json.dumps, tools)).encode())) == tools


def test_text_that_looks_like_a_date_or_a_number_stays_text(tmp_path, ids, encoded):
    texts = ["2024-01-01T00:00:00Z", "hello", "null", "NA", "1e5", "true", "0x10", "NaN"]
    data = from_lines(tmp_path, "\n".join(json.dumps({"text": t}) for t in texts).encode())
    assert [row["text"] for row in rows_of(data)] == texts
    assert ids(data) == [encoded(text) for text in texts]


def test_every_arrow_string_type_is_one_text_column(tmp_path, ids, encoded):
    values = pa.array(["ash", "größe"], pa.string())
    tables = [
        pa.table({"text": values}),
        pa.table({"text": values.dictionary_encode()}),
        pa.table({"text": values.cast(pa.large_string())}),
        pa.table({"id": [1, 2], "text": values}),
        pa.table({"text": values.cast(pa.string_view())}),
    ]
    for number, table in enumerate(tables):
        parquet(tmp_path, f"{number}.parquet", table)
    data = Dataset.from_path("words", tmp_path)
    assert ids(data) == [encoded("ash"), encoded("größe")] * 5


# A broken line


def test_a_broken_line_is_named_and_the_rows_before_it_are_delivered(tmp_path, tokenizer_file):
    text = b'{"text":"a"}\n{"text":"b\n{"text":"c"}\n{"text":"d"}\n'
    data = from_lines(tmp_path, text)
    assert data.total() == 4
    items = iter(pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text"))
    assert next(items).meta.sample_id == (0, 0, 0)
    message = re.escape(
        "dataset 'words', shard 'a.jsonl', row 1 (line 2, byte 13): a line must be one JSON object"
    )
    with pytest.raises(DataError, match=message) as caught:
        next(items)
    assert 'the line begins \'{"text":"b\'' in str(caught.value)


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_a_broken_line_far_inside_a_big_file_has_its_own_number(tmp_path, runner):
    good = b'{"input_ids":[7]}\n'
    data = from_lines(tmp_path, good * 200_000 + b'{"input_ids":[7}\n' + good * 50_000)
    pipe = pipeline(data).pack_flat(100, algorithm="wrap").batch(50).options(runner=runner)
    batches = 0
    message = rf"row 200000 \(line 200001, byte {200_000 * len(good)}\)"
    with pytest.raises(DataError, match=message):
        for _ in pipe:
            batches += 1
    assert batches == 200_000 // 100 // 50
    (part,) = pipe.accounting().values()
    assert part["tokens_delivered"] == 200_000


def test_one_broken_row_in_a_mixture_of_three_names_its_own_dataset(tmp_path, tokenizer_file):
    found = []
    for name in ("prose", "code", "maths"):
        texts = [{"text": f"{name} {i}"} for i in range(40)]
        if name == "code":
            texts[33] = {"text": None}
        lines(tmp_path / name, "part-0.jsonl", texts)
        found.append(Dataset.from_path(name, tmp_path / name))
    pipe = (
        Pipeline(in_order(*found))
        .tokenize(tokenizer_id=tokenizer_file, field="text", parallelism=4)
        .pack_flat(16, algorithm="wrap")
        .batch(2)
        .options(runner="threads")
    )
    with pytest.raises(DataError) as caught:
        list(pipe)
    said = str(caught.value)
    place = "dataset 'code', shard 'part-0.jsonl', row 33 (line 34, byte "
    for part in (place, "'text'", "null", """'{"text": null}'""", "mend or remove the line"):
        assert part in said
    assert "\n" not in said


def test_two_datasets_over_one_folder_are_named_each_by_its_own_name(tmp_path):
    """They share decoded blocks, and no names."""
    broken = [b'{"text":"a"}' if i != 13 else b'{"text":' for i in range(40)]
    lines(tmp_path, "a.jsonl", broken)
    found = [Dataset.from_path(name, tmp_path) for name in ("one", "two")]
    said = set()
    for seed in range(8):
        work = in_order(*found, shuffle_within_shard=True, seed=seed)
        refs = work.lane_stream(0, 1).draw(0, 80)
        first = ("one", "two")[refs.component[int((refs.row == 13).argmax())]]
        with pytest.raises(DataError, match=f"dataset '{first}', shard 'a.jsonl', row 13 "):
            for record in Pipeline(work).options(runner="inline"):
                assert record.payload == {"text": "a"}
        said.add(first)
    assert said == {"one", "two"}


# Unicode


def test_half_a_surrogate_pair_is_an_error_of_its_row_and_a_whole_one_a_character(
    tmp_path, ids, encoded
):
    whole = b'{"text":"\\ud83d\\ude00"}\n'
    assert ids(from_lines(tmp_path / "whole", whole)) == [encoded("\U0001f600")]
    data = from_lines(tmp_path / "half", whole + b'{"text":"a\\ud800"}\n')
    message = r"row 1 \(line 2, .*'text' must be valid UTF-8, got .*ud800.* at character 1"
    with pytest.raises(DataError, match=message):
        ids(data)


def test_bytes_that_are_not_utf8_are_an_error_of_their_row(tmp_path, ids):
    data = from_lines(tmp_path, b'{"text":"ok"}\n{"text":"caf\xe9"}\n')
    with pytest.raises(DataError, match=r"row 1 \(line 2, byte 14\): .*UTF-8"):
        ids(data)


def test_a_control_character_in_text_is_kept(tmp_path, ids, encoded):
    data = from_lines(tmp_path, b'{"text":"a\\u0000b"}\n{"text":"\\u0000"}\n')
    assert ids(data) == [encoded("a\x00b"), encoded("\x00")]


# Byte order marks, line ends, blank lines


def test_a_byte_order_mark_is_dropped_in_every_file(tmp_path, ids, encoded):
    raw(tmp_path, "a.jsonl", BOM + b'{"text":"one"}\n{"text":"two"}\n')
    raw(tmp_path, "b.jsonl", BOM + b'{"text":"three"}\r\n{"text":"four"}\r\n')
    raw(tmp_path, "c.jsonl.gz", BOM + b'{"text":"five"}')
    data = Dataset.from_path("words", tmp_path)
    words = ["one", "two", "three", "four", "five"]
    assert [row["text"] for row in rows_of(data)] == words
    assert ids(data) == [encoded(word) for word in words]


def test_a_byte_order_mark_moves_no_resume(tmp_path, tokenizer_file):
    for file in "abc":
        text = b"".join(b'{"text":"%s%d"}\n' % (file.encode(), i) for i in range(4))
        raw(tmp_path, f"{file}.jsonl", BOM + text)

    def make():
        return pipeline(Dataset.from_path("words", tmp_path)).tokenize(
            tokenizer_id=tokenizer_file, field="text"
        )

    whole = [record.payload["input_ids"] for record in make()]
    assert len(whole) == 12
    for stop in range(13):
        pipe = make()
        items = iter(pipe)
        head = [next(items).payload["input_ids"] for _ in range(stop)]
        state = pipe.checkpoint()
        items.close()
        rest = [record.payload["input_ids"] for record in make().restore(state)]
        assert head + rest == whole


def test_an_error_behind_a_byte_order_mark_has_its_place_in_the_file(tmp_path, ids):
    text = BOM + b'{"text":"one"}\r\n\r\n{"text":2}\r\n'
    place = len(BOM) + len(b'{"text":"one"}\r\n\r\n')
    with pytest.raises(DataError, match=rf"row 1 \(line 3, byte {place}\)"):
        ids(from_lines(tmp_path, text))


@pytest.mark.parametrize("end", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_blank_lines_are_no_rows_whatever_ends_a_line(tmp_path, ids, encoded, end):
    text = b'{"text":"one"}\r\n\r\n  \n\t\r\n{"text":"two"}'
    data = from_lines(tmp_path, text, f"a{end}")
    assert data.total() == 2
    assert ids(data) == [encoded("one"), encoded("two")]
    assert [record.meta.sample_id[2] for record in pipeline(data)] == [0, 1]


def test_a_file_of_one_line_without_an_end_is_one_row(tmp_path, ids, encoded):
    assert ids(from_lines(tmp_path, b'{"text":"one"}')) == [encoded("one")]


# Shards without rows


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "blank lines", "in_memory"])
@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_shards_without_rows_are_passed_over_and_counted(tmp_path, kind, lanes):
    two = [{"input_ids": [1, 2]}, {"input_ids": [3, 4]}]
    if kind == "parquet":
        empty = pa.table({"input_ids": pa.array([], pa.list_(pa.int64()))})
        parquet(tmp_path, "a.parquet", empty)
        parquet(tmp_path, "b.parquet", two)
        parquet(tmp_path, "c.parquet", empty)
        data = Dataset.from_path("words", tmp_path)
    elif kind == "in_memory":
        from zephon import InMemoryShard

        shards = {0: InMemoryShard([]), 1: InMemoryShard(two), 2: InMemoryShard([])}
        data = Dataset.from_dict("words", shards)
    else:
        raw(tmp_path, "a.jsonl", b"\n  \n" if kind == "blank lines" else b"")
        lines(tmp_path, "b.jsonl", two)
        raw(tmp_path, "c.jsonl", b"")
        data = Dataset.from_path("words", tmp_path)
    assert data.counts().tolist() == [0, 2, 0]
    pipe = pipeline(data, stop_after_passes=2).options(canonical_replicas=lanes)
    found = sorted(record.payload["input_ids"][0] for record in pipe)
    assert found == [1, 1, 3, 3]


def test_a_dataset_of_empty_shards_alone_is_refused_at_once(tmp_path):
    for name, passes in (("one", 1), ("many", 10**6)):
        raw(tmp_path / name, "a.jsonl", b"")
        raw(tmp_path / name, "b.jsonl", b"\n\n")
        data = Dataset.from_path(name, tmp_path / name)
        with pytest.raises(DatasetError, match=f"dataset '{name}' must have rows.*none in 2 shar"):
            StaticMixtureWorkSource([data], {name: 1}, stop_after_passes=passes)


def test_a_file_of_no_bytes_is_no_parquet_file(tmp_path):
    parquet(tmp_path, "a.parquet", [{"text": "x"}])
    raw(tmp_path, "b.parquet", b"")
    with pytest.raises(ShardError, match=r"dataset 'words', shard 'b.parquet': .* not a Parquet f"):
        Dataset.from_path("words", tmp_path)


def test_a_parquet_file_that_was_cut_off_is_named(tmp_path):
    parquet(tmp_path, "a.parquet", [{"text": "x" * 1000}] * 20)
    whole = (tmp_path / "a.parquet").read_bytes()
    for length in (3, 4, 100, len(whole) - 1):
        (tmp_path / "a.parquet").write_bytes(whole[:length])
        with pytest.raises(ShardError, match=r"shard 'a.parquet': .*damaged or cut off"):
            Dataset.from_path("words", tmp_path)


def test_a_file_that_goes_away_while_the_run_goes_on_is_named(tmp_path):
    for file in "ab":
        lines(tmp_path, f"{file}.jsonl", [{"input_ids": [1]}] * 10)
    pipe = pipeline(Dataset.from_path("words", tmp_path)).batch(5)
    os.unlink(tmp_path / "b.jsonl")
    found = 0
    with pytest.raises(ShardError, match=r"dataset 'words', shard 'b.jsonl': .*cannot be read"):
        for batch in pipe:
            found += len(batch)
    assert found == 10


# Odd JSON


def test_the_last_of_equal_keys_wins_in_every_way_of_reading(tmp_path, tokenizer_file, encoded):
    data = from_lines(tmp_path, b'{"text":"a","text":"z"}\n{"text":"q","id":1,"id":2}\n')
    assert rows_of(data) == [{"text": "z"}, {"text": "q", "id": 2}]
    pipe = pipeline(data).tokenize(
        tokenizer_id=tokenizer_file,
        field="text",
        special_tokens="none",
        preserve_upstream_payload=True,
    )
    assert [r.payload["input_ids"] for r in pipe] == [encoded("z"), encoded("q")]
    assert [r.payload["text"] for r in pipe] == ["z", "q"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"text":"a"} zzz\n', r"Extra data: character 13\); the line begins .*mend or remove"),
        (b'[{"text":"a"},{"text":"b"}]\n', "this looks like a JSON array, not JSON lines"),
        (b'[\n{"text":"a"},\n{"text":"b"}\n]\n', "this looks like a JSON array, not JSON lines"),
        (b'{\n  "text": "a"\n}\n', "this looks like indented JSON, not JSON lines"),
        (b'"str"\n', "a row must be an object with fields, got text"),
        (b"null\n", "a row must be an object with fields, got null"),
        (b"17\n", "a row must be an object with fields, got a number"),
        (b'{"text":"a"}{"text":"b"}\n', r"Extra data: character 12"),
    ],
)
def test_what_is_no_json_line_says_what_it_looks_like(tmp_path, ids, text, message):
    with pytest.raises(DataError, match=rf"row 0 \(line 1, byte 0\): .*{message}"):
        ids(from_lines(tmp_path, text))


def test_numbers_that_json_does_not_know_are_python_s(tmp_path, ids, encoded):
    text = b'{"x":NaN,"text":"a"}\n{"x":-Infinity,"text":"b"}\n'
    data = from_lines(tmp_path, text)
    found = rows_of(data)
    assert np.isnan(found[0]["x"])
    assert found[1]["x"] == -np.inf
    assert ids(data) == [encoded("a"), encoded("b")]


# Empty text and text that looks like nothing


def test_empty_text_gives_no_token_and_odd_text_its_own(tmp_path, ids, encoded, tokenizer_file):
    texts = ["", "null", "   ", "\u0000", "None", "nan", ""]
    data = from_lines(tmp_path, "\n".join(json.dumps({"text": t}) for t in texts).encode())
    assert ids(data) == [encoded(text) for text in texts]
    assert ids(data)[0] == []
    bracketed = pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text")
    assert next(iter(bracketed)).payload["input_ids"] == [1, 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [(b'{"text":null}', "'text' must be text, got null"), (b'{"body":"x"}', "no field 'text'")],
)
def test_null_and_missing_text_are_located_errors(tmp_path, ids, line, message):
    data = from_lines(tmp_path, b'{"text":"a"}\n' + line + b"\n")
    with pytest.raises(
        DataError, match=rf"shard 'a.jsonl', row 1 \(line 2, byte 13\): .*{message}"
    ):
        ids(data)


# Special tokens inside text


def test_special_tokens_in_text_are_matched_and_warned_of_once(tmp_path, ids, encoded, caplog):
    texts = ["how to use <eos> in prompts", "none here", "<bos><eos> twice"]
    data = from_lines(tmp_path, "\n".join(json.dumps({"text": t}) for t in texts).encode())
    with caplog.at_level(logging.WARNING):
        found = ids(data)
    assert found == [encoded(text) for text in texts]
    assert found[0].count(2) == 1
    assert found[2][:2] == [1, 2]


def test_special_tokens_may_be_read_as_plain_characters(tmp_path, ids):
    data = from_lines(tmp_path, b'{"text":"how to use <eos> in prompts"}\n')
    (found,) = ids(data, split_special_tokens=True)
    assert not {0, 1, 2} & set(found)


def test_special_tokens_in_text_move_no_boundary(tmp_path, tokenizer_file):
    texts = ["a <eos> b <bos> c", "<eos>", "plain", "<eos><eos>"]
    data = from_lines(tmp_path, "\n".join(json.dumps({"text": t}) for t in texts).encode())
    for split in (False, True):
        pipe = pipeline(data).tokenize(
            tokenizer_id=tokenizer_file, field="text", split_special_tokens=split
        )
        sizes = [len(record.payload["input_ids"]) for record in pipe]
        packed = next(iter(pipe.pack_flat(sum(sizes), algorithm="wrap")))
        starts = np.flatnonzero(np.array(packed.payload["positions"]) == 0)
        assert np.diff([*starts, sum(sizes)]).tolist() == sizes


# Which files are read


def test_only_data_files_are_read_and_each_once(tmp_path, ids):
    dataset("jsonl", tmp_path, [{"text": "x"}] * 4)
    for name in ("README.md", "000.jsonl.tmp", "_SUCCESS", ".000.jsonl.crc", "notes.txt"):
        (tmp_path / name).write_text('{"text": "never"}\n')
    (tmp_path / "sub").mkdir()
    lines(tmp_path / "sub", "deep.jsonl", [{"text": "never"}])
    data = Dataset.from_path("words", tmp_path)
    assert data.total() == 4
    assert len(data.passed_over) == 6
    assert len(ids(data)) == 4
