import math

import numpy as np
import pytest

from zephon.errors import PlanError
from zephon.work.budget import Amount, checked_budgets, samples, tokens


def checked(budget, counted="tokens"):
    return checked_budgets("source", budget, ["a", "b"], counted)


def test_amounts_say_their_unit() -> None:
    assert (tokens(60e9).count, tokens(60e9).unit) == (60e9, "tokens")
    assert repr(samples(5)) == "samples(5)"
    assert tokens(5) != samples(5)


@pytest.mark.parametrize("count", [0, -1, math.inf, math.nan, True, "5", None])
def test_an_amount_is_a_finite_number_above_zero(count) -> None:
    with pytest.raises(PlanError, match="tokens: wanted a finite number above zero, got"):
        tokens(count)


def test_an_amount_has_a_known_unit() -> None:
    with pytest.raises(PlanError, match="unit must be 'samples' or 'tokens', got 'bytes'"):
        Amount(5, "bytes")


def test_bare_numbers_count_samples() -> None:
    assert checked({"a": np.int64(7)}, "samples") == {"a": samples(7)}
    assert checked(None) == {}
    assert checked({"b": tokens(3)}) == {"b": tokens(3)}


def test_a_unit_that_the_mixture_does_not_count_in_is_refused() -> None:
    with pytest.raises(PlanError, match=r"budget\['a'\]=samples\(5\) counts samples, and the mix"):
        checked({"a": 5})
    with pytest.raises(PlanError, match="set mixture_unit='tokens' or give a token_estimation"):
        checked({"a": tokens(5)}, "samples")


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(PlanError, match="budget names 'c', but no dataset has that name"):
        checked({"c": tokens(5)})
    with pytest.raises(PlanError, match="budget must map dataset names to amounts, got 5"):
        checked(5)
