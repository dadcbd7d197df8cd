import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon.work.interleave import Interleave, Pace
from zephon.work.phases import lane_phases

WEIGHTS = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=50)


def make(weights: list[float], lane: int = 0, lanes: int = 1) -> Interleave:
    total = math.fsum(weights)
    phases = lane_phases(weights, range(len(weights)), lane, lanes)
    return Interleave(tuple(map(Pace, [w / total for w in weights], phases)))


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
        (pace.due(float(k)), component, k)
        for component, pace in enumerate(interleave.paces)
        for k in range(count)
    ]
    return [(component, k) for _, component, k in sorted(due)[:count]]


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, st.integers(1, 70), st.data())
def test_draws_are_sorted_by_due_time_then_component(
    weights: list[float], lanes: int, data: st.DataObject
) -> None:
    interleave = make(weights, data.draw(st.integers(0, lanes - 1)), lanes)
    walk = slow_draws(interleave, 120)
    assert drawn(interleave, 0, 120) == walk
    start = data.draw(st.integers(0, 119))
    assert drawn(interleave, start, 120 - start) == walk[start:]


@settings(max_examples=80, deadline=None)
@given(WEIGHTS, st.integers(0, 10**12), st.integers(0, 300), st.integers(1, 300))
def test_a_seek_gives_what_a_walk_gives(
    weights: list[float], start: int, first: int, second: int
) -> None:
    interleave = make(weights, 5, 64)
    together = drawn(interleave, start, first + second)
    assert together[first:] == drawn(interleave, start + first, second)
    assert together[:first] == (drawn(interleave, start, first) if first else [])
    # Each component's items follow each other without a gap.
    for component in range(len(weights)):
        items = [item for c, item in together if c == component]
        assert items == list(range(items[0], items[0] + len(items))) if items else True


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, st.integers(1, 70), st.integers(0, 3000) | st.integers(0, 10**12), st.data())
def test_a_lane_keeps_near_its_target_at_any_position(
    weights: list[float], lanes: int, position: int, data: st.DataObject
) -> None:
    interleave = make(weights, data.draw(st.integers(0, lanes - 1)), lanes)
    counts = np.zeros(len(weights))
    for component, item in drawn(interleave, position, 3 * len(weights)):
        if not counts[component]:
            counts[component] = item + 1
    for pace, drawn_before in zip(interleave.paces, counts, strict=True):
        if drawn_before:
            target = pace.weight * position
            assert abs(drawn_before - 1 - target) <= len(weights) + 1 + 1e-3


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, st.integers(1, 70), st.floats(0, 1e6))
def test_all_lanes_together_are_within_one_item_at_any_lane_time(
    weights: list[float], lanes: int, time: float
) -> None:
    every_lane = [make(weights, lane, lanes).paces for lane in range(lanes)]
    for paces in zip(*every_lane, strict=True):
        together = sum(pace.count_until(time) for pace in paces)
        assert abs(together - paces[0].weight * time * lanes) <= 1 + 1e-6


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
@given(st.floats(1e-9, 1.0), st.floats(0.001, 0.999), st.floats(0, 1e15))
def test_counts_follow_from_comparing_due_times(weight: float, phase: float, time: float) -> None:
    pace = Pace(weight, phase)
    for at in (time, pace.due(float(pace.count_until(time)))):
        through, before = pace.count_until(at), pace.count_until(at, before=True)
        assert pace.due(float(through)) > at
        assert through == 0 or pace.due(float(through - 1)) <= at
        assert pace.due(float(before)) >= at
        assert before == 0 or pace.due(float(before - 1)) < at


def test_one_formula_for_numbers_and_arrays() -> None:
    pace = Pace(0.3, (7 + 0.5) / 64)
    numbers = np.array([0, 1, 2, 10**12, 2**53 - 1], dtype=np.float64)
    assert pace.due(numbers).tolist() == [pace.due(float(number)) for number in numbers]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=8), st.data())
def test_draws_through_an_item_end_with_it(weights: list[float], data: st.DataObject) -> None:
    interleave = make(weights, 3, 8)
    items = data.draw(
        st.lists(st.none() | st.integers(0, 30), min_size=len(weights), max_size=len(weights))
    )
    length = interleave.draws_through(items)
    wanted = {(c, item) for c, item in enumerate(items) if item is not None}
    if not wanted:
        assert length == 0
        return
    walk = drawn(interleave, 0, length)
    assert len(walk) == length
    assert wanted <= set(walk)
    assert walk[-1] in wanted
