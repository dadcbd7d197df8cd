"""What a static mixture is of: its recipe, its names and weights, which rows it draws."""

import copy
import json
import pickle

import numpy as np
import pytest

from tests.work.static_mixture.draws import MIXTURE, drawn, every_draw
from zephon.work import MixtureSpec, StaticMixtureWorkSource, WorkSource
from zephon.work.schedule import MixtureSchedule


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


def test_copies_draw_the_same(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, shuffle_within_shard=True)
    expected = drawn(source, 1, 2)
    for again in (copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert drawn(again, 1, 2) == expected
        assert again.recipe() == source.recipe()


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**63 - 1])
def test_every_seed_of_64_bits(two, seed):
    assert StaticMixtureWorkSource(two, MIXTURE, seed=seed).recipe()["seed"] == seed


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
