"""Wrap against the obvious way: walk over documents, cutting where a row is full."""

from hypothesis import given
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, held_after, plain, units_of
from tests.exec.policies.known import Known, pieces_of
from zephon.exec.policies import AT_END, Wrap


def obvious(units, max_length):
    """Give the rows, each with its trigger, and the pieces of the unfinished one."""
    rows, row, filled = [], [], 0
    for ((seq, start, length),), trigger in plain(units):
        stop = start + length
        while start < stop:
            piece = min(stop - start, max_length - filled)
            row.append((seq, start, piece))
            start, filled = start + piece, filled + piece
            if filled == max_length:
                rows.append((row, trigger))
                row, filled = [], 0
    return rows, row


def whole_documents(known, ended):
    """Make units of all documents; the last ``ended`` come when the lane is over."""
    units = known.units()
    trigger = units.trigger.copy()
    trigger[len(units) - ended :] = AT_END
    return units.let_go(trigger)


LENGTHS = st.lists(st.integers(0, 40), max_size=60)


@given(LENGTHS, st.integers(1, 25), GROUPINGS, st.data())
def test_rows_are_those_of_the_obvious_way_however_documents_are_grouped(
    lengths, max_length, groups, data
):
    known = Known(lengths)
    units = whole_documents(known, data.draw(st.integers(0, len(lengths))))
    at = data.draw(st.none() | st.integers(1, max(len(lengths), 1)))
    rows, rest = obvious(units, max_length)
    found, state = feed(Wrap(max_length=max_length), units, known, groups, resume_at=at)
    assert found == rows
    held = Wrap(max_length=max_length).held(state).units
    assert [start for row in pieces_of(held) for _, start, _ in row] == [s for _, s, _ in rest]
    assert held.length.tolist() == [length for _, _, length in rest]


@given(LENGTHS, GROUPINGS, st.integers(1, 25), st.data())
def test_what_is_held_depends_on_what_came_alone(lengths, groups, max_length, data):
    known = Known(lengths)
    units = known.units()
    count = data.draw(st.integers(0, len(units)))
    one_by_one = held_after(Wrap(max_length=max_length), units, known, [1], count)
    assert held_after(Wrap(max_length=max_length), units, known, groups, count) == one_by_one
    assert one_by_one == ([[piece] for piece in obvious(units.rows(0, count), max_length)[1]], {})


def test_a_document_of_many_rows_is_cut_at_each():
    rows, state = feed(Wrap(max_length=4), Known([10]).units(), Known([10]), [1])
    assert rows == [([(0, 0, 4)], 0), ([(0, 4, 4)], 0)]
    assert pieces_of(Wrap(max_length=4).held(state).units) == [[(0, 8, 2)]]


def test_the_unfinished_row_is_not_let_go_at_the_end():
    known = Known([3, 3])
    policy = Wrap(max_length=4)
    state = policy.make_state(0)
    policy.push(state, known.units(), known)
    assert len(policy.finish(state, known)) == 0
    assert pieces_of(policy.held(state).units) == [[(1, 1, 2)]]


def test_parts_of_documents_are_cut_where_they_lie():
    """Below a packer there may be parts that begin anywhere in their document."""
    units = units_of([[(0, 7, 5)], [(1, 2, 3)]], [0, 1])
    rows, _ = feed(Wrap(max_length=4), units, Known([12, 5]), [2])
    assert rows == [([(0, 7, 4)], 0), ([(0, 11, 1), (1, 2, 3)], 1)]


def test_rows_of_some_rows_start_at_zero_again():
    policy, known = Wrap(max_length=3), Known([2, 4, 6], first=7)
    placed = policy.push(policy.make_state(0), known.units(), known)
    assert pieces_of(placed.rows(1, 3)) == pieces_of(placed)[1:3]
    assert placed.rows(1, 3).splits[0] == 0
