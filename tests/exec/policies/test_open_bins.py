"""First fit and best fit against lists of open rows that are looked through one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed
from tests.exec.policies.known import Known
from tests.exec.policies.packing import agrees, documents, lengths_of, packed
from zephon.exec.policies.best_fit import BestFit
from zephon.exec.policies.first_fit import FirstFit

BOTH = pytest.mark.parametrize("packer", [FirstFit, BestFit])


def obvious(sizes, pieces, packer, *, max_length, num_bins, cap, smallest, flush):
    """Return rows with the documents that let them go, rows at the end, documents too long."""
    bins, out, oversized = [], [], []  # a bin: [free, row], the oldest first

    def is_done(free, row):
        return free < smallest or (cap is not None and len(row) >= cap)

    for seq, size in sizes:
        if size > max_length:
            oversized.append(seq)
            continue
        fitting = [one for one in bins if one[0] >= size]
        if fitting:
            one = fitting[0] if packer is FirstFit else min(fitting, key=lambda one: one[0])
            one[0] -= size
            one[1].append(pieces[seq])
            if is_done(*one):
                bins = [other for other in bins if other is not one]
                out.append((one[1], seq))
        elif is_done(max_length - size, [pieces[seq]]):
            out.append(([pieces[seq]], seq))
        else:
            if len(bins) == num_bins:
                going = bins[0] if flush == "fifo" else min(bins, key=lambda one: one[0])
                bins = [other for other in bins if other is not going]
                out.append((going[1], seq))
            bins.append([max_length - size, [pieces[seq]]])
    return out, [row for _, row in bins], oversized


@BOTH
@settings(deadline=None, max_examples=100)
@given(
    documents(),
    st.integers(1, 22),
    st.integers(1, 7),
    st.none() | st.integers(1, 4),
    st.integers(0, 5),
    st.sampled_from(["fifo", "fullest"]),
    st.booleans(),
    GROUPINGS,
    st.data(),
)
def test_rows_are_those_of_the_obvious_way(
    packer, stream, max_length, num_bins, cap, smallest, flush, by_length, groups, data
):
    known, _ = stream
    policy = packer(
        max_length=max_length,
        num_bins=num_bins,
        max_sequences_per_bin=cap,
        min_sequence_length=smallest,
        flush_strategy=flush,
        components=3,
        by_length=by_length,
    )
    lengths = known.of_lengths.tolist()
    measured = known.of_measures["length"].tolist() if by_length else lengths
    sizes = [(seq, size) for seq, size in enumerate(measured) if size or by_length]
    pieces = [(seq, 0, length) for seq, length in enumerate(lengths)]
    rows, end, oversized = obvious(
        sizes,
        pieces,
        packer,
        max_length=max_length,
        num_bins=num_bins,
        cap=cap,
        smallest=smallest,
        flush=flush,
    )
    state = agrees(policy, stream, groups, data, rows, end)
    assert policy.dropped_documents(state) == len(oversized)
    tokens = [0, 0, 0]
    for seq in oversized:
        tokens[known.of_components[seq]] += lengths[seq]
    assert policy.dropped(state)["oversized"].tolist() == tokens


@BOTH
def test_a_document_that_fills_a_row_alone_lets_no_other_go(packer):
    policy = packer(max_length=10, num_bins=1, components=1)
    known = Known([4, 10, 3])
    state = policy.make_state(0)
    assert policy.push(state, known.units(0, 2), known).seq.tolist() == [1]
    assert policy.push(state, known.units(2, 3), known).seq.tolist() == []
    assert policy.finish(state, known).seq.tolist() == [0, 2]


@BOTH
def test_the_oldest_or_the_fullest_row_makes_room(packer):
    lengths = [6, 7, 8, 9]
    fifo = packer(max_length=10, num_bins=3, components=1)
    assert lengths_of(packed(fifo, lengths)[0]) == [(6,), (7,), (8,), (9,)]
    fullest = packer(max_length=10, num_bins=3, components=1, flush_strategy="fullest")
    assert lengths_of(packed(fullest, lengths)[0]) == [(8,), (6,), (7,), (9,)]


@BOTH
def test_a_row_with_less_free_than_any_document_takes_is_let_go(packer):
    policy = packer(max_length=10, num_bins=4, components=1, min_sequence_length=3)
    known = Known([4, 4, 5])
    state = policy.make_state(0)
    assert policy.push(state, known.units(0, 2), known).seq.tolist() == [0, 1]  # 2 are free
    assert policy.push(state, known.units(2, 3), known).seq.tolist() == []


@BOTH
def test_with_no_least_length_even_a_full_row_waits(packer):
    policy = packer(max_length=10, num_bins=4, components=1, min_sequence_length=0)
    known = Known([10, 4, 6])
    state = policy.make_state(0)
    assert not len(policy.push(state, known.units(), known))
    assert policy.finish(state, known).splits.tolist() == [0, 1, 3]


@BOTH
def test_what_a_measure_calls_empty_is_placed_and_an_empty_document_vanishes(packer):
    by_length = packer(max_length=10, num_bins=2, components=1, by_length=True)
    rows, _ = packed(by_length, [7, 0, 900], length=[9, 0, 1])
    assert rows == [[(0, 0, 7), (1, 0, 0), (2, 0, 900)]]
    by_tokens = packer(max_length=10, num_bins=2, components=1)
    assert packed(by_tokens, [7, 0, 3])[0] == [[(0, 0, 7), (2, 0, 3)]]


@BOTH
def test_counts_of_what_was_dropped_outlive_a_resume(packer):
    policy = packer(max_length=10, num_bins=2, components=2)
    known = Known([11, 3, 40, 12], components=[1, 0, 0, 1])
    _, state = feed(policy, known.units(), known, [1], resume_at=3)
    assert policy.dropped(state)["oversized"].tolist() == [40, 23]
    assert policy.dropped_documents(state) == 3


@BOTH
@pytest.mark.parametrize("num_bins", [1, 2, 3, 31, 32, 33])
def test_any_number_of_rows_may_be_open_at_once(packer, num_bins):
    policy = packer(max_length=10, num_bins=num_bins, components=1)
    known = Known([6] * (3 * num_bins + 1))
    state = policy.make_state(0)
    pushed = policy.push(state, known.units(), known)
    assert pushed.seq.tolist() == list(range(2 * num_bins + 1))
    assert pushed.trigger.tolist() == list(range(num_bins, 3 * num_bins + 1))
    assert len(policy.held(state).units) == num_bins


@BOTH
def test_what_was_written_down_does_not_change_later(packer):
    policy = packer(max_length=10, num_bins=2, components=1)
    known = Known([4, 20, 3, 30, 2, 8])
    state = policy.make_state(0)
    policy.push(state, known.units(0, 3), known)
    held = policy.held(state)
    before = held.units.seq.copy(), {name: each.copy() for name, each in held.numbers.items()}
    policy.push(state, known.units(3), known)
    assert np.array_equal(held.units.seq, before[0])
    assert all(np.array_equal(each, before[1][name]) for name, each in held.numbers.items())
