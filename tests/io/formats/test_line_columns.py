"""Columns of any type out of JSON lines; text and lists are tested with the decoder."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import DataError
from zephon.io.fields import Column
from zephon.io.formats.line_blocks import row_lines
from zephon.io.formats.line_decoder import LineDecoder
from zephon.io.values import value_of

TEXT = pa.large_string()
INTS = pa.large_list(pa.int64())


def of_type(path, dtype):
    return Column(path, "any", values=dtype)


def decoded(text, *columns):
    arrays, problems = LineDecoder(columns).decode(text, row_lines(text))
    assert [array.type for array in arrays] == [column.type for column in columns]
    return [array.to_pylist() for array in arrays], problems


def of_one(text, column):
    (values,), (problems,) = decoded(text, column)
    return values, problems


def test_null_and_absent_are_null():
    text = b'{"n":1,"t":"a"}\n{"n":null}\n{}\n{"t":"2024-01-01T00:00:00Z"}\n'
    values, problems = decoded(text, of_type("n", pa.int32()), of_type("t", TEXT))
    assert values == [[1, None, None, None], ["a", None, None, "2024-01-01T00:00:00Z"]]
    assert not any(problems)


def test_what_the_typed_decoder_refuses_is_read_all_the_same():
    text = b'{"n":NaN}\n{"n":null,"x":NaN}\n{"n":1,"x":"\\ud800"}\n{"n":0.5,"n":2}\n'
    values, problems = decoded(text, of_type("n", pa.float64()))
    assert repr(values[0]) == "[nan, None, 1.0, 2.0]"
    assert not any(problems)


@pytest.mark.parametrize(
    ("dtype", "line", "message"),
    [
        (pa.int64(), b'{"n":"5"}', "field 'n' must be a value of type int64, got text '5'"),
        (pa.int64(), b'{"n":true}', "must be a value of type int64, got the boolean True"),
        (pa.int64(), b'{"n":3.0}', "got 3.0"),
        (pa.int8(), b'{"n":300}', "got 300"),
        (pa.float64(), b'{"n":9007199254740993}', "got 9007199254740993"),
        (TEXT, b'{"n":5}', "got 5"),
        (TEXT, b'{"n":["a"]}', "got a list"),
        (TEXT, b'{"n":"\\ud800"}', "which is no UTF-8"),
        (INTS, b'{"n":[1,"a"]}', "got text 'a'"),
        (pa.bool_(), b'{"n":1}', "got 1"),
        (pa.struct([("a", TEXT)]), b'{"n":{"a":"x","b":1}}', "got an object with 'b'"),
        (pa.int64(), b'{"n":1', "a line must be one JSON object"),
        (pa.int64(), b'"n"', "a row must be an object with fields, got text"),
    ],
)
def test_nothing_becomes_what_it_is_not(dtype, line, message):
    values, problems = of_one(b"{}\n" + line + b"\n{}", of_type("n", dtype))
    assert values == [None, None, None]
    assert list(problems) == [1]
    assert message in problems[1]


def test_inside_objects():
    text = b'{"m":{"n":1}}\n{"m":null}\n{"m":{}}\n{"m.n":4,"m":{"n":1}}\n{"m":"x"}\n'
    values, problems = of_one(text, of_type("m.n", pa.int64()))
    assert values == [1, None, None, 4, None]
    assert problems == {4: "field 'm.n': an object was wanted around 'n', got text"}


def test_one_field_as_text_and_as_a_value():
    text = b'{"t":"a"}\n{"t":null}\n{"t":"\\ud83d"}\n{"t":"b","x":NaN}\n'
    columns = Column("t", "text"), of_type("t", TEXT)
    (texts, values), (no_texts, no_values) = decoded(text, *columns)
    assert (texts, values) == (["a", "", "", "b"], ["a", None, None, "b"])
    assert (sorted(no_texts), sorted(no_values)) == ([1, 2], [2])
    assert "must be text, got null" in no_texts[1]


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["n", "m"]), VALUE), min_size=1, max_size=6),
    st.sampled_from([pa.int64(), pa.float32(), TEXT, INTS, pa.struct([("a", pa.int8())])]),
)
def test_a_row_gives_what_it_gives_alone(rows, dtype):
    columns = of_type("n", dtype), of_type("n", TEXT), of_type("m.a", dtype)
    text = b"\n".join(json.dumps(row).encode() for row in rows)
    arrays, problems = LineDecoder(columns).decode(text, row_lines(text))
    for column, found, bad in zip(columns, arrays, problems, strict=True):
        for place, row in enumerate(rows):
            try:
                value = value_of(json.loads(json.dumps(row)), column)
            except DataError:
                assert place in bad
                value = None
            else:
                assert place not in bad
            together = found.slice(place, 1).to_pylist()
            alone = pa.array([value], column.type).to_pylist()
            assert repr(together) == repr(alone)  # NaN is not itself
