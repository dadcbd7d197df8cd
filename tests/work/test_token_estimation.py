"""What a token estimation accepts, and what it makes of datasets: given, counted, fallen back."""

import copy
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from zephon import Dataset, InMemoryShard
from zephon.errors import PlanError
from zephon.work.token_estimation import (
    DEFAULT_FALLBACK_TOKENS_PER_BYTE,
    PerShardTokenCost,
    TokenEstimation,
    TokenRatio,
    mean_cost,
    prime_token_ratios,
)


def texts(name, *shards):
    """Make a dataset of rows of so many letters."""
    return Dataset.from_dict(
        name, {i: InMemoryShard([{"t": "x" * n} for n in shard]) for i, shard in enumerate(shards)}
    )


def never(name, shards, rows):
    raise AssertionError(f"{name} was counted")


def prime(estimation, datasets, count=never, seed=0):
    return prime_token_ratios(
        estimation, {each.name: each for each in datasets}, seed=seed, count=count
    )


def test_defaults_are_as_documented():
    made = TokenEstimation()
    assert (made.primer, made.measure) == ("measure", None)
    assert made.calibration_samples == 2048
    assert (made.calibration_shards_min, made.calibration_shards_max) == (4, 16)
    assert made.fallback_tokens_per_byte == DEFAULT_FALLBACK_TOKENS_PER_BYTE == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"primer": "mesure"}, r"primer='mesure' is unknown; did you mean 'measure'\?"),
        ({"primer": None}, r"primer must be 'measure', .* got None"),
        ({"primer": True}, r"primer must be 'measure', .* got True"),
        ({"primer": [0.3]}, r"primer must be 'measure', .* got \[0.3\]"),
        ({"primer": 0.0}, r"primer must be tokens per byte, finite and above 0, got 0.0"),
        ({"primer": -1}, r"primer must be tokens per byte, finite and above 0, got -1"),
        ({"primer": float("nan")}, r"primer must be .* got nan"),
        ({"primer": float("inf")}, r"primer must be .* got inf"),
        ({"primer": {"a": 0}}, r"primer\['a'\] must be .* got 0"),
        ({"primer": {"a": "0.3"}}, r"primer\['a'\] must be .* got '0.3'"),
        ({"primer": {3: 0.3}}, r"primer must name datasets by string, got 3"),
        ({"primer": 10**400}, r"primer must be tokens per byte, finite and above 0, got 10+$"),
        ({"measure": 7}, r"measure must be a function from a row to its number of tokens, got 7"),
        ({"calibration_samples": 0}, r"calibration_samples must be .* at least 1, got 0"),
        ({"calibration_samples": 2.5}, r"calibration_samples must be .* got 2.5"),
        ({"calibration_samples": True}, r"calibration_samples must be .* got True"),
        ({"calibration_shards_min": -4}, r"calibration_shards_min must be .* got -4"),
        ({"calibration_shards_max": None}, r"calibration_shards_max must be .* got None"),
        ({"calibration_shards_min": 17}, r"min=17 must not be above calibration_shards_max=16"),
        ({"fallback_tokens_per_byte": 0}, r"fallback_tokens_per_byte must be .* got 0"),
        ({"fallback_tokens_per_byte": "1"}, r"fallback_tokens_per_byte must be .* got '1'"),
    ],
)
def test_what_cannot_be_is_refused_and_named(arguments, message):
    with pytest.raises(PlanError, match=f"^TokenEstimation: .*{message}"):
        TokenEstimation(**arguments)
    with pytest.raises(ValueError, match="TokenEstimation"):
        TokenEstimation(**arguments)


def test_numbers_of_any_kind_are_numbers():
    for half in (np.float32(0.5), Decimal("0.5"), Fraction(1, 2)):
        made = TokenEstimation(primer=half, calibration_samples=np.int64(8))
        assert made == TokenEstimation(primer=0.5, calibration_samples=8)
        assert isinstance(made.primer, float)


def test_it_is_a_value_that_travels():
    given = {"a": 0.3}
    made = TokenEstimation(primer=given, measure=len)
    given["a"] = 9.0
    assert made.given_ratio("a") == 0.3
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again == made
        assert hash(again) == hash(made)


def test_unknown_names_are_refused_with_the_nearest():
    made = TokenEstimation(primer={"pross": 0.3})
    with pytest.raises(PlanError, match=r"primer names 'pross', .*did you mean 'prose'\?"):
        made.validate_for(["prose", "code"])
    TokenEstimation(primer={"code": 0.3}).validate_for(["prose", "code"])
    TokenEstimation(primer=0.3).validate_for([])
    TokenEstimation().validate_for([])


def test_a_number_holds_for_all_and_nothing_is_counted():
    found = prime(TokenEstimation(primer=0.3), [texts("a", [3]), texts("b", [9])], count=None)
    assert found == {"a": TokenRatio(0.3), "b": TokenRatio(0.3)}
    assert found["a"].how == "given"


def test_a_mapping_may_leave_datasets_out_to_be_counted():
    def count(name, shards, rows):
        assert name == "b"
        return np.full(len(rows), 5)

    made = prime(TokenEstimation(primer={"a": 0.3}), [texts("a", [3]), texts("b", [9, 9])], count)
    assert made["a"].how == "given"
    assert (made["b"].how, made["b"].measured_rows, made["b"].coverage) == ("measured", 2, 1.0)
    assert mean_cost(texts("b", [9, 9]), made["b"]) == 5


def test_an_empty_dataset_is_not_counted():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = prime(TokenEstimation(), [texts("empty"), texts("hollow", [])])
    assert {each.how for each in found.values()} == {"fallback"}
    assert mean_cost(texts("empty"), found["empty"]) == 1


def test_where_nothing_can_be_counted_the_message_says_what_to_give():
    with pytest.raises(PlanError, match=r"dataset 'a' must be measured.*measure=.*primer="):
        prime(TokenEstimation(), [texts("a", [3])], count=None)


def test_a_measure_without_rows_says_where_it_gets_them():
    with pytest.raises(PlanError, match=r"'a' must be measured.*a Pipeline.*counting_spec=") as why:
        prime(TokenEstimation(measure=len), [texts("a", [3])], count=None)
    assert "measure=" not in str(why.value)


@pytest.mark.parametrize("measure", [None, len])
def test_what_counts_must_be_a_function(measure):
    with pytest.raises(PlanError, match=r"counting_spec must be a function, got 'len'"):
        prime(TokenEstimation(measure=measure), [texts("a", [3])], count="len")


@pytest.mark.parametrize(("bad", "how"), [(0, "measured"), (5, "measured"), (6, "fallback")])
def test_below_half_of_the_rows_the_fallback_is_taken_with_a_warning(bad, how):
    def count(name, shards, rows):
        return np.where(rows < bad, -1, 8)

    data = texts("a", [80] * 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = prime(TokenEstimation(fallback_tokens_per_byte=0.4), [data], count)["a"]
    assert (found.how, found.measured_rows, found.coverage) == (how, 10 - bad, 1 - bad / 10)
    if how == "fallback":
        assert found.tokens_per_byte == 0.4
        (warning,) = caught
        assert warning.category is RuntimeWarning
        assert "dataset 'a': 4 of 10 rows could be counted" in str(warning.message)
        assert "fallback_tokens_per_byte=0.4" in str(warning.message)
    else:
        assert not caught
        assert mean_cost(data, found) == pytest.approx(8)


def test_a_draw_costs_one_token_at_least():
    assert mean_cost(texts("a", [1, 1]), TokenRatio(1e-9)) == 1
    assert mean_cost(texts("a", [99, 99]), TokenRatio(0.5)) == 50  # the key is a byte too


def test_rows_without_tokens_are_measured_too():
    found = prime(TokenEstimation(), [texts("a", [5])], lambda name, shards, rows: rows * 0)["a"]
    assert (found.tokens_per_byte, found.how) == (0.0, "measured")


def test_each_shard_has_a_cost_of_its_own():
    data = texts("a", [9] * 4, [], [99] * 2)
    costs = PerShardTokenCost.of(data, TokenRatio(0.5))
    assert costs.costs() == pytest.approx([5, 1, 50])
    rows = data.counts()
    assert (costs.costs() * rows).sum() / rows.sum() == pytest.approx(
        mean_cost(data, TokenRatio(0.5)), rel=0.02
    )
