import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import CheckpointError, PlanError
from zephon.work.chunks.source_state import from_json, to_json


def there_and_back(value):
    return from_json(json.loads(json.dumps(to_json(value, "state"), allow_nan=False)))


ATOMS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS, inner)
        | st.sets(st.integers())
        | st.frozensets(st.text())
    ),
    max_leaves=20,
)


def kinds(value):
    """A value with the kinds of its containers spelt out: a list is no tuple, True is no 1."""
    if isinstance(value, dict):
        return ("dict", [(kinds(k), kinds(v)) for k, v in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [kinds(v) for v in value])
    return (type(value).__name__, value)


@given(VALUES)
def test_plain_values_come_back_as_they_were(value):
    assert kinds(there_and_back(value)) == kinds(value)


def test_the_states_of_generators_come_back():
    python = random.Random(3)
    state = there_and_back({"rng": python.getstate()})
    expected = [python.random() for _ in range(5)]
    python.setstate(state["rng"])
    assert [python.random() for _ in range(5)] == expected
    for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox):
        bits = kind(7)
        saved = there_and_back(bits.state)
        expected = np.random.Generator(bits).random(5).tolist()
        bits.state = saved
        assert np.random.Generator(bits).random(5).tolist() == expected


@pytest.mark.parametrize(
    "array",
    [np.arange(6).reshape(2, 3), np.array([], np.float32), np.array([True, False]), np.eye(2)[::2]],
    ids=str,
)
def test_arrays_of_numbers_come_back_and_share_nothing(array):
    found = there_and_back([array])[0]
    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())
    found.fill(0)


def test_numbers_of_numpy_become_pythons_and_what_is_no_number_stays():
    found = there_and_back({"i": np.int8(3), "f": np.float32(0.5), "b": np.bool_(True)})
    assert kinds(found) == kinds({"i": 3, "f": 0.5, "b": True})
    nan, inf = there_and_back((float("nan"), float("-inf")))
    assert nan != nan and inf == float("-inf")


def test_keys_that_look_like_ours_are_only_keys():
    for value in ({"$int": "5"}, {"$tuple": [1]}, {"$": {"$set": []}}, {"a": {"$x": 1, "b": 2}}):
        assert there_and_back(value) == value


def test_the_result_shares_nothing_with_the_source():
    value = {"seen": [1, {"deep": [2]}]}
    saved = to_json(value, "state")
    value["seen"][1]["deep"].append(3)
    assert from_json(saved) == {"seen": [1, {"deep": [2]}]}


@pytest.mark.parametrize(
    ("value", "place", "kind"),
    [
        ({"a": [1, object()]}, r"state\['a'\]\[1\]", "object"),
        ({"file": {"handle": open}}, r"state\['file'\]\['handle'\]", "builtin_function_or_method"),
        ({1j: 1}, "a key of state", "complex"),
        ((0, {3: np.array(["x"])}), r"state\[1\]\[3\]", "ndarray"),
    ],
)
def test_what_no_checkpoint_can_hold_is_refused_with_its_place(value, place, kind):
    with pytest.raises(PlanError, match=rf"{place} must be made of .* got a {kind}"):
        to_json(value, "state")


@pytest.mark.parametrize(
    "saved", [{"$int": "x"}, {"$what": 1}, {"$array": ["<i8", [3], "AAAA"]}, {"$dict": [1]}]
)
def test_what_was_never_written_is_refused(saved):
    with pytest.raises(CheckpointError, match=r"damaged at '\$"):
        from_json(saved)
