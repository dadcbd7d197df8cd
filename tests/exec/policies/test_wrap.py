"""Wrap against the obvious way: walk over documents, cutting where a row is full."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zephon.exec.policies import Each, Wrap


def obvious(lengths, max_length):
    rows, row, filled, triggers = [], [], 0, []
    for seq, length in enumerate(lengths):
        start = 0
        while start < length:
            piece = min(length - start, max_length - filled)
            row.append((seq, start, piece))
            start, filled = start + piece, filled + piece
            if filled == max_length:
                rows.append(row)
                triggers.append(seq)
                row, filled = [], 0
    return rows, row, triggers


def rows_of(placed):
    pieces = list(
        zip(placed.seq.tolist(), placed.start.tolist(), placed.length.tolist(), strict=True)
    )
    splits = placed.row_splits.tolist()
    return [pieces[a:b] for a, b in pairwise(splits)]


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(1, 25),
    st.lists(st.integers(1, 9), max_size=20),
)
def test_rows_are_those_of_the_obvious_way_however_documents_are_grouped(
    lengths, max_length, groups
):
    policy = Wrap(max_length)
    state = policy.make_state()
    rows, triggers, at = [], [], 0
    for size in [*groups, len(lengths)]:
        group = np.array(lengths[at : at + size], np.int64)
        placed = policy.push(state, at, group)
        rows += rows_of(placed)
        triggers += placed.trigger.tolist()
        at += len(group)
    wanted, rest, wanted_triggers = obvious(lengths, max_length)
    assert rows == wanted
    assert triggers == wanted_triggers
    held = policy.held(state)
    columns = (getattr(held, name).tolist() for name in ("seq", "start", "length"))
    assert list(zip(*columns, strict=True)) == rest


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.data())
def test_a_state_rebuilt_from_what_it_holds_goes_on_in_the_same_way(lengths, data):
    cut = data.draw(st.integers(0, len(lengths)))
    policy = Wrap(11)
    state = policy.make_state()
    policy.push(state, 0, np.array(lengths[:cut], np.int64))
    again = policy.resume(policy.held(state))
    rest = np.array(lengths[cut:], np.int64)
    assert rows_of(policy.push(state, cut, rest)) == rows_of(policy.push(again, cut, rest))


def test_a_document_of_many_rows_is_cut_at_each():
    placed = Wrap(4).push(Wrap(4).make_state(), 0, np.array([10], np.int64))
    assert rows_of(placed) == [[(0, 0, 4)], [(0, 4, 4)]]


def test_rows_of_some_placements_start_at_zero_again():
    policy = Wrap(3)
    placed = policy.push(policy.make_state(), 7, np.array([2, 4, 6], np.int64))
    assert rows_of(placed.rows(1, 3)) == rows_of(placed)[1:3]


def test_without_packing_each_document_is_a_row_even_an_empty_one():
    placed = Each().push(Each().make_state(), 5, np.array([2, 0, 3], np.int64))
    assert rows_of(placed) == [[(5, 0, 2)], [(6, 0, 0)], [(7, 0, 3)]]
