"""Converting numbers finds each one that would be another afterwards, and no other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.exact_numbers import exactly

INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
EDGES = [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**24 + 1]


@given(st.lists(st.one_of(INTEGERS, st.sampled_from(EDGES))))
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_integers(dtype, values):
    kind = np.dtype(dtype)
    made, wrong = exactly(np.array(values, np.int64), kind)
    assert made.dtype == kind

    def fits(value):
        if kind.kind == "i":
            return np.iinfo(kind).min <= value <= np.iinfo(kind).max
        return int(kind.type(value)) == value

    assert wrong.tolist() == [at for at, value in enumerate(values) if not fits(value)]
    for at, value in enumerate(values):
        assert at in wrong or int(made[at]) == value


@given(st.lists(st.floats()))
def test_floats(values):
    made, wrong = exactly(np.array(values), np.dtype(np.float32))

    def fits(value):
        with np.errstate(over="ignore"):
            return math.isnan(value) or float(np.float32(value)) == value

    assert wrong.tolist() == [at for at, value in enumerate(values) if not fits(value)]
    good = [at for at in range(len(values)) if at not in wrong]
    assert np.array_equal(made[good].astype(np.float64), np.array(values)[good], equal_nan=True)


def test_unsigned_integers_beyond_int64():
    made, wrong = exactly(np.array([1, 2**63, 2**64 - 1], np.uint64), np.dtype(np.int64))
    assert (made[0], wrong.tolist()) == (1, [1, 2])


def test_values_of_the_type_are_not_copied():
    values = np.array([0.1])
    assert exactly(values, values.dtype)[0] is values
