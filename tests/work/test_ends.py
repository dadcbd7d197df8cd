"""Stretches against a lane that is walked one draw at a time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.course import Courses
from zephon.work.ends import Base, Bounds, Stretch, stretches

MOST = 400


def walk(
    courses: Courses, phases: np.ndarray, bounds: list[Bounds], since: Base | None = None
) -> tuple[list[int], bool]:
    """Draw by draw: whose turn it is, and whether the lane ended within ``MOST`` draws."""
    size = len(bounds)
    drawn = [0] * size if since is None else since.drawn.tolist()
    base = list(drawn)
    live = np.array(
        [each.finish is None or each.finish > drawn[c] for c, each in enumerate(bounds)]
    )
    if since is not None or not live.all():
        courses = courses.rebased(0.0 if since is None else since.time, live)
    order: list[int] = []
    waits = any(each.must is not None for each in bounds)
    while live.any() and len(order) < MOST:
        due = [
            float(courses.reached(c, np.array([drawn[c] - base[c] + phases[c]]))[0])
            if live[c]
            else math.inf
            for c in range(size)
        ]
        held_up = [
            c for c in range(size) if live[c] and drawn[c] < (bounds[c].must or 0)
            and due[c] < math.inf
        ]  # fmt: skip
        if waits and not held_up:
            return order, True
        component = min(range(size), key=lambda c: (due[c], c))
        bound = bounds[component]
        if due[component] == math.inf or drawn[component] == bound.stop:
            return order, True
        order.append(component)
        drawn[component] += 1
        if drawn[component] == bound.finish:
            live[component] = False
            courses = courses.rebased(due[component], live)
            base = list(drawn)
    return order, not live.any()


def laid_out(parts: tuple[Stretch, ...]) -> tuple[list[int], bool]:
    order: list[int] = []
    most = MOST + (parts[0].start if parts else 0)
    for part in parts:
        stop = most if part.stop is None else min(part.stop, most)
        if stop > part.start:
            turns = part.interleave.turns(0, stop - part.start)
            component = np.repeat(np.arange(len(turns.count)), turns.count)[turns.order]
            order += component.tolist()
    ends = not parts or (parts[-1].stop is not None and parts[-1].stop <= most)
    return order, ends


def random_lane(seed: int, *, schedule: bool) -> tuple[Courses, np.ndarray, list[Bounds]]:
    rng = seeds.generator(seed)
    size = int(rng.integers(1, 6))
    pieces = int(rng.integers(2, 6)) if schedule else 1
    times = np.concatenate(([0.0], np.cumsum(rng.integers(1, 40, pieces - 1).astype(float))))
    left = rng.random((size, pieces))
    if schedule:
        left *= rng.random((size, pieces)) > 0.3
        left[int(rng.integers(size))] += 0.05
    left /= left.sum(axis=0)
    right = left.copy()
    if schedule and seed % 2:
        right[:, :-1] = left[:, 1:]
    costs = np.ones(size) if seed % 3 else 1 + 9 * rng.random(size)

    def maybe(rows: int) -> int | None:
        return int(rng.integers(0, rows)) if rng.random() < 0.5 else None

    must = rng.random() < 0.4
    bounds = [
        Bounds(
            finish=maybe(60),
            stop=None if must else maybe(150),
            must=int(rng.integers(0, 80)) if must else None,
        )
        for _ in range(size)
    ]
    return Courses.of(times, left, right, costs), rng.random(size) * 0.98 + 0.01, bounds


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_lane_is_what_walking_it_gives(seed, schedule) -> None:
    courses, phases, bounds = random_lane(seed, schedule=schedule)
    expected, ended = walk(courses, phases, bounds)
    order, ends = laid_out(stretches(courses, phases, bounds))
    assert order == expected
    assert ends == ended or len(order) == MOST


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(0, 300))
def test_a_lane_that_goes_on_somewhere_is_what_walking_it_gives(seed, schedule, start) -> None:
    courses, phases, bounds = random_lane(seed, schedule=schedule)
    rng = seeds.generator(seed + 1)
    shares = rng.random(len(bounds))
    drawn = (start * shares / shares.sum()).astype(np.int64)
    for number, bound in enumerate(bounds):
        limit = min((each for each in (bound.finish, bound.stop) if each is not None), default=None)
        drawn[number] = min(drawn[number], start if limit is None else limit)
    base = Base(int(drawn.sum()), float((drawn * courses.costs).sum()), drawn)
    expected, ended = walk(courses, phases, bounds, base)
    parts = stretches(courses, phases, bounds, base)
    order, ends = laid_out(parts)
    assert parts[0].start == base.start
    assert order == expected
    assert ends == ended or len(order) == MOST


HALF = np.array([0.5, 0.5, 0.5])


def test_a_component_without_rows_is_finished_before_the_first_draw() -> None:
    bounds = [Bounds(finish=0), Bounds(finish=2), Bounds(finish=1)]
    parts = stretches(Courses.constant([0.9, 0.05, 0.05]), HALF, bounds)
    assert laid_out(parts) == ([1, 2, 1], True)


def test_a_lane_stops_just_before_the_draw_without_a_row() -> None:
    parts = stretches(Courses.constant([0.75, 0.25]), HALF[:2], [Bounds(), Bounds(stop=1)])
    # The second row of the lesser one would be draw 6.
    assert laid_out(parts) == ([0, 0, 1, 0, 0, 0], True)


def test_a_finished_component_needs_no_row_more() -> None:
    both = [Bounds(), Bounds(finish=1, stop=1)]
    parts = stretches(Courses.constant([0.75, 0.25]), HALF[:2], both)
    assert [part.stop for part in parts] == [3, None]


def test_nobody_waits_for_a_component_that_is_finished() -> None:
    must = [Bounds(must=3), Bounds(must=1000, finish=2)]
    parts = stretches(Courses.constant([0.5, 0.5]), HALF[:2], must)
    assert laid_out(parts) == ([0, 1, 0, 1, 0], True)


def test_nobody_waits_for_a_component_whose_weight_is_gone() -> None:
    times = np.array([0.0, 10.0])
    weights = np.array([[0.5, 1.0], [0.5, 0.0]])
    courses = Courses.of(times, weights, weights, np.ones(2))
    parts = stretches(courses, HALF[:2], [Bounds(must=20), Bounds(must=1000)])
    order, ends = laid_out(parts)
    assert ends
    assert (order.count(0), order.count(1)) == (20, 5)


def test_three_hundred_components_that_end_one_after_another() -> None:
    weights = np.full(300, 1 / 300)
    bounds = [Bounds(finish=number % 7) for number in range(300)]
    parts = stretches(Courses.constant(weights), np.full(300, 0.5), bounds)
    assert parts[-1].stop == sum(number % 7 for number in range(300))


@pytest.mark.parametrize("must", [None, 0, 5])
def test_no_components_that_last(must) -> None:
    parts = stretches(Courses.constant([1.0]), HALF[:1], [Bounds(must=must)])
    assert parts[0].stop == must


def test_a_stretch_says_what_was_drawn_before_it() -> None:
    courses = Courses.constant([0.5, 0.5])
    first, second = stretches(courses, HALF[:2], [Bounds(finish=4), Bounds(must=10**6)])
    assert first.drawn.tolist() == [0, 0]
    assert (first.stop, second.start) == (7, 7)
    assert second.drawn.tolist() == [4, 3]
