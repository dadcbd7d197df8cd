"""What values come from and leave as, and what would not survive the way."""

import numpy as np
import pytest
import torch

from zephon.errors import PlanError
from zephon.tensors import (
    as_container,
    changed_by,
    common_type,
    joined,
    misfit,
    numbers,
    target_of,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2], [1, 2]),
        ((True, False), [True, False]),
        (3, 3),
        (np.float32(0.5), 0.5),
        (torch.tensor([1, 2]), [1, 2]),
        (torch.tensor([1.5], dtype=torch.bfloat16), [1.5]),
        (torch.tensor([1.0], requires_grad=True), [1.0]),
        ([], []),
    ],
)
def test_numbers_reads_every_container(value, expected):
    array = numbers(value)
    assert array is not None
    assert array.tolist() == expected


def test_an_empty_list_does_not_make_its_neighbours_floats():
    assert numbers([]).dtype == np.int64
    assert numbers(np.zeros(0, np.float32)).dtype == np.float32


@pytest.mark.parametrize("value", ["1", b"1", None, [1, None], [[1], [2, 3]], {"a": 1}, 2**70])
def test_numbers_refuses_what_is_none(value):
    assert numbers(value) is None


@pytest.mark.parametrize(
    ("values", "dtype", "found"),
    [
        (np.array([0, 255]), np.uint8, None),
        (np.array([0, 256]), np.uint8, 256),
        (np.array([-1, 2]), torch.uint8, -1),
        (np.array([2**24, 2**24 + 1]), np.float32, 2**24 + 1),
        (np.array([256, 257]), torch.bfloat16, 257),
        (np.array([256, 257], np.int16), torch.bfloat16, 257),
        (np.array([1.0, 2.5]), np.int64, 2.5),
        (np.array([1.0, np.inf]), np.int64, np.inf),
        (np.array([0.1]), np.float16, None),
        (np.array([], np.float64), np.int64, None),
        (np.array([True]), np.int64, None),
        (np.array([2**63], np.uint64), None, 2**63),
        (np.array([2**31], np.float32), np.int32, 2**31),
        (np.array([2.0**63]), torch.int64, 2.0**63),
        (np.array([2.0**63]), np.uint64, None),
        (np.array([2.0**64]), np.uint64, 2.0**64),
        (np.array([-np.inf], np.float16), np.int64, -np.inf),
        (np.array([-128.0, -129.0], np.float16), np.int8, -129.0),
        (np.array([2**53, 2**53 + 1]), np.float64, 2**53 + 1),
        (np.array([65504.0, 7e4]), np.float16, 7e4),
        (np.array([1e39]), np.float32, 1e39),
        (np.array([3.4e38], np.float32), torch.bfloat16, np.float32(3.4e38)),
        (np.array([np.inf, 1.0]), np.float32, None),
    ],
)
def test_misfit_finds_what_a_cast_would_change(values, dtype, found):
    assert misfit(values, target_of(dtype)) == found


def test_a_value_that_is_no_number_does_not_fit_whole_numbers():
    assert np.isnan(misfit(np.array([np.nan]), target_of("auto")))


@pytest.mark.parametrize("dtype", [torch.quint8, torch.complex64, "O", "M8"])
def test_a_type_that_holds_no_plain_numbers_is_no_target(dtype):
    with pytest.raises(PlanError, match="dtype must be 'auto', a torch or NumPy type of numbers"):
        target_of(dtype)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2**63], [1, 2**63]),
        ([[2**63 + 1, 0]], [[2**63 + 1, 0]]),
        ([-1, 2**63], None),
        ([2**53 + 1, 0.5], None),
        ([2**53, 0.5], [2**53, 0.5]),
        ([1e300, 5, float("inf")], [1e300, 5, float("inf")]),
    ],
)
def test_large_numbers_of_a_list_stay_what_they_are(value, expected):
    array = numbers(value)
    assert (None if array is None else array.tolist()) == expected


def test_one_type_holds_the_values_of_several_arrays_or_says_which_it_changes():
    signed, unsigned = np.array([-1, 2]), np.array([3, 2**63], np.uint64)
    assert common_type([signed, unsigned]) == np.int64
    assert changed_by(unsigned, np.dtype(np.int64)) == 2**63
    assert changed_by(unsigned[:1], np.dtype(np.int64)) is None
    large, fraction = np.array([2**53 + 1]), np.array([0.5])
    assert common_type([large, fraction]) == np.float64
    assert changed_by(large, np.dtype(np.float64)) == 2**53 + 1
    assert common_type([np.zeros(0, np.int64), np.ones(1, bool)]) == np.bool_


@pytest.mark.parametrize(("container", "make"), [("np", np.array), ("pt", torch.tensor)])
def test_arrays_that_one_type_does_not_hold_are_not_joined(container, make):
    kept = joined([make([2**20, 3]), make([0.5])], container)
    assert kept.tolist() == [2**20, 3, 0.5]
    with pytest.raises(
        ValueError, match=r"9007199254740993, which .*float\d\d cannot hold exactly"
    ):
        joined([make([2**53 + 1]), make([0.5])], container)


def test_signed_and_unsigned_arrays_are_joined_as_whole_numbers():
    made = joined([np.array([-1]), np.array([7], np.uint64)], "np")
    assert (made.dtype, made.tolist()) == (np.int64, [-1, 7])
    assert joined([np.array(["a"]), np.array(["bcd"])], "np").tolist() == ["a", "bcd"]


def test_containers_hold_copies():
    values = np.array([1, 2])
    made = {kind: as_container(values, kind) for kind in ("list", "tuple", "np", "pt")}
    values[:] = 0
    assert made["list"] == [1, 2]
    assert made["tuple"] == (1, 2)
    assert made["np"].tolist() == [1, 2]
    assert made["pt"].tolist() == [1, 2]
    with pytest.raises(PlanError, match="container must be list, tuple, np or pt, got 'set'"):
        as_container(values, "set")
