import pickle
from fractions import Fraction

import numpy as np
import pytest

from zephon.errors import PlanError
from zephon.work import MixtureSpec
from zephon.work.schedule import MixtureSchedule

HALF = {"a": 1, "b": 1}


def test_points_are_sorted_and_weights_scaled() -> None:
    schedule = MixtureSchedule([(20, HALF), (5.0, {"a": 3, "b": 1})], unit="tokens")
    assert [position for position, _ in schedule.points] == [5.0, 20.0]
    assert schedule.recipe() == {
        "unit": "tokens",
        "interpolation": "step",
        "points": [[5.0, {"a": 0.75, "b": 0.25}], [20.0, {"a": 0.5, "b": 0.5}]],
    }


def test_equal_schedules_are_equal_and_survive_pickling() -> None:
    one = MixtureSchedule({5: {"a": 3, "b": 1}})
    other = MixtureSchedule([(5, MixtureSpec({"a": 0.75, "b": 0.25}))])
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != MixtureSchedule({5: {"a": 3, "b": 1}}, interpolation="linear")
    assert one != "schedule"


@pytest.mark.parametrize(
    ("points", "how", "message"),
    [
        ({}, {}, "points must hold at least one point, got none"),
        (5, {}, "points must map positions to weights, got 5"),
        ([5], {}, "points must map positions to weights"),
        ({-1: HALF}, {}, "a position must be a finite number from 0 to 2.53, got -1"),
        ({float("nan"): HALF}, {}, "finite number"),
        ({"10": HALF}, {}, "finite number from 0 to 2.53, got '10'"),
        ({True: HALF}, {}, "finite number from 0 to 2.53, got True"),
        ({10**400: HALF}, {}, "finite number from 0 to 2.53"),
        ({2.0**53 * 1.5: HALF}, {}, "finite number from 0 to 2.53"),
        ([(5, HALF), (5.0, HALF)], {}, "two points at 5"),
        ([(2**52, HALF), (Fraction(2**54 + 1, 4), HALF)], {}, "two points at 4503599627370496;"),
        ({5: {"a": -1}}, {}, "weight for component 'a' must be positive"),
        ({5: {"a": 0}}, {}, "at least one weight must be positive"),
        (
            {5: HALF},
            {"unit": "token"},
            "unit must be one of .*, got 'token'; did you mean 'tokens'",
        ),
        ({5: HALF}, {"unit": None}, "unit must be one of"),
        ({5: HALF}, {"interpolation": "cubic"}, "interpolation must be one of 'step', 'linear'"),
    ],
    ids=str,
)
def test_a_wrong_schedule_is_named(points, how, message) -> None:
    with pytest.raises(PlanError, match=message):
        MixtureSchedule(points, **how)


def courses(schedule: MixtureSchedule, scale: float = 1.0):
    return schedule.courses(
        ["a", "b"], ["a", "b"], MixtureSpec({"a": 1, "b": 0}), scale=scale, costs=np.ones(2)
    )


def test_steps_hold_until_the_next_point() -> None:
    made = courses(MixtureSchedule({10: HALF, 20: {"a": 0, "b": 1}}))
    assert [made.weights_at(t).tolist() for t in (0, 9.9, 10, 19.9, 20, 1e9)] == [
        [1, 0], [1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1], [0, 1],
    ]  # fmt: skip


def test_lines_go_from_the_mixture_to_the_last_point_and_stay() -> None:
    made = courses(MixtureSchedule({10: HALF, 20: {"a": 0, "b": 1}}, interpolation="linear"))
    assert made.weights_at(5) == pytest.approx([0.75, 0.25])
    assert made.weights_at(15) == pytest.approx([0.25, 0.75])
    assert made.weights_at(50).tolist() == [0, 1]


def test_the_scale_turns_positions_into_lane_time() -> None:
    made = courses(MixtureSchedule({10: {"a": 0, "b": 1}}, unit="steps"), scale=48 / 4)
    assert made.weights_at(119.9).tolist() == [1, 0]
    assert made.weights_at(120.0).tolist() == [0, 1]


def test_a_point_at_zero_may_repeat_the_mixture() -> None:
    rounded = MixtureSchedule({0: {"a": 0.1, "b": 0.6}, 9: HALF})
    rounded.validate_for(["a", "b"], MixtureSpec({"a": 1, "b": 6}))
    schedule = MixtureSchedule({0: {"a": 5, "b": 0}, 10: HALF})
    schedule.validate_for(["a", "b"], MixtureSpec({"a": 1, "b": 0}))
    assert len(courses(schedule).times) == 2


def test_a_point_too_far_for_a_lane_is_refused() -> None:
    with pytest.raises(PlanError, match=r"must lie within 2\^53 draws or tokens of a lane"):
        courses(MixtureSchedule({2**50: HALF}, unit="steps"), scale=2.0**20)
