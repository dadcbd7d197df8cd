import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.fields import TOKENS, Column
from zephon.io.formats.json_lists import doubtful_lists, parse_lists

INT32 = st.integers(-(2**31), 2**31 - 1)
IDS = Column("ids", "tokens")
STYLES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", ":")])


@given(st.lists(st.tuples(st.lists(INT32, max_size=6), STYLES)))
def test_lists_are_what_json_says(drawn):
    texts = [json.dumps(values, separators=style).encode() for values, style in drawn]
    column = parse_lists(texts, IDS)
    assert column.type == TOKENS
    assert column.to_pylist() == [values for values, _ in drawn]
    assert doubtful_lists(texts, IDS) == []


@pytest.mark.parametrize(
    "odd",
    [b"null", b"", b"[1.0]", b"[true]", b'["1"]', b"[[1]]", b"{}", b'{"a":[1]}', b"7", b'"[1]"',
     b"[1e3]", b"[2147483648]", b"[-2147483649]", b"[99999999999999999999999999]", b"[null]",
     b"[[],[]]", b"[[]]"],
)  # fmt: skip
def test_anything_else_is_in_doubt(odd):
    assert parse_lists([odd], IDS) is None
    assert parse_lists([b"[1]", odd, b"[2]"], IDS) is None
    assert doubtful_lists([b"[1]", odd, None, b"[ ]"], IDS) == [1, 2]


def test_white_space_inside():
    assert parse_lists([b"[ 1 , 2 ]", b"[\t]", b"[\r3]"], IDS).to_pylist() == [[1, 2], [], [3]]


@given(st.lists(st.lists(st.floats(), max_size=6)))
def test_floats_are_what_json_says(drawn):
    finite = [[each for each in row if math.isfinite(each)] for row in drawn]
    texts = [json.dumps(row).encode() for row in finite]
    column = parse_lists(texts, Column("n", "float64"))
    assert repr(column.to_pylist()) == repr(finite)
    assert doubtful_lists(texts, Column("n", "float64")) == []


@pytest.mark.parametrize(
    ("kind", "good", "odd"),
    [
        ("int64", b"[9223372036854775807]", b"[9223372036854775808]"),
        ("float64", b"[1, 2.5e3, -0.0]", b"[true]"),
        ("float32", b"[0.5]", b"[0.1]"),
        ("bool", b"[ true,false]", b"[1]"),
        ("bool", b"[]", b"[true, 0]"),
        ("bool", b"[true]", b'["true"]'),
    ],
)
def test_what_another_kind_cannot_hold_is_in_doubt(kind, good, odd):
    column = Column("n", kind)
    assert parse_lists([good], column).to_pylist() == [
        [int(each) if kind == "bool" else each for each in json.loads(good)]
    ]
    assert parse_lists([good, odd], column) is None
    assert doubtful_lists([good, odd, good], column) == [1]
