"""What values come from and leave as, and what would not survive the way."""

import numpy as np
import pytest
import torch

from zephon.errors import PlanError
from zephon.tensors import as_container, misfit, numbers, target_of


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
    ],
)
def test_misfit_finds_what_a_cast_would_change(values, dtype, found):
    assert misfit(values, target_of(dtype)) == found


def test_a_value_that_is_no_number_does_not_fit_whole_numbers():
    assert np.isnan(misfit(np.array([np.nan]), target_of("auto")))


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
