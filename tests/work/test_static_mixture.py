import copy
import json
import pickle
import time

import numpy as np
import pytest

from zephon.errors import DatasetError, NotYetError, PlanError
from zephon.work import MixtureSpec, StaticMixtureWorkSource, WorkSource


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
        "components": [["prose", 0.7], ["code", 0.3]],
        "chunk_size": 16384,
        "seed": 3,
        "shuffle_shards": True,
        "shuffle_within_shard": False,
        "reshuffle_on_repeat": True,
        "stop_after_passes": 1,
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
    with pytest.raises(PlanError, match="dataset 'a' must make its passes within 2\\^60 draws"):
        StaticMixtureWorkSource([shape("a", [2]), shape("b", [9])], {"a": weight, "b": 3})


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


def test_a_million_shards_begin_at_once(shape) -> None:
    million = shape("a", [])
    object.__setattr__(million, "counts", lambda: np.full(10**6, 10**6))
    began = time.perf_counter()
    stream = StaticMixtureWorkSource([million], {"a": 1}, shuffle_within_shard=True).lane_stream(
        5, 64
    )
    refs = stream.draw(9 * 10**11 // 64, 16_384)
    assert len(refs) == 16_384
    assert time.perf_counter() - began < 1.5  # 0.1 s on two quiet cores


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


def repr_without_address(change: dict) -> str:
    return "-".join(f"{name}={type(value).__name__}" for name, value in change.items())


@pytest.mark.parametrize(
    "change",
    [
        {"shuffle_block_size": 100},
        {"shuffle_block_size": "auto"},
        {"shuffle_block_size": "global"},
        {"exhausted_policy": "stop"},
        {"exhausted_policy": "repeat"},
        {"exhausted_policy": {"prose": "redistribute"}},
        {"exhausted_policy": {}},
        {"max_repeats": 2},
        {"max_repeats": {"prose": 2}},
        {"stop_after_passes": None},
        {"reshuffle_on_repeat": {"prose": True}},
        {"token_estimation": object()},
        {"mixture_unit": "tokens"},
        {"schedule": object()},
        {"budget": {"prose": 5}},
    ],
    ids=repr_without_address,
)
def test_what_is_not_there_yet_is_refused_by_name(two, change) -> None:
    (argument,) = change
    with pytest.raises(NotYetError, match=f"StaticMixtureWorkSource: {argument}=.* not there yet"):
        StaticMixtureWorkSource(two, MIXTURE, **change)


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ([], "must hold at least one dataset"),
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
