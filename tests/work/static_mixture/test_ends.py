"""When a static mixture ends: policies of exhausted datasets, repeats, budgets."""

import numpy as np
import pytest

from tests.work.static_mixture.draws import MIXTURE, drawn, every_draw, lengths
from zephon.work import StaticMixtureWorkSource

LANES = [1, 2, 3, 7, 64, 70]

POLICIES = [
    {},
    {"exhausted_policy": "stop"},
    {"exhausted_policy": "redistribute"},
    {"exhausted_policy": "repeat", "max_repeats": 0},
]


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
