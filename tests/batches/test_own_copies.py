"""Copies that share nothing that can be changed, of values of every kind."""

import numpy as np
import pytest

from zephon.batches.own_copies import own_copy

UNCHANGEABLE = [None, True, 3, 0.5, 2j, "a", b"a", np.int8(3), np.float32(1), np.datetime64("2020")]


@pytest.mark.parametrize("value", [*UNCHANGEABLE, np.str_("a"), np.bool_(True)])
def test_what_cannot_be_changed_is_itself(value):
    assert own_copy(value) is value
    for kind in (list, tuple):
        made = own_copy(kind([value]))
        assert type(made) is kind
        assert made[0] is value


def test_a_row_of_what_cannot_be_changed_is_another_dict_in_the_same_order():
    row = {"b": 1, "a": "x", "c": np.int64(2)}
    made = own_copy(row)
    assert made is not row
    assert list(made.items()) == list(row.items())


def test_what_can_be_changed_is_copied_at_any_depth():
    row = {"a": 1, "l": [1, 2], "d": {"x": [3]}, "n": np.arange(3), "t": (1, [2])}
    made = own_copy(row)
    made["l"].append(3)
    made["d"]["x"].append(4)
    made["n"][0] = 9
    made["t"][1].append(5)
    assert row["l"] == [1, 2]
    assert row["d"] == {"x": [3]}
    assert row["n"].tolist() == [0, 1, 2]
    assert row["t"] == (1, [2])


def test_records_of_numpy_and_objects_in_arrays_are_copied():
    pair = np.zeros(1, [("a", int)])[0]
    made = own_copy({"pair": pair, "objects": np.array([[1]], object)})
    made["pair"]["a"] = 5
    assert pair["a"] == 0
    inner: list[int] = []
    boxed = np.empty(1, object)
    boxed[0] = inner
    own_copy({"o": boxed})["o"][0].append(1)
    assert inner == []


def test_subclasses_keep_their_class():
    class Row(dict):
        pass

    made = own_copy({"r": Row(a=[1])})["r"]
    assert type(made) is Row
    assert made == {"a": [1]}


def test_what_cannot_be_copied_is_given_as_it_is():
    with open(__file__) as file:
        assert own_copy({"f": file})["f"] is file
