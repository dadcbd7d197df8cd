import datetime
import enum
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import DataError
from zephon.io.column_types import joined_all
from zephon.io.exact_values import checked, checked_column, exact_column
from zephon.io.seen_types import SeenTypes, types_of

NULL, INT, FLOAT, TEXT = pa.null(), pa.int64(), pa.float64(), pa.large_string()
DAY = datetime.datetime(2020, 1, 1)


class Wrapped(Mapping):
    def __init__(self, fields):
        self.fields = fields

    def __getitem__(self, name):
        return self.fields[name]

    def __iter__(self):
        return iter(self.fields)

    def __len__(self):
        return len(self.fields)


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([None, 1, "a", 2, 0.5], {NULL: 0, INT: 1, TEXT: 2, FLOAT: 4}),
        ([True, np.bool_(False)], {pa.bool_(): 0}),
        ([2**63 - 1, -(2**63)], {INT: 0}),
        ([1, 2**63, -(2**63) - 1], {INT: 0, "an integer beyond 64 bits": 1}),
        (
            [np.int8(1), np.float32(1), np.uint64(1)],
            {pa.int8(): 0, pa.float32(): 1, pa.uint64(): 2},
        ),
        ([b"a", bytearray(b"b")], {pa.large_binary(): 0}),
        ([[], [1], None, ["a"]], {pa.large_list(INT): 1, NULL: 2, pa.large_list(TEXT): 3}),
        ([[]], {pa.large_list(NULL): 0}),
        (
            [[[1]], [[0.5]]],
            {pa.large_list(pa.large_list(INT)): 0, pa.large_list(pa.large_list(FLOAT)): 1},
        ),
        ([np.zeros((2, 2), np.int16)], {pa.large_list(pa.large_list(pa.int16())): 0}),
        ([np.array([1, "a"], object)], {pa.large_list(INT): 0, pa.large_list(TEXT): 0}),
        (
            [DAY, DAY.date(), DAY.replace(tzinfo=datetime.UTC)],
            {pa.timestamp("us"): 0, pa.date32(): 1, pa.timestamp("us", "UTC"): 2},
        ),
        ([np.datetime64(1, "ns")], {pa.timestamp("ns"): 0}),
        ([Decimal("1.50"), Decimal("NaN")], {pa.decimal128(3, 2): 0, "the decimal NaN": 1}),
        ([{"b": 1, "a": None}], {pa.struct([("b", INT), ("a", NULL)]): 0}),
        ([{"b": 1}, {"a": "x"}, {"b": 0.5}], {pa.struct([("a", TEXT), ("b", FLOAT)]): 0}),
        ([{"a": 1}, {"a": "x"}], {"an object whose 'a' is int64 and large_string": 0}),
        ([{1: 2}], {"an object with the key 1, which is no text": 0}),
        ([[[object()]]], {"a list that holds a object": 0}),
        (
            [enum.IntEnum("Color", "RED").RED, Wrapped({"a": 1})],
            {INT: 0, pa.struct([("a", INT)]): 1},
        ),
    ],
)
def test_the_types_of_values(values, seen):
    assert types_of(values, objects=True) == seen


def test_objects_that_are_not_looked_into():
    values = [{"a": 1}, [{"a": "x"}], [[{}]]]
    seen = {"an object": 0, "a list that holds an object": 1}
    assert types_of(values, objects=False) == seen


def test_deep_values_end_somewhere():
    value = []
    for _ in range(500):
        value = [value]
    assert types_of([value], objects=True) == {"a list in 32 others": 0}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_rows_are_the_same_in_pieces_of_any_size(size):
    rows = [{"a": 1, "b": "x"}, {"b": "y", "a": 0.5}, "no object", {"c": [1]}, {"a": None, "b": 3}]
    seen = SeenTypes(objects=True)
    for start in range(0, len(rows), size):
        seen.look(rows[start : start + size], start)
    assert seen.fields == {
        "a": {INT: 0, FLOAT: 1, NULL: 4},
        "b": {TEXT: 0, INT: 4},
        "c": {pa.large_list(INT): 3},
    }


def test_names_without_end_are_not_all_kept():
    seen = SeenTypes(objects=True, most=3)
    seen.look([{str(n): n} for n in range(3)], 0)
    assert not seen.too_many
    seen.look([{"4": 1, "0": "x"}], 3)
    assert seen.too_many
    assert list(seen.fields) == ["0", "1", "2"]
    assert seen.fields["0"] == {INT: 0, TEXT: 3}


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=5,
)


@given(st.lists(VALUE, min_size=1, max_size=8))
def test_values_can_be_read_in_the_type_that_joins_theirs(values):
    seen = types_of(values, objects=True)
    dtype = None if any(isinstance(what, str) for what in seen) else joined_all(seen)
    if dtype is None:
        return
    for value in values:
        try:
            made = checked_column([checked(value, dtype)], dtype)
        except DataError as exc:
            assert "double" in str(dtype), exc  # an integer that no float is
            continue
        at_once = exact_column([value], dtype)
        assert at_once is None or repr(at_once.to_pylist()) == repr(made.to_pylist())
        assert same(made.to_pylist()[0], value)


def same(made, value):
    """Compare a value with what it was, where absent fields are null."""
    if isinstance(made, dict):
        return all(same(made[name], value.get(name)) for name in made)
    if isinstance(made, list):
        return len(made) == len(value) and all(map(same, made, value))
    return made == value or (made != made and value != value)
