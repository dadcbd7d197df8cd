"""Wrap with a cap against the obvious way: walk over documents, closing rows as they fill."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, plain
from tests.exec.policies.known import Known
from tests.exec.policies.packing import PAGE, agrees, documents, lengths_of, packed
from zephon.exec.policies.wrap import Wrap


def obvious(lengths, max_length, cap):
    rows, row, filled = [], [], 0
    for seq, length in enumerate(lengths):
        start = 0
        while start < length:
            piece = min(length - start, max_length - filled)
            row.append((seq, start, piece))
            start, filled = start + piece, filled + piece
            if filled == max_length or len(row) == cap:
                rows.append((row, seq))
                row, filled = [], 0
    return rows, [row] if row else []


@settings(deadline=None, max_examples=80)
@given(documents(longest=40), st.integers(1, 25), st.integers(1, 5), GROUPINGS, st.data())
def test_rows_are_those_of_the_obvious_way(stream, max_length, cap, groups, data):
    policy = Wrap(max_length=max_length, max_sequences_per_bin=cap)
    rows, end = obvious(stream[0].of_lengths.tolist(), max_length, cap)
    agrees(policy, stream, groups, data, rows, end)


@pytest.mark.parametrize(
    ("cap", "wanted"),
    [
        (1, [(5,), (3,), (9,), (2,), (10,), (2,), (4,), (6,), (1,), (8,), (7,)]),
        (2, [(5, 3), (9, 1), (1, 9), (3, 4), (6, 1), (8, 2), (5,)]),
        (99, [(5, 3, 2), (7, 2, 1), (10,), (1, 4, 5), (1, 1, 8), (7,)]),
    ],
)
def test_the_documents_of_the_page_under_several_caps(cap, wanted):
    policy = Wrap(max_length=10, max_sequences_per_bin=cap)
    assert lengths_of(packed(policy, PAGE)[0]) == wanted


def test_a_row_that_has_its_pieces_goes_with_the_last_of_them():
    policy = Wrap(max_length=10, max_sequences_per_bin=2)
    known = Known([1, 2, 3])
    state = policy.make_state(0)
    assert plain(policy.push(state, known.units(0, 2), known)) == [([(0, 0, 1), (1, 0, 2)], 1)]
    assert not len(policy.push(state, known.units(2), known))
