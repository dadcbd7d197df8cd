"""Values as bytes: equal only where every bit is."""

import math
import struct
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
import torch

from zephon.verification.row_bytes import bytes_of


@dataclass
class Point:
    x: int
    y: float = 0.0


class Silent:
    def __init__(self, value):
        self.value = value


def other_nan():
    return struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


DIFFERENT = [
    None, False, 0, 0.0, -0.0, np.int64(0), np.int32(0), np.float64(0), "", b"", [], (), {}, set(),
    True, 1, 1.0, "1", b"1", [1], (1,), [True], [1.0], [1, 2], [[1], [2]], [[1, 2]], ["a", "b"],
    ["ab"], ["a", ["b"]], [1, 1.0], [1.0, 1], [2**70], 2**70, {"a": 1}, {"a": 1.0}, {1: "a"},
    {"a": 1, "b": 2}, {"b": 2, "a": 1}, math.nan, other_nan(), [math.nan], [other_nan()], [None],
    math.inf, {1, 2}, np.array([1]), np.array([1], np.int32), np.array([[1]]), np.array(1),
    np.array([1.0]), np.array([-0.0]), np.array([0.0]), np.array(["a"]), np.array(["a"], object),
    np.array([None]), torch.tensor([1]), torch.tensor([1.0]), torch.tensor([1.0]).bfloat16(),
    torch.tensor([[1]]), torch.tensor(1), torch.tensor(True), date(2020, 1, 1), Decimal("1.0"),
    Decimal("1.00"), Point(1), Point(1, 1.0), Silent(1), Silent(2), "\ud800", np.datetime64("2020"),
    np.array([(1, 2)], [("a", "i4"), ("b", "i4")]), np.array([(1, 2)], [("a", "i4"), ("c", "i4")]),
]  # fmt: skip


def test_values_that_differ_in_any_bit_type_or_shape_have_other_bytes():
    written = [bytes_of(value) for value in DIFFERENT]
    same = [
        (DIFFERENT[i], DIFFERENT[j])
        for i in range(len(written))
        for j in range(i)
        if written[i] == written[j]
    ]
    assert not same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([math.nan], [math.nan]),
        ({2, 1, 3}, {3, 2, 1}),
        (np.arange(6).reshape(2, 3).T, np.arange(6).reshape(2, 3).T.copy()),
        (np.arange(9)[::2], np.arange(9)[::2].copy()),
        (torch.arange(6).reshape(2, 3).T, torch.arange(6).reshape(2, 3).T.contiguous()),
        (Silent([1, "a"]), Silent([1, "a"])),
        (Point(3), Point(3)),
        (memoryview(b"ab"), bytearray(b"ab")),
    ],
)
def test_values_that_are_the_same_have_the_same_bytes(one, other):
    assert bytes_of(one) == bytes_of(other)


def test_what_stands_beside_a_value_does_not_run_into_it():
    assert bytes_of(["a", "bc"]) != bytes_of(["ab", "c"])
    assert bytes_of({"a": "b"}) != bytes_of({"ab": ""})
