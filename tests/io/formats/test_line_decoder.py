import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import DataError
from zephon.io.fields import TEXT, TOKENS, Column
from zephon.io.formats.line_blocks import row_lines
from zephon.io.formats.line_decoder import LineDecoder, load_line
from zephon.io.values import value_of

TEXT_COLUMN, TOKEN_COLUMN = Column("text", "text"), Column("ids", "tokens")
DOTTED = Column("meta.text", "text", missing="empty")


def decoded(text, *columns):
    lines = row_lines(text)
    arrays, problems = LineDecoder(columns).decode(text, lines)
    assert all(len(array) == len(lines.starts) for array in arrays)
    assert all(array.null_count == 0 for array in arrays)
    assert [array.type for array in arrays] == [column.type for column in columns]
    return [array.to_pylist() for array in arrays], problems


def of_one(text, column):
    (values,), (problems,) = decoded(text, column)
    return values, problems


def expected(line, column):
    """A value of one line by Python's json, or None where it must be a fault."""
    try:
        row = json.loads(line.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
        value = value_of(row, column)
        return value if isinstance(value, str) else value.tolist()
    except (ValueError, RecursionError):
        return None


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just("a\ud800"),
        st.lists(st.integers(0, 9)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip
ROW = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.one_of(st.text(), JSON),
            "ids": st.one_of(st.lists(st.integers(-5, 2**31)), JSON),
            "meta": st.one_of(st.fixed_dictionaries({"text": st.text()}), JSON),
            "meta.text": JSON,
            "x": JSON,
        },
    ),
    JSON,
)
DUMPED = st.tuples(ROW, st.booleans(), st.booleans()).map(
    lambda drawn: json.dumps(
        drawn[0], ensure_ascii=drawn[1], separators=(",", ":") if drawn[2] else None
    ).encode("utf-8", "surrogatepass")
)
ODD = st.sampled_from(
    [b'{"text":"a"} zzz', b'{"text":"a"}{"text":"b"}', b'{"text":"b', b'{"text":"a","text":"z"}',
     b'{"text":5,"text":"z"}', b'{"text":"a","text":5}', b"{", b'"text": "a"', b"}", b"[", b"]",
     b'{"x":"\xff","text":"t"}', b'{"text":"t\xff"}', b'\xef\xbb\xbf{"text":"bom"}',
     b'{"x":NaN,"text":"n","ids":[1]}', b'{"x":"\\ud800","text":"s","ids":[2, 3]}',
     b'{"te\\u0078t":"escaped"}', b'{"ids":[1],"ids":null,"text":""}', b'{"text":"a"} ',
     b' {"text":"a","ids":[]}', b'{"ids":[1.0],"text":"f"}', b'{"text":"a"},', b"\xff", b"nul",
     b'{"x":"q}', b'{y","text":"t"}', b'{"x":{}', b'{"text":"x"}}', b'{"text":"\\u0000"}']
)  # fmt: skip


@given(
    st.lists(st.one_of(DUMPED, ODD).map(lambda line: line.replace(b"\n", b" ")), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \t\n", b"\n\x0b\n"]),
    st.booleans(),
)
def test_a_line_gives_what_json_gives_whatever_lies_beside_it(lines, end, last):
    lines = [line for line in lines if line.strip()]
    text = end.join(lines) + (end if last else b"")
    columns = (TEXT_COLUMN, TOKEN_COLUMN, DOTTED)
    values, problems = decoded(text, *columns)
    for column, found, bad in zip(columns, values, problems, strict=True):
        for row, line in enumerate(lines):
            want = expected(line, column)
            assert (row in bad) == (want is None), (line, bad.get(row))
            assert found[row] == (want or ([] if column.kind == "tokens" else ""))


@given(JSON)
def test_a_whole_line_is_what_json_says(value):
    line = json.dumps(value).encode()
    assert repr(load_line(line)) == repr(json.loads(line))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":NaN}', {"a": float("nan")}),
        (b'{"a":-Infinity,"b":1e400}', {"a": float("-inf"), "b": float("inf")}),
        (b'{"a":"\\ud800"}', {"a": "\ud800"}),
        (b"\xef\xbb\xbf[1]", [1]),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"null", None),
    ],
)
def test_whole_lines_that_the_fast_decoder_refuses(line, value):
    assert repr(load_line(line)) == repr(value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a":"\xff"}', "a line must be UTF-8, got the byte 0xff"),
        (b'{"a":1} x', r"is not \(Extra data: character 8\)"),
        (b'{"a":"x', r"is not \(Unterminated string starting at: character 5\)"),
        (b"[" * 200_000, "beyond limits"),
        (b'{"a":' + b"1" * 5000 + b"x}", "one JSON object"),
    ],
)
def test_whole_lines_that_are_not_json(line, message):
    with pytest.raises(DataError, match=message):
        load_line(line)


def test_one_bad_line_leaves_the_others_alone():
    text = b'{"text":"a"}\n{"text":"b\n{"text":"c"}\n{"text":null}\n{}\n{"text":"null"}\n'
    values, problems = of_one(text, TEXT_COLUMN)
    assert [values[row] for row in (0, 2, 5)] == ["a", "c", "null"]
    assert sorted(problems) == [1, 3, 4]
    assert "Unterminated string" in problems[1]
    assert problems[3].startswith("field 'text' must be text, got null, which null_text=")
    assert problems[4].startswith("no field 'text'; the row has no fields; name one of these")


def test_values_over_two_lines_never_shift_the_rows():
    # msgspec would read two values from the first line and one from the next two.
    text = b'{"text":"a"}{"text":"b"}\n{"text":\n"c"}\n'
    _, problems = of_one(text, TEXT_COLUMN)
    assert sorted(problems) == [0, 1, 2]


def test_a_broken_byte_in_another_field_is_no_matter():
    values, problems = of_one(b'{"x":"\xff","text":"t"}\n{"text":"\xff"}\n', TEXT_COLUMN)
    assert values[0] == "t"
    assert "must be valid UTF-8" in problems[1]
    assert sorted(problems) == [1]


def test_a_surrogate_pair_is_one_character():
    values, problems = of_one(b'{"text":"\\ud83d\\ude00"}', TEXT_COLUMN)
    assert (values, problems) == (["😀"], {})


def test_good_tokens_beside_bad_ones():
    text = b'{"ids":[1,2]}\n{"ids":[3000000000]}\n{"x":NaN,"ids":[5]}\n{"ids":[]}\n{"ids":[true]}\n'
    values, problems = of_one(text, TOKEN_COLUMN)
    assert [values[row] for row in (0, 2, 3)] == [[1, 2], [5], []]
    assert sorted(problems) == [1, 4]
    assert problems[1].endswith("got 3000000000")


def test_missing_tokens_may_be_empty():
    column = Column("ids", "tokens", missing="empty")
    values, problems = of_one(b'{"x":1}\n{"ids":[4]}\n{"ids":null}\n', column)
    assert values[:2] == [[], [4]]
    assert sorted(problems) == [2]


def test_one_key_read_as_two_kinds():
    columns = (Column("a", "text", missing="empty"), Column("a.b", "tokens", missing="empty"))
    values, problems = decoded(b'{"a":"x"}\n{"a":{"b":[1]}}\n{}\n', *columns)
    assert [sorted(bad) for bad in problems] == [[1], [0]]  # never both
    assert (values[0][2], values[1][2]) == ("", [])


def test_a_dotted_path_of_tokens():
    values, problems = of_one(b'{"a":{"b":[1,2]}}\n{"a.b":[3]}', Column("a.b", "tokens"))
    assert (values, problems) == ([[1, 2], [3]], {})


@pytest.mark.parametrize("key", ["größe", "a b", "", "型", "class", "f0", "_x"])
def test_keys_of_any_name(key):
    line = json.dumps({key: "v"}).encode() + b"\n"
    values, problems = of_one(line, Column(key, "text"))
    assert (values, problems) == (["v"], {})


@pytest.mark.parametrize("key", ['a"b', "a\\b", "a\nb"])
def test_keys_that_json_must_escape(key):
    line = json.dumps({key: "v"}).encode() + b"\n"
    values, problems = of_one(line, Column(key, "text"))
    assert (values, problems) == (["v"], {})


def test_no_lines():
    assert decoded(b"", TEXT_COLUMN) == ([[]], [{}])
    assert decoded(b"\n \n", TEXT_COLUMN, TOKEN_COLUMN) == ([[], []], [{}, {}])


def test_types_are_the_large_ones():
    assert (TEXT_COLUMN.type, TOKEN_COLUMN.type) == (TEXT, TOKENS)
    assert TOKENS.value_type == pa.int32()


@pytest.mark.parametrize("depth", [200, 900, 960, 980, 1000, 5000, 200_000])
def test_how_deep_a_line_may_nest_does_not_depend_on_who_reads_it(depth):
    """Some 980 levels, by default; far more than that end no process."""
    line = b'{"text":"a","x":' + b"[" * depth + b"]" * depth + b"}"

    def outcome(below):
        if below:
            return outcome(below - 1)
        try:
            whole = load_line(line)["text"]
        except DataError as exc:
            whole = str(exc)
        return whole, of_one(line, TEXT_COLUMN)

    assert outcome(0) == outcome(300)
    if depth <= 900:
        assert outcome(0) == ("a", (["a"], {}))
    if depth >= 1000:
        assert "beyond limits" in outcome(0)[0]


def test_a_byte_order_mark_counts_for_nothing_at_the_front_of_a_line():
    mark = b"\xef\xbb\xbf"
    text = mark + b'{"text":"a"}\n' + mark + mark + b'{"text":"b"}\n' + mark + b"\n" + mark + b" \r"
    assert of_one(text, TEXT_COLUMN) == (["a", "b"], {})
    assert load_line(mark + mark + b"[1]") == [1]
    assert of_one(b'{"text":"\xef\xbb\xbfa"}', TEXT_COLUMN) == (["\ufeffa"], {})
