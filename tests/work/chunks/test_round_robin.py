import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.work.chunks.round_robin import smooth_round_robin


def slow(counts):
    """The rule as it is documented, in whole numbers: furthest behind first, earlier of equals."""
    total, taken, turns = sum(counts), [0] * len(counts), []
    for turn in range(total):
        lead = {
            k: count * max(1, turn) - total * taken[k] for k, count in enumerate(counts) if count
        }
        best = max(lead, key=lambda k: (lead[k], -k))
        taken[best] += 1
        turns.append(best)
    assert taken == list(counts)
    return turns


@given(st.lists(st.integers(0, 40), max_size=12))
def test_any_counts_take_turns_as_the_rule_says(counts):
    assert smooth_round_robin(np.array(counts, np.int64)).tolist() == slow(counts)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 25]), min_size=20, max_size=60))
def test_many_components_of_few_sizes(counts):
    assert smooth_round_robin(np.array(counts, np.int64)).tolist() == slow(counts)


@pytest.mark.parametrize(
    "counts", [[1400, 600], [1, 1999], [997, 991, 12], list(range(60)), [700, 700, 1, 1, 599]]
)
def test_many_stretches(counts):
    assert smooth_round_robin(np.array(counts)).tolist() == slow(counts)


def test_every_prefix_is_close_to_the_counts():
    counts = np.array([9000, 4000, 2000, 1000, 384])
    turns = smooth_round_robin(counts)
    taken = np.cumsum(turns[:, None] == np.arange(5), axis=0)
    share = np.arange(1, len(turns) + 1)[:, None] * counts / counts.sum()
    assert np.abs(taken - share).max() < 2
    assert taken[-1].tolist() == counts.tolist()


def test_the_answer_cannot_be_spoilt_for_the_next_caller():
    turns = smooth_round_robin(np.array([2, 1]))
    with pytest.raises(ValueError, match="read-only"):
        turns[0] = 1
