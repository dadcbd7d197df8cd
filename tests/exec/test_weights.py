import numpy as np

from tests.exec.by_hand import Counted, chain_of
from zephon.exec.lane_run import LaneRun
from zephon.exec.weights import WeightsInForce


class Weighed(Counted):
    """Its weights change at draw 10; the arrays are made anew at each question, or kept."""

    kept = np.array([0.5, 0.0, 0.5])

    def weights_at(self, ordinal):
        if ordinal < 0:
            return None
        return np.array([0.25, 0.25, 0.5]) if ordinal < 10 else self.kept


def run(lane=0):
    return LaneRun(lane, Weighed(20, lane, 3), chain_of(None), 3)


def test_components_of_one_name_are_summed():
    weights = WeightsInForce(("a", "a", "b"))
    assert weights.at(run(), 3, 0) == {"a": 0.5, "b": 0.5}
    assert WeightsInForce(("a", "b", "c")).at(run(), 3, 0) == {"a": 0.25, "b": 0.25, "c": 0.5}


def test_as_long_as_weights_stay_the_mapping_is_the_same():
    weights = WeightsInForce(("a", "b", "c"))
    first = weights.at(run(), 3, 0)
    assert weights.at(run(1), 4, 0) is first
    later = weights.at(run(), 10, 0)
    assert later == {"a": 0.5, "b": 0.0, "c": 0.5}
    assert weights.at(run(), 11, 0) is weights.at(run(1), 12, 0) is later
    assert weights.at(run(), 3, 0) == first


def test_unknown_weights_have_no_name():
    assert WeightsInForce(("a", "b", "c")).at(run(), -1, 0) is None
