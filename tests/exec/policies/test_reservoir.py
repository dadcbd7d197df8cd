"""The streaming shuffle against its loop, and how well it shuffles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, held_after, plain, streams
from tests.exec.policies.known import Known
from zephon import seeds
from zephon.exec.policies.policy import AT_END, Units
from zephon.exec.policies.reservoir import Reservoir, first_window

SIZES = st.sampled_from([1, 2, 3, 5, 17, 40, 64, 200])


def obvious(units, buffer_size, seed, stage, lane):
    key = seeds.key(seed, "shuffle", stage, lane)
    window, held, out = max(1, min(128, buffer_size // 16)), [], []
    for row, trigger in plain(units):
        held.append(row)
        if len(held) == window:
            chance = int(seeds.subkeys(key, len(out))[0]) >> 32
            victim = chance * window >> 32
            held[victim], held[-1] = held[-1], held[victim]
            out.append((held.pop(), trigger))
            window = min(window + 1, buffer_size)
    order = np.argsort(seeds.subkeys(seeds.key(key, "end", len(units)), np.arange(len(held))))
    return out + [(held[place], AT_END) for place in order]


@settings(deadline=None, max_examples=40)
@given(streams(), SIZES, GROUPINGS, st.integers(0, 3))
def test_it_is_its_loop_however_units_are_pushed(stream, buffer_size, groups, lane):
    known, units = stream
    policy = Reservoir(buffer_size=buffer_size, seed=5, stage=2)
    assert feed(policy, units, known, groups, lane=lane)[0] == obvious(
        units, buffer_size, 5, 2, lane
    )


@settings(deadline=None, max_examples=40)
@given(streams(), SIZES, GROUPINGS, st.data())
def test_a_state_written_down_anywhere_is_the_same_and_goes_on_in_the_same_way(
    stream, buffer_size, groups, data
):
    known, units = stream
    at = data.draw(st.integers(0, len(units)))
    policy = Reservoir(buffer_size=buffer_size, seed=1, stage=0)
    assert held_after(policy, units, known, groups, at) == held_after(policy, units, known, [1], at)
    resumed, _ = feed(policy, units, known, groups, resume_at=at)
    assert resumed == feed(policy, units, known, groups)[0]


@pytest.mark.parametrize("buffer_size", [300, 3000])
def test_long_streams_are_their_loop_too(buffer_size):
    known = Known(np.arange(20_000) % 7)
    policy = Reservoir(buffer_size=buffer_size, seed=3, stage=0)
    wanted = obvious(known.units(), buffer_size, 3, 0, 0)
    for groups in ([1000], [4999, 17, 3, 6000]):
        assert feed(policy, known.units(), known, groups)[0] == wanted
    assert feed(policy, known.units(), known, [777], resume_at=9000)[0] == wanted


def test_a_buffer_of_one_changes_nothing():
    known = Known([4] * 50)
    out, _ = feed(Reservoir(buffer_size=1, seed=0, stage=0), known.units(), known, [7])
    assert out == plain(known.units())


def test_the_first_leaves_at_the_first_window_then_every_second_arrival_until_it_is_whole():
    known = Known([1] * 300)
    out, _ = feed(Reservoir(buffer_size=64, seed=0, stage=0), known.units(), known, [300])
    triggers = [trigger for _, trigger in out if trigger != AT_END]
    assert first_window(64) == 4
    assert triggers == [*range(3, 3 + 2 * 60, 2), *range(3 + 2 * 60, 300)]


def arrivals(buffer_size, count, seed=0, stage=0, lane=0):
    known = Known(np.ones(count))
    policy = Reservoir(buffer_size=buffer_size, seed=seed, stage=stage)
    state = policy.make_state(lane)
    out = [policy.push(state, known.units(), known), policy.finish(state, known)]
    return Units.concat(out).seq


def test_no_unit_leaves_a_window_early_and_the_wait_is_as_long_as_chance_makes_it():
    size, count = 256, 40_000
    seqs = arrivals(size, count)
    assert np.array_equal(np.sort(seqs), np.arange(count))
    later = np.arange(count) - seqs
    assert later.min() >= -(size - 1)
    waits = later[2 * size : count - size] + size - 1  # arrivals while it was held
    # Each arrival picks one of ``size``: a geometric wait of mean size - 1.
    assert abs(waits.mean() / (size - 1) - 1) < 0.03
    assert abs((waits > size).mean() - (1 - 1 / size) ** (size + 1)) < 0.01
    assert abs((waits > 3 * size).mean() - (1 - 1 / size) ** (3 * size + 1)) < 0.005


def test_all_places_are_chosen_alike_and_neighbours_do_not_stay_together():
    seqs = arrivals(64, 64_000)
    steady = seqs[1000:-64]
    apart = np.abs(np.diff(steady))
    assert (apart == 1).mean() < 3 / 64
    key = seeds.key(0, "shuffle", 0, 0)
    victims = (seeds.subkeys(key, np.arange(1000, 60_000)) >> np.uint64(32)) * np.uint64(64)
    counts = np.bincount((victims >> np.uint64(32)).astype(int), minlength=64)
    expected = counts.mean()
    assert ((counts - expected) ** 2 / expected).sum() < 103  # chi-square, 63 degrees, p = 0.001


def test_seed_stage_and_lane_each_change_the_order():
    orders = [arrivals(32, 200), arrivals(32, 200, seed=1)]
    orders += [arrivals(32, 200, stage=1), arrivals(32, 200, lane=1)]
    assert len({tuple(order.tolist()) for order in orders}) == 4


def test_the_end_of_a_lane_is_shuffled_evenly():
    first = [int(arrivals(64, 3, lane=lane)[0]) for lane in range(3000)]
    counts = np.bincount(first, minlength=3)
    assert ((counts - 1000) ** 2 / 1000).sum() < 13.8  # chi-square, 2 degrees, p = 0.001


def test_a_push_costs_its_own_size_and_what_left_is_cleared_away():
    known = Known(np.ones(60_000))
    policy = Reservoir(buffer_size=512, seed=0, stage=0)
    state = policy.make_state(0)
    for at in range(0, 60_000, 100):
        policy.push(state, known.units(at, at + 100), known)
    assert state.store._table.shape[1] <= 8192
