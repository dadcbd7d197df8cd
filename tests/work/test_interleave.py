import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.course import Courses
from zephon.work.interleave import Interleave
from zephon.work.phases import lane_phases

WEIGHTS = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=50)


def make(weights: list[float], lane: int = 0, lanes: int = 1) -> Interleave:
    total = math.fsum(weights)
    phases = lane_phases(weights, range(len(weights)), lanes)[lane]
    return Interleave(Courses.constant([w / total for w in weights]), np.array(phases))


def changing(seed: int, lane: int, lanes: int) -> Interleave:
    """Weights that change at some points, by steps or along lines, some of them to zero."""
    rng = seeds.generator(seed)
    components, pieces = int(rng.integers(1, 8)), int(rng.integers(1, 12))
    times = np.concatenate(([0.0], np.cumsum(rng.integers(1, 40, pieces - 1).astype(float))))
    left = rng.random((components, pieces)) * (rng.random((components, pieces)) > 0.3)
    left[0] += 0.05
    left /= left.sum(axis=0)
    right = left.copy()
    if seed % 2:
        right[:, :-1] = left[:, 1:]
    costs = np.ones(components) if seed % 3 else 1 + 9 * rng.random(components)
    phases = lane_phases(left[:, 0].tolist(), range(components), lanes)[lane]
    return Interleave(Courses.of(times, left, right, costs), np.array(phases))


def drawn(interleave: Interleave, start: int, count: int) -> list[tuple[int, int]]:
    """The draws as (component, item)."""
    turns = interleave.turns(start, count)
    component = np.repeat(np.arange(len(turns.count)), turns.count)
    item = np.concatenate(
        [np.arange(first, first + n) for first, n in zip(turns.first, turns.count, strict=True)]
    )
    return list(zip(component[turns.order].tolist(), item[turns.order].tolist(), strict=True))


def slow_draws(interleave: Interleave, count: int) -> list[tuple[int, int]]:
    due = [
        (time, component, k)
        for component in range(interleave.courses.components)
        for k, time in enumerate(interleave.due(component, np.arange(count)).tolist())
    ]
    return [(component, k) for time, component, k in sorted(due)[:count] if time < math.inf]


INTERLEAVES = st.one_of(
    st.builds(make, WEIGHTS, st.integers(0, 6), st.just(7)),
    st.builds(changing, st.integers(0, 10**6), st.integers(0, 6), st.just(7)),
)


@settings(max_examples=60, deadline=None)
@given(INTERLEAVES, st.integers(0, 119))
def test_draws_are_sorted_by_due_time_then_component(interleave, start) -> None:
    walk = slow_draws(interleave, 120)
    assert drawn(interleave, 0, 120) == walk
    assert drawn(interleave, start, 120 - start) == walk[start:]


@settings(max_examples=80, deadline=None)
@given(INTERLEAVES, st.integers(0, 10**12), st.integers(0, 300), st.integers(1, 300))
def test_a_seek_gives_what_a_walk_gives(interleave, start, first, second) -> None:
    together = drawn(interleave, start, first + second)
    assert together[first:] == drawn(interleave, start + first, second)
    assert together[:first] == (drawn(interleave, start, first) if first else [])
    # Each component's items follow each other without a gap.
    for component in range(interleave.courses.components):
        items = [item for c, item in together if c == component]
        assert items == list(range(items[0], items[0] + len(items))) if items else True


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, st.integers(1, 70), st.integers(0, 3000) | st.integers(0, 10**12), st.data())
def test_a_lane_keeps_near_its_target_at_any_position(weights, lanes, position, data) -> None:
    interleave = make(weights, data.draw(st.integers(0, lanes - 1)), lanes)
    counts = np.zeros(len(weights))
    for component, item in drawn(interleave, position, 3 * len(weights)):
        if not counts[component]:
            counts[component] = item + 1
    targets = interleave.courses.weights_at(0.0) * position
    for target, drawn_before in zip(targets, counts, strict=True):
        if drawn_before:
            assert abs(drawn_before - 1 - target) <= len(weights) + 1 + 1e-3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 600))
def test_a_lane_keeps_near_weights_that_change(seed, position) -> None:
    interleave = changing(3 * seed + 1, 3, 7)  # costs of one: time counts draws
    components = interleave.courses.components
    found = [component for component, _ in drawn(interleave, 0, position)]
    counts = np.bincount(found, minlength=components)
    assert np.abs(counts - interleave.courses.at(float(position))).max() <= components + 1


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, st.integers(1, 70), st.floats(0, 1e6))
def test_all_lanes_together_are_within_one_item_at_any_lane_time(weights, lanes, time) -> None:
    every_lane = [make(weights, lane, lanes) for lane in range(lanes)]
    together = sum(interleave.count_until(time) for interleave in every_lane)
    target = every_lane[0].courses.at(time) * lanes
    assert np.abs(together - target).max() <= 1 + 1e-6


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20), st.floats(0, 600))
def test_so_they_are_where_weights_change(seed, lanes, time) -> None:
    every_lane = [changing(seed, lane, lanes) for lane in range(lanes)]
    together = sum(interleave.count_until(time) for interleave in every_lane)
    target = every_lane[0].courses.at(time) * lanes
    assert np.abs(together - target).max() <= 1 + 1e-6


def test_every_prefix_is_mixed_even_without_any_shuffle() -> None:
    components = [component for component, _ in drawn(make([0.5, 0.5]), 0, 20)]
    assert components == [0, 1] * 10


def test_ties_go_to_the_earlier_component() -> None:
    assert [c for c, _ in drawn(make([1.0, 1.0, 1.0]), 0, 6)] == [0, 1, 2, 0, 1, 2]


def test_a_tiny_weight_gets_its_turn() -> None:
    interleave = make([1e-3, 0.999])
    components = [component for component, _ in drawn(interleave, 0, 2000)]
    assert components.count(0) == 2
    assert components.index(0) in range(498, 503)


@settings(max_examples=100, deadline=None)
@given(INTERLEAVES, st.floats(0, 1e12))
def test_counts_follow_from_comparing_due_times(interleave, time) -> None:
    every = np.arange(interleave.courses.components)
    for at in (time, float(interleave.due(0, interleave.count_until(time)[:1])[0])):
        if math.isinf(at):
            continue
        through = interleave.count_until(at)
        before = interleave.count_until(at, np.ones(len(every), bool))
        assert (interleave.due(every, through) > at).all()
        assert ((through == 0) | (interleave.due(every, np.maximum(through - 1, 0)) <= at)).all()
        assert (interleave.due(every, before) >= at).all()
        assert ((before == 0) | (interleave.due(every, np.maximum(before - 1, 0)) < at)).all()


@settings(max_examples=60, deadline=None)
@given(INTERLEAVES, st.integers(0, 119))
def test_the_draws_before_an_item_are_those_before_it(interleave, place) -> None:
    walk = drawn(interleave, 0, 120)
    counts = interleave.counts_before(*walk[place])
    before = [component for component, _ in walk[:place]]
    assert counts.tolist() == np.bincount(before, minlength=len(counts)).tolist()


@settings(max_examples=60, deadline=None)
@given(INTERLEAVES, st.data())
def test_first_and_last_of_some_items(interleave, data) -> None:
    components = interleave.courses.components
    items = data.draw(st.lists(st.integers(-1, 9), min_size=components, max_size=components))
    walk = slow_draws(interleave, 1200)
    meant = [(c, item) for c, item in enumerate(items) if item >= 0]
    places = {pair: walk.index(pair) for pair in meant if pair in walk}
    first, last = (find(np.array(items)) for find in (interleave.first_of, interleave.last_of))
    if not meant:
        assert first is None and last is None
    elif len(places) == len(meant):
        assert first is not None and last is not None
        assert first[0] == min(meant, key=places.__getitem__)[0]
        assert last[0] == max(meant, key=places.__getitem__)[0]


def test_an_item_that_is_never_due_is_not_the_first() -> None:
    gone = Interleave(Courses.constant([1.0, 0.0]), np.array([0.5, 0.5]))
    assert gone.first_of(np.array([-1, 0])) is None
    assert gone.count_until(math.inf)[1] == 0


def test_a_shift_of_all_weight_is_followed_at_once() -> None:
    times = np.array([0.0, 10.0])
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    both = Interleave(Courses.of(times, weights, weights, np.ones(2)), np.array([0.5, 0.5]))
    assert drawn(both, 0, 20) == [(0, k) for k in range(10)] + [(1, k) for k in range(10)]


def test_one_component_takes_every_turn() -> None:
    alone = make([3.0])
    assert drawn(alone, 10**15, 3) == [(0, 10**15 + k) for k in range(3)]
    assert pytest.approx(1.0) == alone.courses.weights_at(0.0)[0]


def test_a_dear_component_makes_no_more_candidates_of_a_cheap_one() -> None:
    courses = Courses.constant([0.5, 0.5], [1.0, 1e7])
    both = Interleave(courses, np.array([0.5, 0.5]))
    for position in (0, 10**7, 10**12):
        assert both.turns(position, 1).count.sum() <= 8


@settings(max_examples=40, deadline=None)
@given(INTERLEAVES, st.integers(0, 500), st.integers(1, 100))
def test_the_times_of_draws_are_when_they_are_due(interleave, start, count) -> None:
    due = [
        float(interleave.due(component, np.array([item]))[0])
        for component, item in drawn(interleave, start, count)
    ]
    assert interleave.times(start, count).tolist() == due
