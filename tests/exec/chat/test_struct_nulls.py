"""Which keys are left out of objects, and of whose rows."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.written import dataset, in_order
from zephon import Pipeline
from zephon.exec.chat.struct_nulls import padded_components, without_null_keys
from zephon.exec.source_facts import SourceFacts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
)


def by_hand(value):
    if isinstance(value, dict):
        return {name: by_hand(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return type(value)(by_hand(item) for item in value)
    return value


def has_null_keys(value):
    if isinstance(value, dict):
        return any(item is None or has_null_keys(item) for item in value.values())
    return isinstance(value, list | tuple) and any(map(has_null_keys, value))


@given(VALUES)
def test_all_null_keys_go_and_nothing_else(value):
    before = repr(value)
    made = without_null_keys(value)
    assert made == by_hand(value)
    assert list(map(repr, [made])) == [repr(by_hand(value))]  # in the same order
    assert repr(value) == before
    assert (made is value) is not has_null_keys(value)


def test_what_is_left_whole_is_shared():
    value = {"a": [1, {"b": 2}], "c": {"d": None}}
    made = without_null_keys(value)
    assert made == {"a": [1, {"b": 2}], "c": {}}
    assert made["a"] is value["a"]


def test_arrays_and_objects_of_the_user_pass():
    numbers = np.array([1, 2])
    value = {"a": numbers, "b": None, "c": float("nan")}
    made = without_null_keys(value)
    assert made["a"] is numbers
    assert made["c"] is value["c"]
    assert list(made) == ["a", "c"]


TOOLS = [
    {"tools": [{"name": "f", "parameters": {"a": {"type": "int"}}}]},
    {"tools": [{"name": "g", "parameters": {"b": {"type": "str", "enum": ["x"]}}}]},
    {"tools": []},
]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_objects_of_a_struct_are_again_as_they_were_written(tmp_path, kind):
    source = in_order(dataset(kind, tmp_path, TOOLS, shards=1))
    rows = [record.payload for record in Pipeline(source)]
    if padded_components(source)[0]:
        rows = [without_null_keys(row) for row in rows]
    assert list(map(json.dumps, rows)) == list(map(json.dumps, TOOLS))
    assert bool(padded_components(source)[0]) is (kind == "parquet")


def test_only_columns_that_hold_objects_pad_them(tmp_path):
    """A text that a function of the user decodes has the nulls that somebody wrote."""
    flat = [{"text": '{"a": null}', "ids": [1], "score": 0.5}]
    made = [
        dataset("parquet", tmp_path / "flat", flat, name="flat"),
        dataset("jsonl", tmp_path / "lines", TOOLS, name="lines"),
        dataset("parquet", tmp_path / "tools", TOOLS, name="tools"),
    ]
    source = in_order(*made)
    assert padded_components(source).tolist() == [False, False, True]
    assert padded_components(SourceFacts.of(source)).tolist() == [False, False, True]
