import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.order.deal import Deal
from zephon.work.order.permutation import Permutation

ROWS = st.integers(1, 40) | st.integers(1, 3000)
CHUNKS = st.sampled_from([1, 2, 5, 16384])


def make(rows: int, lanes: int, chunk_size: int, *, permuted: bool, fresh: bool = True) -> Deal:
    return Deal.of(
        rows=rows,
        lanes=lanes,
        chunk_size=chunk_size,
        turn_key=77 if permuted else None,
        fresh=fresh,
    )


def slow_deal(
    rows: int,
    lanes: int,
    chunk_size: int,
    passes: int,
    *,
    permuted: bool,
    fresh: bool = True,
    key: int = 77,
    first_pass: int = 0,
    first_row: int = 0,
) -> list[list[tuple[int, int]]]:
    """Deal row by row, as the design says it in words; each lane's (pass, position)."""
    granule = max(1, min(chunk_size, rows // (16 * lanes)))
    hands: list[list[tuple[int, int]]] = [[] for _ in range(lanes)]
    for number in range(passes):
        pass_index = first_pass + number
        position = turn = 0
        pass_key = seeds.subkeys(key, pass_index if fresh else 0)
        while rows - position >= 2 * lanes * granule:
            order = np.arange(lanes)
            if permuted:
                order = Permutation(lanes, int(seeds.subkeys(pass_key, turn)[0])).at(order)
            for lane in order.tolist():
                hands[lane] += [(pass_index, position + i) for i in range(granule)]
                position += granule
            turn += 1
        while position < rows:
            lane = (first_row + number * rows + position) % lanes
            hands[lane].append((pass_index, position))
            position += 1
    return hands


def listed(deal: Deal, lane: int, first: int, count: int) -> list[tuple[int, int]]:
    runs = deal.runs(lane, first, count)
    assert (runs.length > 0).all()
    assert runs.length.sum() == count
    return [
        (int(pass_index), int(start) + i)
        for pass_index, start, length in zip(runs.pass_index, runs.start, runs.length, strict=True)
        for i in range(int(length))
    ]


@settings(max_examples=150, deadline=None)
@given(ROWS, st.integers(1, 70), CHUNKS, st.booleans(), st.booleans(), st.data())
def test_equals_dealing_row_by_row(
    rows: int, lanes: int, chunk_size: int, permuted: bool, fresh: bool, data: st.DataObject
) -> None:
    passes = data.draw(st.integers(1, 4))
    hands = slow_deal(rows, lanes, chunk_size, passes, permuted=permuted, fresh=fresh)
    deal = make(rows, lanes, chunk_size, permuted=permuted, fresh=fresh)
    for lane in data.draw(st.lists(st.integers(0, lanes - 1), min_size=1, max_size=8)):
        hand = hands[lane]
        assert deal.rows_before(lane, passes) == len(hand)
        if not hand:
            continue
        assert listed(deal, lane, 0, len(hand)) == hand
        first = data.draw(st.integers(0, len(hand) - 1))
        count = data.draw(st.integers(1, len(hand) - first))
        assert listed(deal, lane, first, count) == hand[first : first + count]
        assert deal.pass_of(lane, first) == hand[first][0]


@pytest.mark.parametrize("lanes", [*range(1, 13), 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70])
@pytest.mark.parametrize("permuted", [False, True])
def test_each_row_of_a_pass_goes_to_one_lane_and_lanes_stay_level(
    lanes: int, permuted: bool
) -> None:
    for rows in (1, 2, 3, 63, 64, 65, lanes, 2 * lanes - 1, 2 * lanes, 33 * lanes + 7, 2500):
        if rows < 1:
            continue
        deal = make(rows, lanes, 3, permuted=permuted)
        for passes in (1, 2, 3):
            ends = [deal.rows_before(lane, passes) for lane in range(lanes)]
            assert max(ends) - min(ends) <= 1
            assert sum(ends) == passes * rows
            dealt = [
                place
                for lane in range(lanes)
                if ends[lane] > deal.rows_before(lane, passes - 1)
                for place in listed(
                    deal,
                    lane,
                    deal.rows_before(lane, passes - 1),
                    ends[lane] - deal.rows_before(lane, passes - 1),
                )
            ]
            assert sorted(dealt) == [(passes - 1, position) for position in range(rows)]


def test_granules_are_neighbouring_rows_of_a_chunk_at_most() -> None:
    deal = make(10_000_000, 4, 16384, permuted=True)
    assert deal.granule == 16384
    runs = deal.runs(2, 0, 100_000)
    assert (runs.length[:6] == 16384).all()
    assert (runs.start[:6] // (4 * 16384) == np.arange(6)).all()


def test_short_passes_have_about_sixteen_granules_a_lane() -> None:
    deal = make(64_000, 4, 16384, permuted=False)
    assert deal.granule == 1000
    assert deal.rounds == 15


def test_lanes_take_turns_in_lane_order_under_modulo() -> None:
    deal = make(1_000_000, 8, 100, permuted=False)
    for lane in range(8):
        assert deal.runs(lane, 0, 100).start.tolist() == [lane * 100]


def test_turn_orders_differ_by_round_and_by_pass() -> None:
    def turns(deal: Deal, pass_index: int) -> list[int]:
        before = deal.rows_before(3, pass_index)
        return (deal.runs(3, before, 1000).start % 800 // 100).tolist()

    deal = make(1_000_000, 8, 100, permuted=True)
    assert len(set(turns(deal, 0))) > 3
    assert turns(deal, 0) != turns(deal, 1)
    same = make(1_000_000, 8, 100, permuted=True, fresh=False)
    assert turns(same, 0) == turns(same, 1) == turns(deal, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 10**12), st.integers(1, 128), CHUNKS, st.integers(0, 10**12), st.integers(1, 500)
)
def test_far_rows_are_found_like_near_ones(
    rows: int, lanes: int, chunk_size: int, first: int, count: int
) -> None:
    deal = make(rows, lanes, chunk_size, permuted=True)
    lane = first % lanes
    together = listed(deal, lane, first, count)
    middle = count // 2
    if middle:
        apart = listed(deal, lane, first, middle) + listed(
            deal, lane, first + middle, count - middle
        )
        assert together == apart
    assert all(0 <= position < rows for _, position in together)
    assert sorted(set(together)) == together
