import numpy as np
import pytest

from zephon.errors import PlanError
from zephon.work.chunks.read_config import (
    ComponentOrder,
    MixtureReadConfig,
    MixtureReadMode,
    read_order,
)

NAMES, COUNTS = ("a", "b", "none"), np.array([30, 10, 0])
FIRST_B = 30


def order(mode, within, seed=5):
    config = MixtureReadConfig(mode, seed=seed, within_component=within)
    return read_order(NAMES, COUNTS, config, None).tolist()


def test_the_defaults_are_as_documented():
    config = MixtureReadConfig()
    assert config.mode is MixtureReadMode.WEIGHTED_ROUND_ROBIN
    assert config.within_component is ComponentOrder.AS_IS
    assert (config.seed, config.precompute) == (None, False)
    assert [str(mode) for mode in MixtureReadMode] == ["weighted_random", "weighted_round_robin"]
    assert [str(each) for each in ComponentOrder] == ["as_is", "shuffle"]


@pytest.mark.parametrize("mode", MixtureReadMode)
@pytest.mark.parametrize("within", ComponentOrder)
def test_every_combination_gives_each_sample_once_and_the_same_again(mode, within):
    found = order(mode, within)
    assert sorted(found) == list(range(40))
    assert found == order(str(mode), str(within))
    a = [place for place in found if place < FIRST_B]
    assert (a == sorted(a)) == (within is ComponentOrder.AS_IS)
    is_b = [place >= FIRST_B for place in found]
    spread = [is_b[i : i + 4].count(True) for i in range(0, 40, 4)]
    assert (spread == [1] * 10) == (mode is MixtureReadMode.WEIGHTED_ROUND_ROBIN)


def test_the_seed_decides_what_is_random():
    for mode, within in (("weighted_random", "as_is"), ("weighted_round_robin", "shuffle")):
        assert order(mode, within, seed=1) != order(mode, within, seed=2)
        config = MixtureReadConfig(mode, within_component=within)
        assert read_order(NAMES, COUNTS, config, 1).tolist() == order(mode, within, seed=1)
        assert read_order(NAMES, COUNTS, config, None).tolist() == order(mode, within, seed=0)
        # a configuration's own seed comes before the chunk's
        own = MixtureReadConfig(mode, seed=0, within_component=within)
        assert read_order(NAMES, COUNTS, own, 1).tolist() == order(mode, within, seed=0)
    assert order("weighted_round_robin", "as_is", 1) == order("weighted_round_robin", "as_is", 2)


def test_every_arrangement_of_components_is_equally_likely():
    config = [MixtureReadConfig("weighted_random", seed=seed) for seed in range(6000)]
    found = [tuple(read_order(("a", "b"), np.array([2, 2]), c, None) // 2) for c in config]
    _, times = np.unique(np.array(found), axis=0, return_counts=True)
    assert len(times) == 6
    assert ((times - 1000) ** 2 / 1000).sum() < 20.5  # chi-square, 5 degrees: 0.1 %


def test_two_components_of_one_size_are_permuted_differently():
    config = MixtureReadConfig(within_component="shuffle")
    found = read_order(("a", "b"), np.array([20, 20]), config, 3)
    assert found[found < 20].tolist() != (found[found >= 20] - 20).tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "weighted_randon"}, "did you mean 'weighted_random'"),
        ({"mode": 3}, "mode must be one of 'weighted_random', 'weighted_round_robin', got 3"),
        ({"within_component": "as is"}, "within_component must be one of 'as_is', 'shuffle'"),
        ({"seed": 1.5}, "seed must be a whole number or None, got 1.5"),
        ({"seed": True}, "seed must be a whole number or None, got True"),
        ({"precompute": 1}, "precompute must be True or False, got 1"),
    ],
)
def test_what_cannot_be_is_refused(change, said):
    with pytest.raises(PlanError, match=said):
        MixtureReadConfig(**change)
