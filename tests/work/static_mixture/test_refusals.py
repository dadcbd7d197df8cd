"""What a static mixture does not take: wrong arguments, what does not go together, empty data."""

import pytest

from tests.work.static_mixture.draws import MIXTURE
from zephon.errors import DatasetError, NotYetError, PlanError
from zephon.work import StaticMixtureWorkSource
from zephon.work.budget import tokens
from zephon.work.schedule import MixtureSchedule
from zephon.work.token_estimation import TokenEstimation

LATER = {"prose": 0.5, "code": 0.5}


@pytest.mark.parametrize("weight", [1e-300, 5e-324])
def test_a_weight_too_small_to_end_is_refused(shape, weight) -> None:
    with pytest.raises(PlanError, match="dataset 'a' must get its rows within 2\\^53 draws"):
        StaticMixtureWorkSource([shape("a", [2]), shape("b", [9])], {"a": weight, "b": 3})
    for policy in ("stop", "repeat", "redistribute"):
        with pytest.raises(PlanError, match=r"1 at weight .* take more; raise its weight"):
            StaticMixtureWorkSource(
                [shape("a", [2]), shape("b", [9])],
                {"a": weight, "b": 1e308},
                exhausted_policy=policy,
            )


@pytest.mark.parametrize("rows", [[], [0], [0, 0]])
def test_an_empty_dataset_is_named(shape, two, rows) -> None:
    with pytest.raises(DatasetError, match=r"dataset 'none' must have rows.* set its weight to 0"):
        StaticMixtureWorkSource([*two, shape("none", rows)], MIXTURE | {"none": 0.1})
    with pytest.raises(DatasetError, match=f"dataset 'none' .* none in {len(rows)} shards"):
        StaticMixtureWorkSource([shape("none", rows)], {"none": 1})
    StaticMixtureWorkSource([*two, shape("none", rows)], MIXTURE | {"none": 0})


def test_the_mixture_must_name_the_datasets(two) -> None:
    with pytest.raises(PlanError, match="'prosa', but no dataset has that name; did you mean 'pro"):
        StaticMixtureWorkSource(two, {"prosa": 1, "code": 1})
    with pytest.raises(PlanError, match="every dataset needs a weight, got none for 'code'"):
        StaticMixtureWorkSource(two, {"prose": 1})
    with pytest.raises(PlanError, match="must be positive"):
        StaticMixtureWorkSource(two, {"prose": 1, "code": -1})


def test_lanes_are_numbered_from_zero(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE)
    for lane, lanes in ((4, 4), (-1, 4), (0, 0), (True, 2), (0, 2.0)):
        with pytest.raises(PlanError, match="lane"):
            source.lane_stream(lane, lanes)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk_size": 0}, "chunk_size must be a whole number of at least 1, got 0"),
        ({"chunk_size": 1.5}, "chunk_size must be a whole number of at least 1, got 1.5"),
        ({"chunk_size": True}, "chunk_size must be"),
        ({"seed": "x"}, "seed must be a whole number, got 'x'"),
        ({"seed": None}, "seed must be"),
        (
            {"seed": 2**63},
            r"seed must be .* from -2\*\*63 to 2\*\*63 - 1, got 9223372036854775808;",
        ),
        (
            {"seed": -(2**63) - 1},
            r"seed must be .* got -9223372036854775809; seed % 2\*\*63 is one",
        ),
        ({"shuffle_shards": 1}, "shuffle_shards must be True or False, got 1"),
        ({"shuffle_within_shard": None}, "shuffle_within_shard must be True or False"),
        ({"lane_assignment": "modulu"}, "lane_assignment must be one of .* did you mean 'modulo'"),
        ({"lane_assignment": None}, "lane_assignment must be one of 'permute', 'modulo', got None"),
        ({"shuffle_block_size": 0}, "shuffle_block_size must be a whole number of at least 1"),
        ({"shuffle_block_size": True}, "shuffle_block_size must be"),
        ({"shuffle_block_size": "gobal"}, "shuffle_block_size must be .* did you mean 'global'"),
        ({"exhausted_policy": "stopp"}, "exhausted_policy must be .* did you mean 'stop'"),
        ({"exhausted_policy": {"prosa": "stop"}}, "exhausted_policy names 'prosa', but no dataset"),
        ({"exhausted_policy": {"prose": "x"}}, r"exhausted_policy\['prose'\] must be one of"),
        ({"max_repeats": -1}, "max_repeats must be a whole number of at least 0, got -1"),
        ({"max_repeats": {"prosa": 1}}, "max_repeats names 'prosa'"),
        ({"stop_after_passes": 0}, "stop_after_passes must be a whole number of at least 1, got 0"),
        ({"stop_after_passes": True}, "stop_after_passes must be"),
        ({"reshuffle_on_repeat": 1}, "reshuffle_on_repeat must be True or False, got 1"),
        ({"reshuffle_on_repeat": {"prosa": True}}, "reshuffle_on_repeat names 'prosa'"),
        ({"mixture_unit": "token"}, "mixture_unit must be .* did you mean 'tokens'"),
        (
            {"stop_after_passes": 2, "exhausted_policy": "stop"},
            "stop_after_passes=2 cannot be combined with exhausted_policy='stop'",
        ),
        (
            {"stop_after_passes": 2, "max_repeats": 3},
            "stop_after_passes=2 cannot be combined with max_repeats=3",
        ),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(two, change, message) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        StaticMixtureWorkSource(two, MIXTURE, **change)
    assert not isinstance(caught.value, NotYetError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"stop_after_passes": 2, "exhausted_policy": {"prose": "repeat"}},
            "stop_after_passes=2 cannot be combined with exhausted_policy=.* 'code' has the policy",
        ),
        (
            {"max_repeats": {"prose": 3}, "exhausted_policy": {"code": "repeat"}},
            r"max_repeats\['prose'\]=3 cannot be combined with exhausted_policy\['prose'\]='stop'",
        ),
        (
            {"mixture_unit": "tokens", "token_estimation": TokenEstimation()},
            "mixture_unit='tokens' cannot be combined with token_estimation=",
        ),
        (
            {"schedule": MixtureSchedule({9: LATER}, unit="tokens")},
            "schedule counts unit='tokens', and the mixture counts samples .mixture_unit='samples'",
        ),
        (
            {"schedule": MixtureSchedule({9: LATER}), "mixture_unit": "tokens"},
            "schedule counts unit='samples', and the mixture counts tokens .mixture_unit='tokens'",
        ),
        (
            {"schedule": MixtureSchedule({9: LATER}), "token_estimation": TokenEstimation()},
            "schedule counts unit='samples', and the mixture counts estimated tokens .token_est",
        ),
        (
            {"schedule": MixtureSchedule({9: {"prose": 1}})},
            "schedule, at samples 9: .*every dataset needs a weight, got none for 'code'",
        ),
        (
            {"schedule": MixtureSchedule({0: LATER})},
            "schedule, at samples 0: the weights .* must be those of mixture=",
        ),
        ({"schedule": {9: LATER}}, "schedule must be a MixtureSchedule, got dict"),
        ({"budget": {"prosa": 5}}, "budget names 'prosa', but no dataset .* did you mean 'prose'"),
        ({"budget": {"prose": tokens(5)}}, r"budget\['prose'\]=tokens\(5\) counts tokens, and the"),
        ({"budget": {"prose": 5}, "mixture_unit": "tokens"}, r"counts samples, .* counts tokens"),
        ({"budget": {"prose": 0}}, "samples: wanted a finite number above zero, got 0"),
        ({"budget": 5}, "budget must map dataset names to amounts, got 5"),
        ({"token_estimation": 0.3}, "token_estimation must be a TokenEstimation, got float"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_named(two, change, message) -> None:
    with pytest.raises(PlanError, match=message):
        StaticMixtureWorkSource(two, MIXTURE, **change)


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ([], "must hold at least one dataset"),
        (None, "datasets must be a list of datasets, got NoneType"),
        ("data/prose", "datasets must be a list of datasets, got str"),
        (["data/prose"], r"datasets\[0\] must be a Dataset, got 'data/prose'"),
    ],
)
def test_datasets_must_be_datasets(datasets, message) -> None:
    with pytest.raises(PlanError, match=message):
        StaticMixtureWorkSource(datasets, {"data/prose": 1})


def test_one_dataset_needs_its_list(two) -> None:
    with pytest.raises(PlanError, match=r"got ShapeOnly; write datasets=\[...\]"):
        StaticMixtureWorkSource(two[0], {"prose": 1})


def test_two_datasets_of_one_name_are_refused(shape, two) -> None:
    with pytest.raises(PlanError, match=r"Duplicate dataset name 'code' at datasets\[1\] and"):
        StaticMixtureWorkSource([*two, shape("code", [5])], MIXTURE)
