from collections import UserDict

import numpy as np
import pytest

from zephon.errors import DataError
from zephon.io.fields import Column, Field
from zephon.io.values import fields_of, value_of

TEXT = Column("text", "text")
IDS = Column("ids", "tokens")


@pytest.mark.parametrize("text", ["", "null", "   ", "\0", "2024-01-01T00:00:00Z", "😀"])
def test_text_stays_as_it_is(text):
    assert value_of({"text": text}, TEXT) == text


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2, 3],
        (1, 2, 3),
        np.array([1, 2, 3], np.uint8),
        np.array([1, 2, 3], np.uint64),
        np.array([1, 2, 3], object),
        [np.int64(1), 2, np.uint16(3)],
    ],
)
def test_tokens_of_any_integer_type(ids):
    found = value_of({"ids": ids}, IDS)
    assert found.dtype == np.int32
    assert found.tolist() == [1, 2, 3]


@pytest.mark.parametrize("ids", [[], (), np.array([]), np.array([], np.int32)])
def test_empty_tokens(ids):
    assert value_of({"ids": ids}, IDS).tolist() == []


def test_the_bounds_of_int32():
    edge = [-(2**31), 2**31 - 1]
    assert value_of({"ids": edge}, IDS).tolist() == edge


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": None}, "field 'text' must be text, got null"),
        ({"text": 3}, "must be text, got a number"),
        ({"text": ["a"]}, "must be text, got a list"),
        ({"text": {"a": 1}}, "must be text, got an object"),
        ({"text": b"a"}, "must be text, got a bytes"),
        ({"text": "a\ud800"}, r"must be valid UTF-8, got '\\ud800' at character 1"),
        ({"txt": "a", "n": 1}, "no field 'text'; the row has txt, n"),
        ({}, "no field 'text'; the row has no fields"),
        ([1], "a row must be an object with fields, got a list"),
        (None, "a row must be an object with fields, got null"),
    ],
)
def test_bad_text_says_what_came(row, message):
    with pytest.raises(DataError, match=message):
        value_of(row, TEXT)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (None, "must be a list of 32-bit integers, got null"),
        ("1 2", "must be a list of 32-bit integers, got text"),
        (7, "got a number"),
        ({"a": 1}, "got an object"),
        ([1, True], "got a list that holds a boolean"),
        ([1, 2.0], "got a list that holds 2.0"),
        ([1, None], "got a list that holds null"),
        ([[1]], "got a list that holds a list"),
        (["1"], "got a list that holds text"),
        ([2**31], "got 2147483648"),
        ([2**70, -1], str(2**70)),
        ([-(2**31) - 1], "got -2147483649"),
        (np.array([1.5]), "got an array of float64 with 1 axes"),
        (np.array([True]), "got an array of bool"),
        (np.array([[1]]), "got an array of int64 with 2 axes"),
        (np.array(3), "with 0 axes"),
        (np.array([2**40]), "got 1099511627776"),
    ],
)
def test_bad_tokens_say_what_came(ids, message):
    with pytest.raises(DataError, match=message):
        value_of({"ids": ids}, IDS)


def test_missing_may_be_empty_but_null_may_not():
    assert value_of({}, Column("text", "text", missing="empty")) == ""
    assert value_of({}, Column("ids", "tokens", missing="empty")).tolist() == []
    with pytest.raises(DataError, match="got null"):
        value_of({"text": None}, Column("text", "text", missing="empty"))


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ({"a": {"b": "in"}}, "in"),
        ({"a.b": "literal"}, "literal"),
        ({"a": {"b": "in"}, "a.b": "literal"}, "literal"),
        ({"a": "x", "a.b": "literal"}, "literal"),
        (UserDict(a=UserDict(b="in")), "in"),
        ({"a": {}}, ""),
        ({}, ""),
    ],
)
def test_dotted_paths(row, value):
    assert value_of(row, Column("a.b", "text", missing="empty")) == value


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": "x"}, "an object was wanted around 'b', got text"),
        ({"a": [{"b": "x"}]}, "an object was wanted around 'b', got a list"),
        ({"a": None}, "field 'a.b' must be text, got null"),
        ({"a": {"b": "in"}, "a.b": None}, "field 'a.b' must be text, got null"),
        ({"a": {"c": 1}}, "no field 'a.b'; the row has a"),
    ],
)
def test_dotted_paths_that_end_wrongly(row, message):
    with pytest.raises(DataError, match=message):
        value_of(row, Column("a.b", "text"))


def test_fields_are_named_by_kind():
    rows = [
        {"text": "a", "ids": [], "x": [1.5], "n": 1, "m": {}, "z": None, "mix": "a"},
        None,
        {"text": None, "ids": [1], "x": np.zeros(2), "n": 2.5, "m": [], "z": None, "mix": [1]},
        {"late": np.zeros(2, np.int8), "flags": [True], "words": ["a"], "two": np.zeros((1, 1))},
    ]
    assert fields_of(rows) == (
        Field("text", "text"),
        Field("ids", "tokens"),
        Field("x", "numbers"),
        Field("n", "scalar"),
        Field("m", "other"),
        Field("z", "unknown"),
        Field("mix", "other"),
        Field("late", "tokens"),
        Field("flags", "numbers"),
        Field("words", "other"),
        Field("two", "other"),
    )


def test_tensors_are_lists_of_their_numbers():
    import torch

    row = {
        "ids": torch.tensor([1, 2]),
        "reward": torch.tensor([0.5]),
        "image": torch.zeros(2, 2),
        "n": torch.tensor(3),
        "grad": torch.ones(2, requires_grad=True),
    }
    assert [(field.name, field.kind) for field in fields_of([row])] == [
        ("ids", "tokens"), ("reward", "numbers"), ("image", "other"), ("n", "scalar"),
        ("grad", "other"),
    ]  # fmt: skip
    assert value_of(row, IDS).tolist() == [1, 2]
    assert value_of(row, Column("reward", "float32")).dtype == np.float32


def test_a_row_must_be_without_some_fields_but_null_is_none():
    column = Column("ids", "tokens", without=("loss_mask", "labels"))
    assert value_of({"ids": [1], "labels": None}, column).tolist() == [1]
    message = r"field 'labels' must be in the first 64 rows .* aligned_fields={'labels': 'int64'}"
    with pytest.raises(DataError, match=message):
        value_of({"ids": [1], "labels": []}, column)
