"""Rows reach functions and conversations as they were written, whatever is in them.

Of JSON lines, each value is what ``json.loads`` makes of its line, whatever other lines hold: the
same types, the same order of keys. Of Parquet, objects have null keys that only other rows were
written with; without these, they are what was written.
"""

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.written import dataset, in_order, lines, parquet
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.exec.chat.struct_nulls import padded_components, without_null_keys
from zephon.io.formats.line_decoder import load_line

NUMBERS = [
    *("0", "-0", "-0.0", "0.0", "1", "1.0", "1e0", "1E+2", "-1e-2", "1e400", "-1e400", "1e-400"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "1" * 400),
    *("0.1", "5e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993.0"),
    *("0.30000000000000004", "123456789012345678901234567890.5", "NaN", "Infinity", "-Infinity"),
]
TEXTS = [
    *(
        '""',
        '"null"',
        '"NA"',
        '" "',
        r'"\u0000"',
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\ud83d\ude00"',
    ),
    *(r'"\/"', r'"\"\\\n"', '"größe 木 😀"', '"\u2028\u2029\ufeff"', r'"<|im_end|>"', '"1e5"'),
    *(r'"\uD83D"', r'"a\ud800b"', '"{{ messages }}"', '"[1, 2]"', r'"\u00e9 e\u0301"'),
]
WORDS = st.sampled_from(["true", "false", "null", *NUMBERS, *TEXTS])
KEYS = st.sampled_from(['"a"', '"b"', '""', '"a.b"', r'"\u0061"', r'"\ud800"', '"null"', '"é"'])
SPACE = st.sampled_from(["", "", " ", "\t", "  "])


@st.composite
def values(draw, depth=3):
    """Write a value as JSON, with equal keys and spaces."""
    kind = draw(st.integers(0, 3)) if depth else 0
    if kind < 2:
        return draw(WORDS) if kind == 0 else draw(st.floats().map(json.dumps))
    space = draw(SPACE)
    inner = draw(st.lists(values(depth=depth - 1), max_size=3))
    if kind == 2:
        return f"[{space}{f'{space},'.join(inner)}]"
    pairs = [f"{draw(KEYS)}{space}:{each}" for each in inner]
    return f"{{{space}{f',{space}'.join(pairs)}}}"


@given(values())
def test_a_line_is_what_json_makes_of_it(text):
    line = text.encode()
    assert repr(load_line(line)) == repr(json.loads(line))


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-30, 30))
def test_numbers_are_what_json_makes_of_them(number, real, shift):
    for text in (f"[{number}]", f"[{real!r}]", f"[{number}e{shift}]", f"[{number}.5E{shift}]"):
        assert repr(load_line(text.encode())) == repr(json.loads(text))


def conversation(content, arguments, tools, more=""):
    """Write a row by hand: what ``json.dumps`` makes of an object has no equal keys."""
    call = f'{{"function": {{"name": "f", "arguments": {arguments}}}}}'
    return (
        f'{{"messages": [{{"role": "user", "content": {content}}}, '
        f'{{"role": "assistant", "content": null, "tool_calls": [{call}]{more}}}], '
        f'"tools": {tools}}}'
    )


HOSTILE = [
    conversation('"hi"', '{"time": "2025-08-01"}', "[]"),
    conversation('[{"type": "text", "text": "hi"}]', '{"time": 1690876800}', "null"),
    conversation("[]", '{"time": 1690876800.0}', "{}", ', "loss_weight": 0.5'),
    conversation("null", '{"time": true}', '[{"a": {"type": "int"}}]', ', "loss_weight": 1'),
    conversation("{}", '"{\\"time\\": 1}"', '[{"b": {"type": "str", "enum": []}}]'),
    conversation("3", "[[], [{}], [[]], null]", '"tools"', ', "loss_weight": true'),
    conversation("-0.0", '{"a": 1, "b": 2, "a": 3}', "[null]", ', "content": "twice"'),
    conversation("1e400", '{"": -0, "n": 123456789012345678901234567890}', "[1, 1.0, true]"),
    conversation(r'"\ud800 lone"', r'{"\udfff": "\u0000"}', r'["\ud83d\ude00"]'),
    conversation("NaN", '{"x": [Infinity, -Infinity]}', '[{"a": null}, {}]'),
    conversation('"größe\u2028木"', '{"x": 1e-400}', "[18446744073709551616, -1]"),
]


def as_it_is(row):
    return row


STEPS = {
    "rows": lambda pipe: pipe,
    "function": lambda pipe: pipe.map_transform(as_it_is),
    "normalized": lambda pipe: pipe.normalize_chat(format="messages"),
    "found": lambda pipe: pipe.normalize_chat(format="auto"),
    "expanded": lambda pipe: pipe.expand_chat(),
    "all": lambda pipe: (
        pipe.map_transform(as_it_is)
        .normalize_chat(format="messages", on_block=as_it_is)
        .expand_chat()
        .map_transform(as_it_is)
    ),
}
WRITTEN = [json.loads(line) for line in HOSTILE]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "in_memory"])
@pytest.mark.parametrize("reverse", [False, True], ids=["", "reversed"])
def test_hostile_rows_pass_as_they_were_written(tmp_path, kind, steps, reverse):
    step = -1 if reverse else 1
    rows = (WRITTEN if kind == "in_memory" else HOSTILE)[::step]
    source = in_order(dataset(kind, tmp_path, rows, shards=3))
    pipe = STEPS[steps](Pipeline(source)).options(runner="inline")
    assert [repr(record.payload) for record in pipe] == list(map(repr, WRITTEN[::step]))


@pytest.mark.parametrize("options", [{"runner": "process", "max_workers": 1}, {"mtp_mode": True}])
def test_they_cross_processes_as_they_are(tmp_path, options):
    source = in_order(dataset("jsonl", tmp_path, HOSTILE, shards=3))
    pipe = STEPS["all"](Pipeline(source)).options(**options)
    assert [repr(record.payload) for record in pipe] == list(map(repr, WRITTEN))


def test_objects_of_parquet_are_as_written_without_the_keys_of_others(tmp_path):
    """Also behind functions, and beside rows of JSON lines, whose nulls are written ones."""
    rows = [
        {
            "messages": [
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
                {"role": "tool", "content": "[]", "name": "f"},
            ],
            "tools": [{"name": "f", "parameters": {"a": {"type": "int"}}}],
        },
        {
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}],
            "tools": [{"name": "g", "parameters": {"b": {"enum": ["x", None]}}}],
        },
        {"messages": [{"role": "user", "content": ""}], "tools": []},
    ]
    made = [dataset(kind, tmp_path / kind, rows, name=kind) for kind in ("parquet", "jsonl")]
    source = in_order(*made)
    padded = padded_components(source)
    assert padded.tolist() == [True, False]
    pipe = Pipeline(source).map_transform(as_it_is).normalize_chat(format="messages")
    found = {"parquet": [], "jsonl": []}
    for record in pipe:
        found[made[record.meta.sample_id[0]].name].append(record.payload)
    assert found["jsonl"] == rows
    assert found["parquet"] != rows
    assert [without_null_keys(row) for row in found["parquet"]] == rows
    assert [json.dumps(without_null_keys(row), sort_keys=True) for row in found["parquet"]] == [
        json.dumps(row, sort_keys=True) for row in rows
    ]


TEXT_TYPES = {
    "text": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}


@pytest.mark.parametrize("name", TEXT_TYPES)
def test_texts_of_any_arrow_type_are_texts(tmp_path, name):
    text = TEXT_TYPES[name]
    message = pa.struct({"role": text, "content": text})
    rows = [
        [{"role": "user", "content": "größe\u0000"}, {"role": "assistant", "content": ""}],
        [{"role": "user", "content": None}],
    ]
    if name == "view":  # Arrow cannot write a second list of them
        rows = rows[:1]
    system = pa.array(["a"] * len(rows)).cast(text)
    parquet(
        tmp_path,
        "a.parquet",
        pa.table({"messages": pa.array(rows, pa.list_(message)), "system": system}),
    )
    source = in_order(Dataset.from_path("a", tmp_path))
    for steps in ("rows", "function", "normalized"):
        found = [record.payload for record in STEPS[steps](Pipeline(source))]
        assert [row["messages"] for row in found] == rows
        assert [row["system"] for row in found] == ["a"] * len(rows)
        assert {type(m["role"]) for row in found for m in row["messages"]} == {str}


def test_maps_and_times_within_messages_are_plain_objects(tmp_path):
    """A map gives pairs, which cannot be taken for an object; times are those of datetime."""
    at = datetime.datetime(2025, 8, 1, 12, 30, tzinfo=datetime.UTC)
    message = pa.struct(
        {
            "role": pa.string(),
            "content": pa.string(),
            "arguments": pa.map_(pa.string(), pa.string()),
            "at": pa.timestamp("us", "UTC"),
            "numbers": pa.list_(pa.float32()),
            "ok": pa.bool_(),
        }
    )
    said = [
        {
            "role": "user", "content": "a", "arguments": [("x", "1"), ("y", None)], "at": at,
            "numbers": [0.5, None], "ok": True,
        },
        {
            "role": "assistant", "content": "b", "arguments": [], "at": None, "numbers": [],
            "ok": None,
        },
    ]  # fmt: skip
    table = pa.table({"messages": pa.array([said], pa.list_(message))})
    parquet(tmp_path, "a.parquet", table)
    source = in_order(Dataset.from_path("a", tmp_path))
    (row,) = [r.payload for r in Pipeline(source).normalize_chat(format="messages").expand_chat()]
    assert row == {"messages": said}
    assert type(row["messages"][0]["ok"]) is bool
    assert without_null_keys(row)["messages"] == [
        said[0],
        {"role": "assistant", "content": "b", "arguments": [], "numbers": []},
    ]


def test_rows_in_memory_are_the_users_own_values():
    messages = [{"role": "user", "content": np.array([1, 2]), "at": np.datetime64("2025-08-01")}]
    source = in_order(Dataset.from_dict("a", {0: InMemoryShard([{"messages": messages}])}))
    (row,) = [r.payload for r in Pipeline(source).normalize_chat(format="messages")]
    found = row["messages"][0]
    assert isinstance(found["content"], np.ndarray)
    assert found["content"].tolist() == [1, 2]
    assert found["at"] == np.datetime64("2025-08-01")


def test_lines_beyond_what_json_reads_are_bad_rows(tmp_path):
    lines(tmp_path, "a.jsonl", ['{"messages": [' + "9" * 5000 + "]}"])
    source = in_order(Dataset.from_path("a", tmp_path))
    with pytest.raises(ValueError, match=r"shard 'a.jsonl', row 0 .*beyond limits"):
        list(Pipeline(source).map_transform(as_it_is))
