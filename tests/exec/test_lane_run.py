"""A lane between draws and rows: what it counts, and what it keeps alive under its policies."""

import numpy as np
import pytest

from tests.exec.by_hand import (
    Counted,
    Keeps,
    Measured,
    Splits,
    chain_of,
    lane_of,
    push,
    segment_of,
    with_lost,
)
from tests.exec.policies.small import HoldLast, UpTo
from zephon.errors import ExecutionError
from zephon.exec.endings import barren, is_barren
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import AT_END, Chain, Wrap
from zephon.exec.policies.first_fit import FirstFit
from zephon.exec.policies.reservoir import Reservoir


def kept_alive(run):
    """Count tokens and documents of the arrays behind all parts, whoever shares them."""
    buffers = {id(part.buffer): part.buffer for part in run.held.parts.values()}
    documents = sum(part.documents for part in run.held.parts.values())
    return sum(len(b.columns["input_ids"]) for b in buffers.values()) + documents


@pytest.mark.parametrize("length", [0, 1, 50])
@pytest.mark.parametrize("above", [[], [Wrap(max_length=64)]])
def test_under_a_shuffle_a_lane_keeps_about_twice_what_it_holds(length, above):
    """Documents leave in any order, so that blocks are held for ever by a few of theirs."""
    size, count = 200, 4000
    run = lane_of([length] * count, Chain([Reservoir(buffer_size=size, seed=1, stage=0), *above]))
    most = 0
    for at in push(run, [length] * count, [40]):
        run.take(run.rows_placed - run.rows_taken)
        run.release()
        if at > 4 * size:
            most = max(most, kept_alive(run))
    # A release may wait until a quarter as much as is held was taken.
    assert most <= 2 * 1.25 * (size + 40) * (length + 1) + 64
    run.end()
    run.take(run.rows_placed - run.rows_taken)
    run.release()
    assert kept_alive(run) <= 2 * 64


def test_rows_that_wait_to_be_taken_keep_their_tokens():
    run = lane_of([10] * 400, Chain([Reservoir(buffer_size=50, seed=1, stage=0)]))
    taken = 0
    for _ in push(run, [10] * 400, [20]):
        for placed in run.take((run.rows_placed - run.rows_taken) // 2):
            seqs = placed.rows.seq
            part, start, _ = run.held.places(seqs)
            row = run.held.known(seqs).refs.row
            taken += len(placed)
            for p, s, r in zip(part.tolist(), start.tolist(), row.tolist(), strict=True):
                values = run.held.parts[p].buffer.columns["input_ids"][s : s + 10]
                assert values.tolist() == list(range(1000 * r, 1000 * r + 10))
        run.release()
    assert taken > 150


def test_tokens_are_counted_where_they_are():
    lengths = [3, 9, 4, 20, 3, 5, 5, 1]  # component 0: 3, 4, 3, 5; component 1: 9, 20, 5, 1
    packer = FirstFit(max_length=9, num_bins=1, components=2)
    run = lane_of(lengths, Chain([HoldLast(2), packer]), components=2)
    list(push(run, lengths, [3]))
    assert run.counts.tokens.tolist() == [15, 35]
    assert run.counts.rows.tolist() == [4, 4]
    assert run.dropped_tokens()["oversized"].tolist() == [0, 20]
    placed, held = run.placed_tokens(), run.held_tokens()
    assert run.tokens_placed == placed.sum() > 0
    assert (placed + held).tolist() == [15, 15]
    first = run.tokens_of(0, 1)
    assert first + run.tokens_of(1, run.rows_placed) == run.tokens_placed
    (taken,) = run.take(1)
    assert taken.rows.length.sum() == first
    assert run.tokens_placed == placed.sum() - first
    run.end()
    assert run.held_tokens().tolist() == [0, 0]
    assert run.tokens_placed + first == 30


def test_rows_are_handed_out_in_order_however_many_are_asked_for():
    whole = lane_of([7] * 40, chain_of(5))
    list(push(whole, [7] * 40, [9]))
    wanted = [placed.rows.rows(i, i + 1) for placed in whole.take(50) for i in range(len(placed))]
    run = lane_of([7] * 40, chain_of(5))
    list(push(run, [7] * 40, [9]))
    found = []
    for count in (1, 0, 13, 7, 29):
        taken = run.take(count)
        assert sum(map(len, taken)) == count
        found += [placed.rows.rows(i, i + 1) for placed in taken for i in range(len(placed))]
    assert [row.seq.tolist() for row in found] == [row.seq.tolist() for row in wanted]
    assert [row.start.tolist() for row in found] == [row.start.tolist() for row in wanted]


def test_policies_are_told_of_documents():
    run = lane_of([4] * 12, Chain([HoldLast(100)]), components=3, measures=("length", "weight"))
    list(push(run, [4] * 12, [5], Measured(), Splits()))
    seqs = np.arange(18)
    row = run.held.known(seqs).refs.row
    told = run.held
    assert told.components(seqs).tolist() == (row % 3).tolist()
    assert told.lengths(seqs).tolist() == [4] * 18
    assert told.last_parts(seqs).tolist() == [False, True, True] * 6
    assert told.measures("length", seqs).tolist() == (row * 5 % 7 + 1).tolist()
    assert told.measures("weight", seqs).view(np.float64).tolist() == (row / 8 + row % 3).tolist()


def test_what_the_end_lets_go_is_marked_with_the_last_document():
    run = lane_of([4] * 9, Chain([UpTo(8), HoldLast(2)]), measures=("length", "weight"))
    list(push(run, [4] * 9, [9], Measured()))
    before = run.rows_placed
    run.end()
    (*_, last) = run.take(run.rows_placed)
    assert len(last) == run.rows_placed - before == 3
    assert last.rows.trigger.tolist() == [AT_END] * 3
    assert last.marks.tolist() == [[8, 8]] * 3


def test_what_the_end_lets_go_is_marked_with_the_last_draw_though_it_gave_nothing():
    run = lane_of([4] * 9, Chain([HoldLast(2)]))
    list(push(run, [4] * 9, [9], Keeps(lambda refs: refs.row < 5)))
    run.end()
    (*_, last) = run.take(run.rows_placed)
    assert last.rows.trigger.tolist() == [AT_END] * 2
    assert last.marks.tolist() == [[8, 8]] * 2


@pytest.mark.parametrize("length", [None, 2000])
def test_a_lane_without_end_is_given_up_after_many_draws_without_a_document(length):
    """One that ends may lose as much as it likes."""
    run = LaneRun(0, Counted(length), chain_of(8), 1)
    segment = segment_of([4] * 2000, Keeps(lambda refs: refs.row < 30))
    given_up = []
    for first in range(0, 2000, 50):
        draws = run.intakes[0].stream.draw(first, 50)
        (block,) = segment.run([draws])
        run.push(with_lost(block, draws))
        given_up.append(is_barren(run, 40))
    assert given_up.index(True) == (30 + 32 * 40) // 50 if length is None else not any(given_up)
    if length is None:
        with pytest.raises(ExecutionError, match="no row of many passes gave a document"):
            raise barren(run)
