import copy
import json
import pickle

import numpy as np
import pytest

from zephon.errors import DatasetError, ExecutionError, NotYetError, PlanError
from zephon.work import MixtureSpec, StaticMixtureWorkSource, WorkSource
from zephon.work.budget import tokens
from zephon.work.schedule import MixtureSchedule, StepSize
from zephon.work.token_estimation import TokenEstimation


@pytest.fixture
def two(shape):
    return [shape("prose", [70, 5, 40]), shape("code", [30, 30])]


MIXTURE = {"prose": 0.7, "code": 0.3}


def drawn(source: StaticMixtureWorkSource, lane: int = 0, lanes: int = 1) -> list:
    refs = source.lane_stream(lane, lanes).draw(0, 10**6)
    return [getattr(refs, name).tolist() for name in ("component", "shard", "row", "pass_index")]


def test_what_a_source_tells(two) -> None:
    source = StaticMixtureWorkSource(two, MixtureSpec({"code": 3, "prose": 7}), seed=5)
    assert isinstance(source, WorkSource)
    assert [(c.name, c.dataset_id, c.weight) for c in source.components] == [
        ("prose", 0, 0.7),
        ("code", 1, 0.3),
    ]
    assert source.components[1].dataset is two[1]
    assert source.dataset_ids == (0, 1)
    assert dict(source.datasets_by_id) == {0: two[0], 1: two[1]}
    assert (source.seed, source.chunk_size) == (5, 16384)
    assert source.supports_indexing() is False
    assert repr(source) == "StaticMixtureWorkSource(prose: 0.7, code: 0.3; seed=5)"


def test_ends_when_the_slowest_has_made_its_pass(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE)
    # 60 rows of code at 0.3 take 200 draws, 115 of prose at 0.7 take fewer.
    assert len(source) == source.total_samples == source.lane_stream(0, 1).length
    assert source.total_samples == 199
    component, _, _, pass_index = drawn(source)
    assert component[-1] == 1
    assert component.count(1) == 60
    assert max(pass_index) == 1
    assert StaticMixtureWorkSource(two, MIXTURE, stop_after_passes=3).total_samples == 599


def test_the_recipe_is_plain_and_complete(two) -> None:
    recipe = StaticMixtureWorkSource(two, MIXTURE, seed=np.int64(3)).recipe()
    assert json.loads(json.dumps(recipe)) == recipe
    assert recipe == {
        "source": "static_mixture",
        "mixture_unit": "samples",
        "components": ["prose", "code"],
        "weights": {"prose": 0.7, "code": 0.3},
        "rules": {
            name: {
                "reshuffle_on_repeat": True,
                "shuffle_block_size": None,
                "exhausted_policy": "repeat",
                "passes": None,
                "stop_after_passes": 1,
                "budget": None,
            }
            for name in ("prose", "code")
        },
        "schedule": None,
        "token_costs": None,
        "chunk_size": 16384,
        "seed": 3,
        "shuffle_shards": True,
        "shuffle_within_shard": False,
        "lane_assignment": "permute",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"chunk_size": 1},
        {"shuffle_shards": False},
        {"shuffle_within_shard": True},
        {"reshuffle_on_repeat": False},
        {"stop_after_passes": 2},
        {"lane_assignment": "modulo"},
        {"shuffle_block_size": 7},
        {"shuffle_block_size": "auto"},
        {"shuffle_block_size": "global"},
        {"exhausted_policy": "stop"},
        {"exhausted_policy": "redistribute"},
        {"exhausted_policy": "repeat", "max_repeats": 1},
        {"exhausted_policy": {"code": "repeat", "prose": "redistribute"}, "max_repeats": 0},
        {"reshuffle_on_repeat": {"prose": False}},
        {"schedule": MixtureSchedule({100: {"prose": 0.1, "code": 0.9}})},
        {"schedule": MixtureSchedule({99: {"prose": 0, "code": 1}}, interpolation="linear")},
        {"budget": {"prose": 50}},
    ],
    ids=str,
)
def test_every_argument_changes_the_data_and_the_recipe(shape, change) -> None:
    datasets = [shape("prose", [70, 5, 40]), shape("code", [300, 300])]
    plain = StaticMixtureWorkSource(datasets, MIXTURE)
    changed = StaticMixtureWorkSource(datasets, MIXTURE, **change)
    assert changed.recipe() != plain.recipe()
    assert any(drawn(changed, lane, 4) != drawn(plain, lane, 4) for lane in range(4))


def test_names_make_equal_shapes_move_independently(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("a", [1] * 200), shape("b", [1] * 200)], {"a": 1, "b": 1}
    )
    component, shard, _, _ = (np.array(column) for column in drawn(source))
    one, other = shard[component == 0][:199], shard[component == 1][:199]
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.3


def test_weight_zero_is_never_read_nor_listed_nor_waited_for(two) -> None:
    class Unread:
        name = "never"

        def counts(self) -> np.ndarray:
            raise AssertionError("a dataset of weight zero is not looked at")

    without = StaticMixtureWorkSource(two, MIXTURE)
    source = StaticMixtureWorkSource([*two, Unread()], MIXTURE | {"never": 0})
    assert source.total_samples == without.total_samples
    assert drawn(source) == drawn(without)
    assert source.components[2].weight == 0
    first = StaticMixtureWorkSource([Unread(), *two], MIXTURE | {"never": 0})
    assert drawn(first)[0] == [component + 1 for component in drawn(without)[0]]


def test_a_tiny_weight_counts(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("a", [2]), shape("b", [10])], {"a": 1e-6, "b": 1 - 1e-6}
    )
    assert source.total_samples == pytest.approx(1.5e6, abs=2)
    assert 0 in source.lane_stream(0, 1).draw(499_990, 20).component


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


def test_bounds_beyond_counting_are_none(shape) -> None:
    for how in (
        {"max_repeats": 10**17},
        {"max_repeats": 10**19},
        {"budget": {"a": 10.0**300}},
    ):
        source = StaticMixtureWorkSource(
            [shape("a", [2])], {"a": 1}, exhausted_policy="repeat", **how
        )
        assert source.total_samples == float("inf")


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


def test_copies_draw_the_same(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, shuffle_within_shard=True)
    expected = drawn(source, 1, 2)
    for again in (copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert drawn(again, 1, 2) == expected
        assert again.recipe() == source.recipe()


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**63 - 1])
def test_every_seed_of_64_bits(two, seed):
    assert StaticMixtureWorkSource(two, MIXTURE, seed=seed).recipe()["seed"] == seed


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


LATER = {"prose": 0.5, "code": 0.5}


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


def lengths(source: StaticMixtureWorkSource, lanes: int) -> list[int | None]:
    return [source.lane_stream(lane, lanes).length for lane in range(lanes)]


def every_draw(source: StaticMixtureWorkSource, lanes: int) -> list[tuple[int, int, int, int]]:
    found = []
    for lane in range(lanes):
        found += zip(*drawn(source, lane, lanes), strict=True)
    return found


LANES = [1, 2, 3, 7, 64, 70]


@pytest.mark.parametrize("lanes", LANES)
def test_redistribute_draws_every_row_once_and_no_more(two, lanes) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="redistribute")
    draws = every_draw(source, lanes)
    assert len(draws) == len(set(draws)) == 115 + 60
    assert {pass_index for *_, pass_index in draws} == {0}
    if lanes == 1:
        assert source.total_samples == len(source) == 175


def test_redistribute_gives_the_weight_to_the_others_in_proportion(shape) -> None:
    datasets = [shape("a", [30]), shape("b", [10**6]), shape("c", [10**6])]
    source = StaticMixtureWorkSource(
        datasets, {"a": 0.6, "b": 0.3, "c": 0.1}, exhausted_policy="redistribute"
    )
    refs = source.lane_stream(0, 1).draw(0, 4050)
    # The 30 rows of a come with about 15 of b and 5 of c; the rest is divided three to one.
    last = int(np.flatnonzero(refs.component == 0)[-1])
    assert last in range(47, 53)
    after = refs.component[last + 1 : last + 4001]
    assert abs(int((after == 1).sum()) - 3000) <= 2
    for count in (10, 100, 1000):
        assert abs(int((after[:count] == 1).sum()) - 0.75 * count) <= 3


@pytest.mark.parametrize("lanes", LANES)
def test_stop_ends_just_before_a_draw_without_a_row(two, lanes) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="stop")
    draws = every_draw(source, lanes)
    assert len(draws) == len(set(draws))
    assert {pass_index for *_, pass_index in draws} == {0}
    endless = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="repeat")
    for lane in range(lanes):
        length = source.lane_stream(lane, lanes).length
        following = endless.lane_stream(lane, lanes).draw(0, length + 1)
        assert following.pass_index[-1] == 1  # the draw that is not made would be the second pass
        assert (following.pass_index[:-1] == 0).all()


def test_stop_after_passes_none_means_stop(two) -> None:
    explicit = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="stop")
    assert drawn(StaticMixtureWorkSource(two, MIXTURE, stop_after_passes=None)) == drawn(explicit)


@pytest.mark.parametrize("repeats", [0, 1, 3])
@pytest.mark.parametrize("lanes", [1, 7, 64])
def test_max_repeats_caps_the_passes_after_the_first(two, repeats, lanes) -> None:
    source = StaticMixtureWorkSource(
        two, MIXTURE, exhausted_policy="repeat", max_repeats=np.int64(repeats)
    )
    draws = every_draw(source, lanes)
    assert max(pass_index for *_, pass_index in draws) == repeats
    assert len(draws) == len(set(draws))


def test_repeat_without_a_bound_never_ends(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="repeat")
    assert source.total_samples == float("inf")
    assert lengths(source, 3) == [None] * 3
    with pytest.raises(TypeError, match=r"no len\(\), since a dataset repeats without a bound"):
        len(source)
    assert source.lane_stream(2, 3).draw(10**9, 5).pass_index.min() > 10**6


def test_the_default_is_one_pass_of_all_with_the_others_repeating(two) -> None:
    plain = drawn(StaticMixtureWorkSource(two, MIXTURE))
    named = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="repeat", stop_after_passes=1)
    assert drawn(named) == plain


def test_policies_may_differ_by_dataset(shape) -> None:
    datasets = [shape("once", [20]), shape("again", [10]), shape("until", [500])]
    source = StaticMixtureWorkSource(
        datasets,
        {"once": 0.4, "again": 0.3, "until": 0.3},
        exhausted_policy={"once": "redistribute", "again": "repeat"},  # until: stop
        max_repeats={"again": 10**6},
    )
    component, _, _, pass_index = (np.array(column) for column in drawn(source))
    counts = np.bincount(component)
    assert counts[0] == 20
    assert counts[2] == 500
    assert pass_index[component == 1].max() > 40
    assert pass_index[component != 1].max() == 0
    capped = StaticMixtureWorkSource(
        datasets,
        {"once": 0.4, "again": 0.3, "until": 0.3},
        exhausted_policy={"once": "redistribute", "again": "repeat", "until": "repeat"},
        max_repeats={"again": 1},
    )
    component, *_ = (np.array(column) for column in drawn(capped))
    assert np.bincount(component)[1] == 20  # and everything ends with it
    assert len(component) < 100


def test_max_repeats_without_a_repeat_policy_says_so(two) -> None:
    with pytest.warns(RuntimeWarning, match="max_repeats=2 has no effect without a repeat comp"):
        source = StaticMixtureWorkSource(two, MIXTURE, max_repeats=2)
    assert drawn(source) == drawn(StaticMixtureWorkSource(two, MIXTURE, stop_after_passes=None))


def test_reshuffle_may_differ_by_dataset(shape) -> None:
    datasets = [shape("same", [1] * 50), shape("fresh", [1] * 50)]
    source = StaticMixtureWorkSource(
        datasets,
        {"same": 1, "fresh": 1},
        reshuffle_on_repeat={"same": False},
        stop_after_passes=2,
    )
    component, shard, _, pass_index = (np.array(column) for column in drawn(source))
    orders = [[shard[(component == c) & (pass_index == p)] for p in (0, 1)] for c in (0, 1)]
    size = min(len(each) for pair in orders for each in pair)
    assert (orders[0][0][:size] == orders[0][1][:size]).all()
    assert (orders[1][0][:size] != orders[1][1][:size]).any()


POLICIES = [
    {},
    {"exhausted_policy": "stop"},
    {"exhausted_policy": "redistribute"},
    {"exhausted_policy": "repeat", "max_repeats": 0},
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("block", [None, 2, "auto", "global"])
def test_three_rows_work_with_any_end_on_sixty_four_lanes(shape, policy, block) -> None:
    source = StaticMixtureWorkSource(
        [shape("a", [2, 0, 1])], {"a": 1}, shuffle_block_size=block, **policy
    )
    assert source.total_samples == 3
    assert lengths(source, 64) == [1, 1, 1] + [0] * 61
    assert sorted(every_draw(source, 64)) == [(0, 0, 0, 0), (0, 0, 1, 0), (0, 2, 0, 0)]


@pytest.mark.parametrize("lanes", [1, 3, 64])
def test_a_budget_finishes_a_dataset_and_no_end_waits_for_it(two, lanes) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, budget={"code": 10})
    draws = every_draw(source, lanes)
    assert sum(component == 1 for component, *_ in draws) == 10
    assert len({draw for draw in draws if draw[0] == 0 and draw[3] == 0}) == 115
    if lanes == 1:
        assert source.total_samples == 125


def test_a_budget_beyond_the_rows_changes_nothing_for_one_that_ends(two) -> None:
    for policy in ("stop", "redistribute"):
        plain = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy=policy)
        bounded = StaticMixtureWorkSource(
            two, MIXTURE, exhausted_policy=policy, budget={"code": 1000}
        )
        assert drawn(bounded) == drawn(plain)


def test_a_met_budget_does_not_stop_what_would_stop_without_rows(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="stop", budget={"code": 40})
    component = drawn(source)[0]
    assert (component.count(0), component.count(1)) == (115, 40)


def test_all_budgets_met_end_the_source(two) -> None:
    source = StaticMixtureWorkSource(
        two, MIXTURE, exhausted_policy="repeat", budget={"prose": 300, "code": 200}
    )
    assert source.total_samples == 500
    assert sum(lengths(source, 7)) == 500


def test_a_schedule_changes_shares_at_its_points(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6]), shape("c", [10**6])]
    points = {1000: {"a": 0, "b": 0.5, "c": 0.5}, 3000: {"a": 0.2, "b": 0, "c": 0.8}}
    source = StaticMixtureWorkSource(
        datasets, {"a": 0.9, "b": 0.1, "c": 0}, schedule=MixtureSchedule(points)
    )
    assert [c.read for c in source.components] == [True] * 3
    component = source.lane_stream(0, 1).draw(0, 6000).component
    cuts = (slice(0, 1000), slice(1000, 3000), slice(3000, 6000))
    shares = [np.bincount(component[cut], minlength=3) for cut in cuts]
    wanted = [[900, 100, 0], [0, 1000, 1000], [600, 0, 2400]]
    assert np.abs(np.array(shares) - wanted).max() <= 4


@pytest.mark.parametrize("lanes", [1, 8])
def test_lanes_get_to_a_point_together(shape, lanes) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    schedule = MixtureSchedule({4000: {"a": 0, "b": 1}})
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    for lane in range(lanes):
        component = source.lane_stream(lane, lanes).draw(0, 8000 // lanes).component
        assert np.flatnonzero(component == 1)[0] == 4000 // lanes
        assert source.lane_stream(lane, lanes).weights_at(4000 // lanes - 1).tolist() == [1, 0]
        assert source.lane_stream(lane, lanes).weights_at(4000 // lanes).tolist() == [0, 1]


def test_linear_weights_follow_a_line(shape) -> None:
    datasets = [shape("a", [10**7]), shape("b", [10**7])]
    schedule = MixtureSchedule({8000: {"a": 0, "b": 1}}, interpolation="linear")
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    stream = source.lane_stream(0, 1)
    drawn_b = np.cumsum(stream.draw(0, 10_000).component == 1)
    at = np.array([1, 10, 500, 4000, 7999])
    assert np.abs(drawn_b[at - 1] - at**2 / 16000).max() <= 3
    assert drawn_b[9999] - drawn_b[7999] == 2000
    assert stream.weights_at(4000) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_schedule_in_steps_needs_to_know_a_step(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    schedule = MixtureSchedule({10: {"a": 0, "b": 1}}, unit="steps")
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    stream = source.lane_stream(1, 4, step=StepSize(48, "samples"))
    assert np.flatnonzero(stream.draw(0, 500).component == 1)[0] == 120
    with pytest.raises(ExecutionError, match="unit='steps', and no global_batch_size says"):
        source.lane_stream(1, 4)
    with pytest.raises(PlanError, match="a step of this plan is 98,352 tokens, and the mixture co"):
        source.lane_stream(1, 4, step=StepSize(98352, "tokens"))


def test_the_default_end_waits_for_no_weight_that_is_gone(two) -> None:
    schedule = MixtureSchedule({100: {"prose": 1, "code": 0}})
    source = StaticMixtureWorkSource(two, MIXTURE, schedule=schedule)
    component = drawn(source)[0]
    assert component.count(1) in (29, 30, 31)
    assert component.count(0) == 115
    ends_first = MixtureSchedule({3: {"prose": 1, "code": 0}, 10: {"prose": 0, "code": 1}})
    later = drawn(StaticMixtureWorkSource(two, MIXTURE, schedule=ends_first))[0]
    assert later.count(1) == 60


def test_weights_that_stay_are_the_same_array(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6]), shape("never", [5])]
    schedule = MixtureSchedule({3000: {"a": 0, "b": 1, "never": 0}})
    source = StaticMixtureWorkSource(
        datasets, {"a": 1, "b": 1, "never": 0}, schedule=schedule, budget={"b": 5000}
    )
    stream = source.lane_stream(0, 1)
    first = stream.weights_at(0)
    assert stream.weights_at(2999) is stream.weights_at(1500) is first
    assert not first.flags.writeable
    assert first.tolist() == [0.5, 0.5, 0.0]
    assert stream.weights_at(3000).tolist() == [0.0, 1.0, 0.0]
    line = StaticMixtureWorkSource(
        datasets,
        {"a": 1, "b": 1, "never": 0},
        schedule=MixtureSchedule({5000: {"a": 1, "b": 0, "never": 0}}, interpolation="linear"),
    ).lane_stream(3, 7)
    walked = [line.weights_at(ordinal)[0] for ordinal in range(0, 714, 7)]
    assert walked == sorted(walked)
    for ordinal, weight in zip(range(0, 714, 7), walked, strict=True):
        assert abs(weight - (0.5 + 0.5 * ordinal * 7 / 5000)) < 0.003


def test_weights_in_force_after_an_end(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="redistribute")
    stream = source.lane_stream(0, 1)
    assert stream.weights_at(0).tolist() == [0.7, 0.3]
    assert stream.weights_at(174).tolist() == [0.0, 1.0]


def test_a_hundred_components(shape) -> None:
    rows = {f"d{number}": 1 + number % 25 for number in range(100)}
    datasets = [shape(name, [count]) for name, count in rows.items()]
    weights = {name: 1.0 + len(name) for name in rows}
    once = StaticMixtureWorkSource(datasets, weights, exhausted_policy="redistribute")
    for lanes in (1, 3):
        draws = every_draw(once, lanes)
        assert len(draws) == len(set(draws)) == sum(rows.values())
    default = StaticMixtureWorkSource(datasets, weights)
    assert len({draw for draw in every_draw(default, 1) if draw[3] == 0}) == sum(rows.values())


def test_one_dataset_may_be_read_under_two_names(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("x", [8] * 40), shape("y", [8] * 40)],
        {"x": 1, "y": 1},
        shuffle_within_shard=True,
        exhausted_policy="redistribute",
    )
    component, shard, row, _ = (np.array(column) for column in drawn(source))
    first, second = (8 * shard[component == c] + row[component == c] for c in (0, 1))
    assert sorted(first) == sorted(second)
    assert abs(np.corrcoef(np.argsort(first), np.argsort(second))[0, 1]) < 0.5


def test_tokens_are_counted_behind_a_tokenizer(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, mixture_unit="tokens")
    assert source.mixture_unit == "tokens"
    with pytest.raises(ExecutionError, match="total_samples is known only once the data are read"):
        _ = source.total_samples
    with pytest.raises(PlanError, match="lane_stream: mixture_unit='tokens'"):
        source.lane_stream(0, 1)
    with pytest.raises(PlanError, match="the mixture must count tokens"):
        StaticMixtureWorkSource(two, MIXTURE).token_lane(0, 1)


@pytest.mark.parametrize("lanes", [1, 4, 64])
def test_the_strands_of_a_lane_hold_its_rows(two, lanes) -> None:
    class Unread:
        name = "never"

        def counts(self) -> np.ndarray:
            raise AssertionError("a dataset of weight zero is not looked at")

    source = StaticMixtureWorkSource(
        [two[0], Unread(), two[1]],
        MIXTURE | {"never": 0},
        mixture_unit="tokens",
        exhausted_policy={"prose": "redistribute", "code": "stop"},
        budget={"prose": tokens(1000)},
    )
    rows = []
    for lane in range(lanes):
        parts = source.token_lane(lane, lanes)
        assert parts.at_end == ("finish", "finish", "stop")
        assert parts.budgets == (1000 / lanes, None, None)
        assert parts.courses.weights_at(0.0).tolist() == [0.7, 0.0, 0.3]
        assert parts.strands[1].length == 0
        assert len(parts.strands[1].draw(0, 5)) == 0
        for component, strand in enumerate(parts.strands):
            refs = strand.draw(0, 1000)
            assert len(refs) == strand.length
            assert refs.ordinal.tolist() == list(range(len(refs)))
            assert (refs.component == component).all() and (refs.lane == lane).all()
            rows += zip(refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(),
                        strict=True)  # fmt: skip
    assert len(rows) == len(set(rows)) == 115 + 60


def test_estimated_tokens_need_an_estimate_first(two) -> None:
    source = StaticMixtureWorkSource(
        two, MIXTURE, exhausted_policy="repeat", token_estimation=TokenEstimation()
    )
    assert source.requires_token_priming
    assert source.token_costs is None
    with pytest.raises(RuntimeError, match="must be estimated before the first draw"):
        _ = source.total_samples
    for costs in ({"prose": 10.0}, {"prose": 1e30, "code": 1.0}, {"prose": 0.0, "code": 1.0}):
        with pytest.raises(PlanError, match=r"a mean row of dataset .* from 1 to 2\^40 tokens"):
            source.set_token_costs(costs)
    source.set_token_costs({"prose": 10.0, "code": 100.0})
    assert not source.requires_token_priming
    assert source.recipe()["token_costs"] == {"prose": 10.0, "code": 100.0}
    component = source.lane_stream(0, 1).draw(0, 5000).component
    # By tokens 70 to 30, so by rows 7 to 0.3.
    assert np.bincount(component)[0] / 5000 == pytest.approx(7 / 7.3, abs=2e-3)


def test_estimated_tokens_carry_budgets_and_schedules(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    source = StaticMixtureWorkSource(
        datasets,
        {"a": 0.5, "b": 0.5},
        exhausted_policy="repeat",
        token_estimation=TokenEstimation(),
        budget={"a": tokens(5000)},
        schedule=MixtureSchedule({8000: {"a": 0.25, "b": 0.75}}, unit="tokens"),
    )
    source.set_token_costs({"a": 10.0, "b": 20.0})
    component = source.lane_stream(0, 1).draw(0, 5000).component
    assert np.bincount(component)[0] == 500
    # 400 of a within the first 8000 tokens, the last 100 within 4000 more, beside 150 of b.
    last = int(np.flatnonzero(component == 0)[-1])
    assert abs(last - (400 + 200 + 100 + 150)) <= 4


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
