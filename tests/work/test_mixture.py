import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import PlanError
from zephon.work import MixtureSpec


def test_weights_need_not_add_up_to_one() -> None:
    assert MixtureSpec({"a": 2, "b": 3}).normalized == {"a": 0.4, "b": 0.6}
    assert MixtureSpec({"a": 0.001, "b": 0.999}).normalized == {"a": 0.001, "b": 0.999}


def test_zero_means_never_read() -> None:
    assert MixtureSpec({"a": 0, "b": 1}).normalized == {"a": 0.0, "b": 1.0}


@pytest.mark.parametrize(
    "weight", [-1, -1e-9, math.nan, math.inf, -math.inf, 10**400, "1", None, True, 1j]
)
def test_refuses_what_is_no_weight(weight: object) -> None:
    with pytest.raises(PlanError, match="MixtureSpec weight for component 'b' must be positive"):
        MixtureSpec({"a": 1, "b": weight})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("weights", [{}, [], None, ["a"], "a"])
def test_refuses_no_weights(weights: object) -> None:
    with pytest.raises(PlanError, match="must be a non-empty mapping from dataset name to weight"):
        MixtureSpec(weights)  # pyright: ignore[reportArgumentType]


def test_refuses_all_zero_and_names_that_are_no_names() -> None:
    with pytest.raises(PlanError, match="at least one weight must be positive, got zero for 'a'"):
        MixtureSpec({"a": 0, "b": 0.0})
    with pytest.raises(PlanError, match="component names must be strings, got 1"):
        MixtureSpec({1: 1.0})  # pyright: ignore[reportArgumentType]


def test_numpy_weights_are_numbers() -> None:
    weights = {"a": np.float32(1), "b": np.int64(3)}
    assert MixtureSpec(weights).normalized == {"a": 0.25, "b": 0.75}


def test_names_must_match_exactly() -> None:
    spec = MixtureSpec({"prose": 1, "code": 1})
    spec.validate_for(["code", "prose"])
    with pytest.raises(PlanError, match="'prose', but no dataset has that name; did you mean"):
        spec.validate_for(["prosa", "code"])
    with pytest.raises(PlanError, match="got none for 'chat'"):
        spec.validate_for(["prose", "code", "chat"])


def test_normalized_for_keeps_the_order_of_the_names() -> None:
    spec = MixtureSpec({"a": 1, "b": 3})
    assert list(spec.normalized_for(["b", "a"]).items()) == [("b", 0.75), ("a", 0.25)]


def test_is_a_value() -> None:
    given_weights = {"a": 1.0, "b": 3.0}
    spec = MixtureSpec(given_weights)
    given_weights["a"] = 7.0
    assert spec.weights == {"a": 1.0, "b": 3.0}
    assert spec == MixtureSpec({"b": 3, "a": 1})
    assert hash(spec) == hash(MixtureSpec({"b": 3, "a": 1}))
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    with pytest.raises(TypeError):
        spec.weights["a"] = 2.0  # pyright: ignore[reportIndexIssue]


@given(st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=20).filter(any))
def test_shares_add_up_to_one(weights: list[float]) -> None:
    spec = MixtureSpec({str(number): weight for number, weight in enumerate(weights)})
    assert math.fsum(spec.normalized.values()) == pytest.approx(1.0)
