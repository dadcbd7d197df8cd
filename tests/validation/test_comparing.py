"""Equal values compare equal whatever they are made of, and a changed object is noticed."""

from collections import deque

import numpy as np
import pytest
import torch

from zephon.types import SampleMeta, SampleRecord
from zephon.validation.comparing import difference, is_plain, picture, same_value


class Opaque:
    def __init__(self, **held):
        self.__dict__.update(held)


def record(payload, **tags):
    return SampleRecord(SampleMeta(sample_id=(0, 0, 0), lane_id=0, chunk_id=0, tags=tags), payload)


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: {"a": [1, (2, "x")], "b": None},
        lambda: np.array([1.0, np.nan]),
        lambda: np.array([{"a": 1}, None], dtype=object),
        lambda: torch.tensor([1.0, float("nan")]),
        lambda: torch.tensor([1.0], dtype=torch.bfloat16),
        lambda: Opaque(rows=[1, 2]),
        lambda: object(),
    ],
)
def test_values_made_alike_are_the_same(make):
    assert same_value(make(), make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        ([1], (1,)),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        (np.array([1]), np.array([1.0])),
        (np.array([1]), np.array([1, 2])),
        (torch.tensor([1]), torch.tensor([2])),
        (Opaque(rows=[1]), Opaque(rows=[2])),
    ],
)
def test_values_that_differ_are_not_the_same(one, other):
    assert not same_value(one, other)


def test_a_difference_is_named():
    assert difference([record(1)], [record(1)]) is None
    assert difference([record(1)], []) == "1 records, then 0"
    assert difference([record(1)], [record(2)]) == "record 0 holds 1, then 2"
    other = difference([record(1)], [record(1, mark=np.arange(3))])
    assert other is not None
    assert other.startswith("record 0 is SampleMeta(")


def test_tags_that_are_arrays_can_be_compared():
    assert difference([record(1, mark=np.arange(3))], [record(1, mark=np.arange(3))]) is None


@pytest.mark.parametrize(
    ("held", "change"),
    [
        ([1], lambda held: held.append(2)),
        ({"a": {"b": 1}}, lambda held: held["a"].update(b=2)),
        ({1, 2}, lambda held: held.add(3)),
        (deque([1]), lambda held: held.appendleft(0)),
        (bytearray(b"a"), lambda held: held.append(98)),
        (np.zeros(2), lambda held: held.fill(1)),
    ],
)
def test_a_picture_shows_what_was_changed_in_place(held, change):
    before = picture([held])
    assert picture([held]) == before
    change(held)
    assert picture([held]) != before


def test_small_values_are_plain_and_others_are_not():
    assert is_plain({"a": [1, "x", np.zeros(3)]})
    assert is_plain(Opaque(rows={1, 2}))
    assert not is_plain(list(range(10_001)))
    assert not is_plain(object())
    assert is_plain(torch.zeros(3))
    assert not is_plain(torch.nn.Linear(200, 200))
    assert not is_plain(np)
