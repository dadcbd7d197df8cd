"""One rule for what a list holds, and words for what is no list of numbers."""

import numpy as np
import pytest

from zephon.io.fields import NUMBERS, Field
from zephon.io.list_kinds import NOTHING, field_kind, look_at
from zephon.io.values import fields_of


class Breaks:
    def __array__(self, *_):
        raise OSError("the disk under this row is gone")

    @property
    def ndim(self):
        raise RuntimeError("nor can this be asked")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a", "text"),
        (3, "a number"),
        (True, "a boolean"),
        (np.float32(1), "a number"),
        ({"a": 1}, "an object"),
        (b"a", "a bytes"),
        ([1, None], "a list that holds null"),
        ([[1]], "a list that holds a list"),
        ([1, "a"], "a list that holds text"),
        ([True, 2, 2.5], "a list that holds a boolean and a number"),
        (np.array([1, None], object), "a list that holds null"),
        (np.zeros((1, 2)), "an array of float64 with 2 axes"),
        (np.array(["a"]), "an array of <U1 with 1 axes"),
        (Breaks(), "a Breaks that cannot be read"),
    ],
)
def test_what_is_no_list_of_numbers_is_said_in_words(value, told):
    found = look_at(value)
    assert (found.kind, found.odd) == (None, told)


def test_null_is_nothing():
    assert look_at(None) == NOTHING


@pytest.mark.parametrize("kind", NUMBERS)
def test_arrays_of_a_type_hold_that_type(kind):
    found = look_at(np.zeros(2, kind))
    assert (found.kind, found.length, found.container, found.odd) == (kind, 2, "np", "")


@pytest.mark.parametrize(
    "value", [[1], (1,), [0.5], [True], [], [None], [1, True], np.zeros(2), np.zeros(0, int), [[1]]]
)
def test_fields_are_named_by_the_same_rule(value):
    assert fields_of([{"x": value}]) == (Field("x", field_kind(look_at(value).kind)),)


@pytest.mark.parametrize("value", [1, 0.5, True, np.int8(3), np.array(3)])
def test_one_number_is_a_scalar(value):
    assert look_at(value).scalar
    assert fields_of([{"x": value}]) == (Field("x", "scalar"),)
