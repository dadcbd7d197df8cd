import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.fields import TOKENS
from zephon.io.formats.token_lists import doubtful_lists, parse_token_lists

INT32 = st.integers(-(2**31), 2**31 - 1)
STYLES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", ":")])


@given(st.lists(st.tuples(st.lists(INT32, max_size=6), STYLES)))
def test_lists_are_what_json_says(drawn):
    texts = [json.dumps(values, separators=style).encode() for values, style in drawn]
    column = parse_token_lists(texts)
    assert column.type == TOKENS
    assert column.to_pylist() == [values for values, _ in drawn]
    assert doubtful_lists(texts) == []


@pytest.mark.parametrize(
    "odd",
    [b"null", b"", b"[1.0]", b"[true]", b'["1"]', b"[[1]]", b"{}", b'{"a":[1]}', b"7", b'"[1]"',
     b"[1e3]", b"[2147483648]", b"[-2147483649]", b"[99999999999999999999999999]", b"[null]",
     b"[[],[]]", b"[[]]"],
)  # fmt: skip
def test_anything_else_is_in_doubt(odd):
    assert parse_token_lists([odd]) is None
    assert parse_token_lists([b"[1]", odd, b"[2]"]) is None
    assert doubtful_lists([b"[1]", odd, None, b"[ ]"]) == [1, 2]


def test_white_space_inside():
    assert parse_token_lists([b"[ 1 , 2 ]", b"[\t]", b"[\r3]"]).to_pylist() == [[1, 2], [], [3]]
