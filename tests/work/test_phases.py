"""Lanes balance each other: a step of equally many draws a lane holds each component's share."""

import math

import numpy as np
import pytest

from zephon.work.course import Courses
from zephon.work.interleave import Interleave
from zephon.work.phases import lane_phases

DRAWS = 300


def furthest(weights: list[float], lanes: int) -> float:
    """Largest distance of all lanes together from the shares, after any number of draws each."""
    shares = [weight / math.fsum(weights) for weight in weights]
    together = np.zeros((DRAWS, len(shares)))
    for lane in range(lanes):
        phases = lane_phases(shares, range(len(shares)), lanes)[lane]
        interleave = Interleave(Courses.constant(shares), np.array(phases))
        turns = interleave.turns(0, DRAWS)
        component = np.repeat(np.arange(len(shares)), turns.count)[turns.order]
        together += np.cumsum(component[:, None] == np.arange(len(shares)), axis=0)
    wanted = lanes * np.outer(np.arange(1, DRAWS + 1), shares)
    return float(np.abs(together - wanted).max())


@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("weights", [[1, 1], [0.7, 0.3], [0.98, 0.02], [math.pi, 1]])
def test_two_components_are_within_one_item_after_any_number_of_draws(weights, lanes) -> None:
    assert furthest(weights, lanes) <= 1.0 + 1e-9


@pytest.mark.parametrize("weights", [[1, 1, 1], [0.6, 0.3, 0.1], [1] * 10, [3, 1, 1, 1, 1]])
def test_more_components_are_near_their_share(weights) -> None:
    assert furthest(weights, 64) <= 12


def test_each_component_spreads_evenly_over_the_lanes() -> None:
    phases = lane_phases([3, 2, 1], [7, 8, 9], 16)
    even = (np.arange(16) + 0.5) / 16
    assert np.allclose(np.sort(phases, axis=0), even[:, None])


def test_one_lane_draws_in_the_middle_of_each_interval() -> None:
    assert lane_phases([1, 1, 1], [1, 2, 3], 1).tolist() == [[0.5, 0.5, 0.5]]
