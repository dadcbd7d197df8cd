"""Best fit decreasing: against plain lists, and what it promises of fill and of waiting."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, plain
from tests.exec.policies.known import Known
from tests.exec.policies.packing import PAGE, agrees, documents, lengths_of, packed
from zephon import seeds
from zephon.exec.policies.best_fit_decreasing import BestFitDecreasing, closest_pair
from zephon.exec.policies.candidates import BITS
from zephon.exec.policies.policy import AT_END


def obvious(sizes, pieces, *, max_length, pool_size, age, cap, smallest):
    pool, rows, oversized, arrivals = [], [], [], 0  # a candidate: (size, -arrival, seq)

    def make_row():
        row, room = [], max_length

        def fill(candidate):
            nonlocal room
            pool.remove(candidate)
            row.append(pieces[candidate[2]])
            room -= candidate[0]

        oldest = max(pool, key=lambda one: one[1])
        if arrivals + oldest[1] > age:
            fill(oldest)
        least = max(1, min(smallest, max_length))
        while (not row or room >= least) and pool and (cap is None or len(row) < cap):
            pool.sort()
            fitting = [one for one in pool if one[0] <= room]
            if not fitting:
                break
            gap = room - fitting[-1][0]
            two = cap is None or len(row) + 2 <= cap
            if gap > max_length // 1024 and two and pool[0][0] > gap:
                by_size = [size << BITS | 2**43 + minus for size, minus, _ in pool]
                pair = closest_pair(by_size, room, room - gap, room - max_length // 1024)
                if pair:
                    for candidate in [pool[place] for place in pair]:
                        fill(candidate)
                    break
            fill(fitting[-1])
        return row

    for seq, size in sizes:
        if size > max_length:
            oversized.append(seq)
            continue
        arrivals += 1
        pool.append((size, -arrivals, seq))
        while len(pool) >= pool_size and (
            sum(one[0] for one in pool) >= max_length
            or arrivals + max(one[1] for one in pool) > age
        ):
            rows.append((make_row(), seq))
    end = []
    while pool:
        end.append(make_row())
    return rows, end, oversized


@settings(deadline=None, max_examples=100)
@given(
    documents(),
    st.integers(1, 22) | st.just(2049),
    st.integers(1, 12),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 4),
    st.integers(0, 4),
    st.booleans(),
    GROUPINGS,
    st.data(),
)
def test_rows_are_those_of_the_obvious_way(
    stream, max_length, pool_size, age, cap, smallest, by_length, groups, data
):
    known, _ = stream
    policy = BestFitDecreasing(
        max_length=max_length,
        candidate_pool_size=pool_size,
        max_candidate_age=age,
        max_sequences_per_bin=cap,
        min_sequence_length=smallest,
        components=3,
        by_length=by_length,
    )
    lengths = known.of_lengths.tolist()
    measured = known.of_measures["length"].tolist() if by_length else lengths
    rows, end, oversized = obvious(
        [(seq, size) for seq, size in enumerate(measured) if size or by_length],
        [(seq, 0, length) for seq, length in enumerate(lengths)],
        max_length=max_length,
        pool_size=pool_size,
        age=4 * pool_size if age is None else age,
        cap=cap,
        smallest=smallest,
    )
    state = agrees(policy, stream, groups, data, rows, end)
    assert policy.dropped_documents(state) == len(oversized)
    assert policy.dropped(state)["oversized"].sum() == sum(lengths[seq] for seq in oversized)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=25),
    st.integers(1, 120),
    st.integers(0, 60),
)
def test_the_closest_pair_is_that_of_all_pairs(sizes, room, more_than):
    by_size = sorted(size << BITS | 2**43 - arrival for arrival, size in enumerate(sizes, 1))
    sums = [(a >> BITS) + (b >> BITS) for a, b in combinations(by_size, 2)]
    wanted = max((both for both in sums if more_than < both <= room), default=None)
    pair = closest_pair(by_size, room, more_than, room)
    assert (pair is None) == (wanted is None)
    if pair:
        assert pair[0] > pair[1]  # taken out in this order, neither moves the other
        assert sum(by_size[place] >> BITS for place in pair) == wanted


def test_the_documents_of_the_page():
    rows, state = packed(BestFitDecreasing(max_length=10, components=1), PAGE)
    assert lengths_of(rows) == [(9, 1), (8, 2), (7, 3), (6, 4), (5,)]
    assert BestFitDecreasing(max_length=10, components=1).dropped(state)["oversized"] == [12]


def test_two_documents_close_what_one_leaves_open():
    rows, _ = packed(BestFitDecreasing(max_length=12, components=1), [7, 4, 3, 2])
    assert lengths_of(rows) == [(7, 3, 2), (4,)]


@pytest.mark.parametrize("max_length", [2049, 8193])
def test_rows_of_documents_of_275_tokens_are_nearly_full(max_length):
    lengths = np.exp(seeds.generator(5).normal(5.25, 0.85, 12_000)).astype(np.int64) + 1
    assert 260 < lengths.mean() < 290
    known = Known(lengths)
    policy = BestFitDecreasing(max_length=max_length, components=1)
    state = policy.make_state(0)
    rows = policy.push(state, known.units(), known)
    assert rows.length.sum() / (len(rows) * max_length) > 0.995
    assert len(policy.held(state).units) < 1024


@settings(deadline=None, max_examples=60)
@given(documents(longest=9, most=150), st.integers(1, 8), st.integers(1, 12))
def test_a_document_waits_for_its_age_and_then_for_older_ones_at_most(stream, pool_size, age):
    known, _ = stream
    policy = BestFitDecreasing(
        max_length=10, candidate_pool_size=pool_size, max_candidate_age=age, components=3
    )
    lengths = known.of_lengths.tolist()
    out, _ = feed(policy, known.units(), known, [1])
    arrival, came = {}, 0
    for seq, length in enumerate(lengths):
        came += length > 0 and length <= 10
        arrival[seq] = came
    for number, (row, trigger) in enumerate(out):
        if trigger == AT_END:
            break
        for seq, _, _ in row:
            rows_since_aged = [
                then for _, then in out[:number] if arrival[then] - arrival[seq] > age
            ]
            assert len(rows_since_aged) < max(pool_size, 10)


def test_documents_that_take_nothing_do_not_wait_for_ever():
    known = Known([3] * 40, length=[0] * 40)
    policy = BestFitDecreasing(
        max_length=10, candidate_pool_size=2, max_candidate_age=9, components=1, by_length=True
    )
    rows = plain(policy.push(policy.make_state(0), known.units(), known))
    assert [len(row) for row, _ in rows] == [11, 11, 11]
