"""Documents of which a part is delivered: found by their pieces, copied once, told at each row."""

import threading

import numpy as np

from tests.exec.by_hand import LAYOUT, Numbered, lane_of, push
from zephon.exec.half_used import HalfUsed, half_used, token_digest
from zephon.exec.policies import Chain, Units, Wrap

LENGTHS = [5, 3, 9, 0, 4, 7, 2]
"""Rows of 6 end within documents 1, 2, 4 and 5; the last one at the end of all."""


def ran():
    run = lane_of(LENGTHS, Chain([Wrap(max_length=6)]))
    for _ in push(run, LENGTHS, [3], Numbered(LENGTHS)):
        pass
    return run


def passed(run, rows):
    run.pass_row(rows, LAYOUT.tokens_field, lambda seqs: None)
    return run.state_at(rows).halves


def tokens(document):
    return np.arange(LENGTHS[document], dtype=np.int32) + 1000 * document


def test_a_row_that_ends_within_a_document_leaves_it_half_used():
    run = ran()
    found = [passed(run, rows) for rows in range(run.rows_placed + 1)]
    whole = [[], [1], [2], [4], [5], []]
    assert [halves.ordinal.tolist() for halves in found] == whole
    for halves in found:
        assert halves.digest.tolist() == [token_digest(tokens(n)) for n in halves.ordinal.tolist()]
        assert not halves.child.any()


def test_rows_that_are_passed_together_leave_what_the_last_leaves():
    run = ran()
    one_by_one = [passed(run, rows) for rows in range(6)]
    for rows in range(6):
        at_once = passed(ran(), rows)
        assert at_once.by_name() == one_by_one[rows].by_name()


def test_states_of_rows_before_are_told_until_they_are_forgotten():
    run = ran()
    for rows in range(4):
        passed(run, rows)
    assert [run.state_at(rows).halves.ordinal.tolist() for rows in range(4)] == [[], [1], [2], [4]]
    run.forget_before(2)
    assert [run.state_at(rows).halves.ordinal.tolist() for rows in (2, 3)] == [[2], [4]]


def test_a_document_is_copied_once_however_often_it_is_cut():
    run = lane_of([40], Chain([Wrap(max_length=6)]))
    for _ in push(run, [40], [1], Numbered([40])):
        pass
    asked = []
    for rows in range(1, 7):
        run.pass_row(rows, LAYOUT.tokens_field, asked.append)
    assert [seqs.tolist() for seqs in asked] == [[0]]


def test_pieces_that_are_left_say_what_is_half_used():
    run = ran()
    known = run.held.known(np.arange(5))
    pieces = Units.single(*(np.array(each) for each in ([1, 2, 2], [1, 0, 8], [2, 3, 1], [0] * 3)))
    left, half = half_used(pieces, known)
    assert left.tolist() == [0, 2, 4, 0, 0]
    assert half.tolist() == [0, 1, 2, 4]


def test_a_state_without_a_digest_has_it_behind_the_next_row():
    run = ran()
    halves = HalfUsed({2: 4}, {})
    asked = []
    halves.pass_row(3, run.held, threading.Lock(), LAYOUT.tokens_field, asked.append)
    assert [seqs.tolist() for seqs in asked] == [[2]]
    assert halves.at(3).by_name() == {(2, 0): token_digest(tokens(2))}
    assert not len(halves.at(2))


def test_other_tokens_have_other_digests():
    rows = [np.array(each, np.int32) for each in ([], [0], [0, 0], [1], [1, 2], [2, 1])]
    assert len({token_digest(row) for row in rows}) == len(rows)
    assert token_digest(np.arange(10, dtype=np.int32)[::2]) == token_digest(
        np.array([0, 2, 4, 6, 8], np.int32)
    )


def test_lanes_of_whole_documents_follow_none():
    run = lane_of(LENGTHS, Chain())
    for _ in push(run, LENGTHS, [3], Numbered(LENGTHS)):
        pass
    assert not len(passed(run, 4))
