"""Courses against sums of small slices of time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.course import Courses


def random_courses(seed: int, *, components: int, pieces: int, linear: bool) -> Courses:
    rng = seeds.generator(seed)
    times = np.concatenate(([0.0], np.cumsum(rng.random(pieces - 1) * 100 + 1)))
    left = rng.random((components, pieces)) * (rng.random((components, pieces)) > 0.3)
    left[0] += 0.1
    left /= left.sum(axis=0)
    right = left.copy()
    if linear:
        right[:, :-1] = left[:, 1:]
    return Courses.of(times, left, right, 1 + rng.random(components) * 9)


SHAPES = st.tuples(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.booleans())


def made(shape: tuple[int, int, int, bool]) -> Courses:
    seed, components, pieces, linear = shape
    return random_courses(seed, components=components, pieces=pieces, linear=linear)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.floats(0, 1200))
def test_a_course_adds_up_the_weights_in_force(shape, time) -> None:
    courses = made(shape)
    slices = np.linspace(0.0, time, 2001)
    middles = (slices[1:] + slices[:-1]) / 2
    rates = np.array([courses.weights_at(middle) for middle in middles]) / courses.costs
    added = (rates * np.diff(slices)[:, None]).sum(axis=0)
    assert courses.at(time) == pytest.approx(added, abs=2e-3 * max(time, 1.0))


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.lists(st.just(0.0) | st.floats(1e-6, 1500), min_size=1, max_size=20))
def test_reached_is_the_earliest_time(shape, amounts) -> None:
    courses = made(shape)
    amounts = np.sort(np.array(amounts))
    for component in range(courses.components):
        times = courses.reached(component, amounts)
        assert (np.diff(times[np.isfinite(times)]) >= 0).all()
        for amount, time in zip(amounts.tolist(), times.tolist(), strict=True):
            if np.isinf(time):
                assert courses.ending[component]
                assert courses.at(np.inf)[component] < amount + 1e-9
                continue
            assert courses.at(time)[component] == pytest.approx(amount, rel=1e-9, abs=1e-7)
            if time > 1e-3:
                assert courses.at(time - 1e-3)[component] <= amount + 1e-9


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.lists(st.floats(0, 500), min_size=1, max_size=20), st.data())
def test_one_formula_for_one_component_and_for_many(shape, amounts, data) -> None:
    courses = made(shape)
    which = data.draw(
        st.lists(
            st.integers(0, courses.components - 1), min_size=len(amounts), max_size=len(amounts)
        )
    )
    together = courses.reached(np.array(which), np.array(amounts))
    apart = [
        float(courses.reached(component, np.array([amount]))[0])
        for component, amount in zip(which, amounts, strict=True)
    ]
    assert together.tolist() == apart


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.floats(0, 900), st.data())
def test_a_rebased_course_goes_on_without_those_that_left(shape, time, data) -> None:
    courses = made(shape)
    live = np.array(data.draw(st.lists(st.booleans(), min_size=courses.components,
                                       max_size=courses.components)))  # fmt: skip
    live[0] = True
    later = courses.rebased(time, live)
    assert later.at(0.0).tolist() == [0.0] * courses.components
    for past in (0.0, 7.0, 63.0, 5000.0):
        weights = later.weights_at(past)
        assert (weights[~live] == 0.0).all()
        assert weights.sum() == pytest.approx(1.0) or weights.sum() == 0.0
    if live.all():
        gained = courses.at(time + 40.0) - courses.at(time)
        assert later.at(40.0) == pytest.approx(gained, abs=1e-6)


def test_the_others_share_the_weight_in_proportion() -> None:
    later = Courses.constant([0.5, 0.3, 0.2]).rebased(10.0, np.array([False, True, True]))
    assert later.weights_at(0.0) == pytest.approx([0.0, 0.6, 0.4])


def test_weights_that_rise_from_nothing_have_the_shares_they_rise_to() -> None:
    times = np.array([0.0, 100.0])
    left = np.array([[1.0, 0.2], [0.0, 0.6], [0.0, 0.2]])
    right = np.array([[0.2, 0.2], [0.6, 0.6], [0.2, 0.2]])
    later = Courses.of(times, left, right, np.ones(3)).rebased(0.0, np.array([False, True, True]))
    assert later.weights_at(0.0) == pytest.approx([0.0, 0.75, 0.25])
    assert later.weights_at(50.0) == pytest.approx([0.0, 0.75, 0.25])


def test_a_weight_of_zero_reaches_nothing() -> None:
    courses = Courses.constant([1.0, 0.0])
    assert courses.reached(1, np.array([0.0, 0.5])).tolist() == [0.0, np.inf]
    assert courses.ending.tolist() == [False, True]


def test_costs_slow_a_course_down() -> None:
    courses = Courses.constant([0.5, 0.5], [10.0, 1000.0])
    assert courses.at(2000.0).tolist() == [100.0, 1.0]
    assert courses.reached(1, np.array([1.0])).tolist() == [2000.0]
