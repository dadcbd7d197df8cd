"""Rows by lane where shards are added between passes: as if each pass was dealt row by row."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.work.order.test_deal import slow_deal
from zephon import seeds
from zephon.work.component import Component, Rules, Settings
from zephon.work.order.dealt import Dealt, Former

RULES = Rules(fresh=True, block_size=None, policy="repeat", passes=None, must=None, budget=None)


def made(parts, lanes, chunk_size, assignment="permute"):
    """Deal parts, each of some passes over so many rows; the last goes on for ever."""
    shared = Settings(
        chunk_size=chunk_size,
        seed=77,
        shuffle_shards=False,
        shuffle_within_shard=False,
        lane_assignment=assignment,
    )
    orders = [shared.passes("a", RULES, np.array([rows])) for rows, _ in parts]
    stops = np.cumsum([passes for _, passes in parts]).tolist()
    former = [Former(stop, order) for stop, order in zip(stops, orders, strict=True)][:-1]
    return shared.dealt(Component("a", 0, None, 1.0), RULES, orders[-1], former, lanes)


def slow(parts, lanes, chunk_size, assignment):
    """Deal each part by itself; single rows go on around the lanes from one to the next."""
    hands = [[] for _ in range(lanes)]
    first_pass = first_row = 0
    for rows, passes in parts:
        dealt = slow_deal(
            rows,
            lanes,
            chunk_size,
            passes,
            permuted=assignment == "permute",
            key=seeds.key(77, "a", "turns"),
            first_pass=first_pass,
            first_row=first_row,
        )
        for hand, more in zip(hands, dealt, strict=True):
            hand += more
        first_pass, first_row = first_pass + passes, first_row + passes * rows
    return hands


PARTS = st.lists(st.tuples(st.integers(1, 40) | st.integers(1, 900), st.integers(0, 3)), min_size=1)


@settings(max_examples=100, deadline=None)
@given(
    PARTS,
    st.integers(1, 40),
    st.sampled_from([1, 2, 5, 16384]),
    st.sampled_from(["permute", "modulo"]),
    st.data(),
)
def test_equals_dealing_row_by_row(parts, lanes, chunk_size, assignment, data):
    parts = [*parts, (data.draw(st.integers(1, 300)), 2)]
    dealt = made(parts, lanes, chunk_size, assignment)
    hands = slow(parts, lanes, chunk_size, assignment)
    passes = sum(count for _, count in parts)
    ends = [dealt.rows_before(lane, passes) for lane in range(lanes)]
    assert ends == list(map(len, hands))
    assert max(ends) - min(ends) <= 1
    lane = data.draw(st.integers(0, lanes - 1))
    hand = hands[lane]
    if not hand:
        return
    first = data.draw(st.integers(0, len(hand) - 1))
    count = data.draw(st.integers(1, len(hand) - first))
    places = dealt.rows_at(lane, first, count)
    found = list(zip(places.pass_index.tolist(), places.row.tolist(), strict=True))
    assert found == hand[first : first + count]
    assert dealt.pass_of(lane, first) == hand[first][0]
    for done in range(passes + 1):
        assert dealt.rows_before(lane, done) == sum(number < done for number, _ in hand)


def test_shards_added_again_before_a_pass_of_the_first_ones_begins():
    """The pass that was under way ends; the next has all that were added until then."""
    dealt = made([(10, 1), (25, 0), (40, 1)], 3, 4)
    assert [dealt.rows_before(lane, 1) for lane in range(3)] == [4, 3, 3]
    assert sum(dealt.rows_before(lane, 2) for lane in range(3)) == 50
    assert (dealt.rows_of(0), dealt.rows_of(1), dealt.lanes) == (10, 40, 3)


def test_one_part_is_dealt_alone():
    assert isinstance(dealt := made([(10, 2)], 1, 4), Dealt)
    assert dealt.rows_at(0, 8, 4).row.tolist() == [8, 9, 0, 1]
