"""The whole source against a slow version that deals, shuffles and merges row by row."""

import itertools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.errors import ExecutionError
from zephon.work import StaticMixtureWorkSource
from zephon.work import lane as lane_module
from zephon.work.order.permutation import Permutation
from zephon.work.phases import lane_phases
from zephon.work.refs import Refs

SHARDS = st.lists(st.integers(0, 80) | st.integers(0, 6), min_size=1, max_size=8).filter(any)


def listed(refs: Refs) -> list[tuple[int, int, int, int]]:
    columns = (refs.component, refs.pass_index, refs.shard, refs.row)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def slow_pass(name, rows, pass_index, *, seed, shuffle_shards, shuffle_within_shard, fresh):
    """One pass of a component as (pass, shard, row), in its order."""
    which = pass_index if fresh else 0
    with_rows = [shard for shard, count in enumerate(rows) if count]
    turn = np.arange(len(with_rows))
    if shuffle_shards:
        key = int(seeds.subkeys(seeds.key(seed, name, "shards"), which)[0])
        turn = Permutation(len(with_rows), key).at(turn)
    order = []
    for place in turn.tolist():
        row = np.arange(rows[with_rows[place]])
        if shuffle_within_shard:
            key = seeds.subkeys(seeds.subkeys(seeds.key(seed, name, "rows"), which), place)
            row = Permutation(len(row), int(key[0])).at(row)
        order += [(pass_index, with_rows[place], each) for each in row.tolist()]
    return order


def slow_stream(name, rows, lane, lanes, *, chunk_size, permuted, seed, fresh, **shuffles):
    """All rows of a component in a lane, for ever; and which pass each is of."""
    total = sum(rows)
    granule = max(1, min(chunk_size, total // (16 * lanes)))
    for pass_index in itertools.count():
        order = slow_pass(name, rows, pass_index, seed=seed, fresh=fresh, **shuffles)
        turn_key = seeds.subkeys(seeds.key(seed, name, "turns"), pass_index if fresh else 0)
        position = turn = 0
        while total - position >= 2 * lanes * granule:
            slots = np.arange(lanes)
            if permuted:
                turns = Permutation(lanes, int(seeds.subkeys(turn_key, turn)[0]))
                slots = np.argsort(turns.at(slots))
            start = position + int(slots[lane]) * granule
            yield from order[start : start + granule]
            position += lanes * granule
            turn += 1
        for rest in range(position, total):
            if (pass_index * total + rest) % lanes == lane:
                yield order[rest]


def slow_lane(shapes, weights, lane, lanes, stop_after_passes, **how):
    """A lane's draws, by taking the component that is due first, one draw at a time."""
    share = [weight / math.fsum(weights) for weight in weights]
    active = [c for c, weight in enumerate(weights) if weight > 0]
    streams = {c: slow_stream(f"d{c}", shapes[c], lane, lanes, **how) for c in active}
    heads = {c: next(streams[c]) for c in active}
    taken = dict.fromkeys(active, 0)
    keys = [seeds.key(9, f"d{c}", "phase") for c in active]
    phase = dict(
        zip(active, lane_phases([share[c] for c in active], keys, lanes)[lane], strict=True)
    )
    draws = []
    waiting = {c for c in active if heads[c][0] < stop_after_passes}
    while waiting:
        component = min(active, key=lambda c: ((taken[c] + phase[c]) / share[c], c))
        draws.append((component, *heads[component]))
        taken[component] += 1
        heads[component] = next(streams[component])
        if heads[component][0] >= stop_after_passes:
            waiting.discard(component)
    return draws


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(SHARDS, st.sampled_from([0.2, 0.5, 1.0, 3.0])), min_size=1, max_size=3),
    st.integers(1, 5) | st.integers(1, 70),
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from([1, 3, 16384]),
    st.integers(1, 2),
    st.data(),
)
def test_equals_the_slow_version(
    shape, parts, lanes, switches, chunk_size, stop_after_passes, data
) -> None:
    shuffle_shards, shuffle_within_shard, fresh, permuted = switches
    shapes, weights = [rows for rows, _ in parts], [weight for _, weight in parts]
    source = StaticMixtureWorkSource(
        [shape(f"d{c}", rows) for c, rows in enumerate(shapes)],
        {f"d{c}": weight for c, weight in enumerate(weights)},
        seed=9,
        chunk_size=chunk_size,
        shuffle_shards=shuffle_shards,
        shuffle_within_shard=shuffle_within_shard,
        reshuffle_on_repeat=fresh,
        stop_after_passes=stop_after_passes,
        lane_assignment="permute" if permuted else "modulo",
    )
    lane = data.draw(st.integers(0, lanes - 1))
    stream = source.lane_stream(lane, lanes)
    expected = slow_lane(
        shapes,
        weights,
        lane,
        lanes,
        stop_after_passes,
        chunk_size=chunk_size,
        permuted=permuted,
        seed=9,
        fresh=fresh,
        shuffle_shards=shuffle_shards,
        shuffle_within_shard=shuffle_within_shard,
    )
    refs = stream.draw(0, stream.length + 5)
    assert stream.length == len(expected)
    assert listed(refs) == expected
    assert refs.ordinal.tolist() == list(range(len(expected)))


@pytest.fixture(scope="module")
def big(shape) -> StaticMixtureWorkSource:
    rng = seeds.generator(5)
    datasets = [shape(f"d{c}", rng.integers(0, 10**9, size=200).tolist()) for c in range(12)]
    weights = {dataset.name: float(rng.random()) + 1e-3 for dataset in datasets}
    return StaticMixtureWorkSource(datasets, weights, shuffle_within_shard=True)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 70), st.integers(0, 10**11), st.integers(0, 400), st.integers(0, 400), st.data()
)
def test_a_part_of_a_draw_equals_the_whole(big, lanes, start, first, second, data) -> None:
    stream = big.lane_stream(data.draw(st.integers(0, lanes - 1)), lanes)
    start %= stream.length
    together = stream.draw(start, first + second)
    parts = [stream.draw(start, first), stream.draw(start + first, second)]
    apart = Refs.concat(parts)
    for name in Refs.__slots__:
        assert getattr(together, name).dtype == getattr(apart, name).dtype
        assert getattr(together, name).tolist() == getattr(apart, name).tolist()


def test_many_draws_are_put_together_from_blocks(big) -> None:
    stream = big.lane_stream(1, 3)
    count = 2 * lane_module.BLOCK + 100
    together = stream.draw(12_345, count)
    assert together.ordinal.tolist() == list(range(12_345, 12_345 + count))
    assert listed(together)[-50:] == listed(stream.draw(12_345 + count - 50, 50))


def test_threads_may_ask_at_once(big) -> None:
    stream = big.lane_stream(2, 8)
    starts = [(7919 * i * 10**6) % (stream.length - 500) for i in range(60)]
    expected = [listed(stream.draw(start, 500)) for start in starts]
    fresh = big.lane_stream(2, 8)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda start: listed(fresh.draw(start, 500)), starts)) == expected


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 64, 70])
def test_every_row_of_a_pass_is_drawn_once(shape, lanes) -> None:
    rows = {"a": [40, 0, 7, 300], "b": [3]}
    source = StaticMixtureWorkSource(
        [shape(name, counts) for name, counts in rows.items()],
        {"a": 0.6, "b": 0.4},
        stop_after_passes=2,
        shuffle_within_shard=True,
    )
    drawn = Counter(
        place
        for lane in range(lanes)
        for place in listed(source.lane_stream(lane, lanes).draw(0, 10**6))
    )
    assert max(drawn.values()) == 1
    for component, counts in enumerate(rows.values()):
        for pass_index in range(2):
            for shard, count in enumerate(counts):
                for row in range(count):
                    assert drawn[component, pass_index, shard, row] == 1


def test_a_lane_does_not_wait_for_a_component_that_it_has_no_row_of(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("few", [3]), shape("many", [6400])], {"few": 0.001, "many": 0.999}
    )
    # Lanes 0 to 2 hold one row of "few"; for lane 63 the first would come at its draw 992.
    assert source.lane_stream(63, 64).length == 100
    few = [source.lane_stream(lane, 64).draw(0, 10**4).component.tolist() for lane in range(64)]
    assert [0 in draws for draws in few[:3]] == [True] * 3
    assert 0 not in few[63]


def test_the_ends(big) -> None:
    stream = big.lane_stream(0, 64)
    assert len(stream.draw(stream.length - 3, 10)) == 3
    assert len(stream.draw(stream.length, 10)) == 0
    assert len(stream.draw(stream.length + 10, 10)) == 0
    assert len(stream.draw(5, 0)) == 0
    for start, count in ((-1, 5), (5, -1)):
        with pytest.raises(ValueError, match="start and count must be at least 0, got"):
            stream.draw(start, count)


def test_a_lane_ends_with_the_last_row_of_a_pass(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("a", [1000]), shape("b", [10])], {"a": 0.5, "b": 0.5}, stop_after_passes=2
    )
    assert source.total_samples == 3999
    last = listed(source.lane_stream(0, 1).draw(3990, 100))[-1]
    assert last[:2] == (0, 1)


HALVES = (slice(2000), slice(2000, 4000))


def test_two_passes_are_unrelated(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("a", [20] * 100)], {"a": 1}, stop_after_passes=2, shuffle_within_shard=True
    )
    refs = source.lane_stream(0, 1).draw(0, 4000)
    number = refs.shard * 20 + refs.row
    where = np.argsort(number[:2000]), np.argsort(number[2000:])
    assert abs(np.corrcoef(*where)[0, 1]) < 0.4  # a hundred shards move as a whole
    rows = [refs.row[part][np.argsort(refs.shard[part], kind="stable")] for part in HALVES]
    assert abs(np.corrcoef(*rows)[0, 1]) < 0.1


def test_a_component_repeated_too_often_is_named(shape) -> None:
    source = StaticMixtureWorkSource(
        [shape("one", [1]), shape("many", [10**10])], {"one": 0.5, "many": 0.5}
    )
    stream = source.lane_stream(0, 1)
    stream.draw(2**32 - 100, 10)
    with pytest.raises(ExecutionError, match="component 'one' may be repeated at most 2147483647"):
        stream.draw(2**32 + 100, 10)


# These orders are what every checkpoint of this version stands on. If one of them changes,
# zephon.seeds.STREAM_VERSION must be raised, and the new order pinned here.
PINNED = {
    (0, 1): [
        (0, 0, 2, 2),
        (1, 0, 1, 1),
        (0, 0, 2, 19),
        (0, 0, 2, 9),
        (0, 0, 2, 10),
        (1, 0, 1, 0),
        (0, 0, 2, 23),
        (0, 0, 2, 0),
        (1, 0, 0, 0),
        (0, 0, 2, 20),
        (0, 0, 2, 5),
        (1, 0, 0, 2),
        (0, 0, 2, 8),
        (0, 0, 2, 26),
        (1, 0, 0, 1),
        (0, 0, 2, 27),
        (0, 0, 2, 6),
        (0, 0, 2, 11),
        (1, 0, 2, 13),
        (0, 0, 2, 36),
    ],
    (1, 4): [
        (0, 0, 2, 9),
        (0, 0, 2, 5),
        (1, 0, 1, 0),
        (0, 0, 2, 6),
        (0, 0, 2, 34),
        (1, 0, 2, 67),
        (0, 0, 2, 16),
        (0, 0, 2, 3),
        (1, 0, 2, 55),
        (0, 0, 2, 13),
        (0, 0, 2, 39),
        (0, 0, 2, 17),
        (1, 0, 2, 50),
        (0, 0, 2, 18),
        (0, 0, 0, 22),
        (1, 0, 2, 4),
        (0, 0, 0, 69),
        (0, 0, 0, 45),
        (1, 0, 2, 85),
        (0, 0, 0, 34),
    ],
}


@pytest.mark.parametrize(("lane", "lanes"), PINNED)
def test_the_order_is_pinned(shape, lane, lanes) -> None:
    source = StaticMixtureWorkSource(
        [shape("prose", [70, 5, 40]), shape("code", [3, 2, 90, 1])],
        {"prose": 0.7, "code": 0.3},
        seed=42,
        chunk_size=2,
        shuffle_within_shard=True,
    )
    assert listed(source.lane_stream(lane, lanes).draw(0, 20)) == PINNED[lane, lanes]
