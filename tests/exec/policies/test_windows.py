"""Windows before a packer: fixed by count, longest first or permuted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, held_after, plain, streams, units_of
from tests.exec.policies.known import Known
from zephon.exec.policies.policy import AT_END
from zephon.exec.policies.windows import Windows


def longest_first(units, size):
    rows, out = plain(units), []
    for at in range(0, len(rows), size):
        window = rows[at : at + size]
        trigger = window[-1][1] if len(window) == size else AT_END
        window.sort(key=lambda unit: -sum(length for _, _, length in unit[0]))
        out += [(row, trigger) for row, _ in window]
    return out


@settings(deadline=None, max_examples=40)
@given(streams(), st.integers(1, 30), GROUPINGS, st.data())
def test_longest_first_is_a_stable_sort_of_each_window(stream, size, groups, data):
    known, units = stream
    policy = Windows(order="length", seed=0, stage=0, size=size)
    at = data.draw(st.integers(0, len(units)))
    assert held_after(policy, units, known, groups, at) == held_after(policy, units, known, [1], at)
    assert feed(policy, units, known, groups, resume_at=at)[0] == longest_first(units, size)


@settings(deadline=None, max_examples=40)
@given(streams(), st.integers(1, 30), GROUPINGS, st.data())
def test_a_random_window_holds_the_same_units_in_an_order_that_grouping_does_not_change(
    stream, size, groups, data
):
    known, units = stream
    policy = Windows(order="random", seed=0, stage=0, size=size)
    at = data.draw(st.integers(0, len(units)))
    out, _ = feed(policy, units, known, groups, resume_at=at)
    assert out == feed(policy, units, known, [1])[0]
    wanted = longest_first(units, size)
    for start in range(0, len(out), size):
        assert sorted(out[start : start + size]) == sorted(wanted[start : start + size])


def test_windows_are_of_1024_and_the_random_ones_differ():
    known = Known([1] * 2500)
    out, _ = feed(Windows(order="random", seed=9, stage=0), known.units(), known, [300])
    seqs = np.array([row[0][0] for row, _ in out])
    assert [trigger for _, trigger in out] == [1023] * 1024 + [2047] * 1024 + [AT_END] * 452
    first, second = seqs[:1024], seqs[1024:2048] - 1024
    assert sorted(first) == sorted(second) == list(range(1024))
    assert (first == second).mean() < 0.01
    assert (first == np.arange(1024)).mean() < 0.01
    assert abs(np.corrcoef(first, np.arange(1024))[0, 1]) < 0.1


@pytest.mark.parametrize(("by_length", "order"), [(False, [1, 0]), (True, [0, 1])])
def test_the_measured_length_counts_instead_of_tokens_when_asked(by_length, order):
    known = Known([2, 2, 5, 5], length=[9, 9, 1, 1])
    units = units_of([[(0, 0, 2), (1, 0, 2)], [(2, 0, 5), (3, 0, 5)]], [1, 3])
    policy = Windows(order="length", seed=0, stage=0, by_length=by_length)
    out, _ = feed(policy, units, known, [2])
    assert [row for row, _ in out] == [plain(units)[place][0] for place in order]
