"""Policies in a row: each takes what the one before lets go, and gets its own state back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, plain, streams, written
from tests.exec.policies.known import Known
from tests.exec.policies.small import HoldLast, UpTo
from zephon.exec.policies import AT_END, Chain, Policy, Units, Wrap


def through(policies, units, known):
    """Push one unit at a time through each policy by hand; finish one after the other."""
    pushed = units
    for policy in policies:
        state, out = policy.make_state(0), []
        for at in range(len(pushed)):
            out.append(policy.push(state, pushed.rows(at, at + 1), known))
        out.append(policy.finish(state, known))
        pushed = Units.concat([part for part in out if len(part)])
    return plain(pushed)


CHAINS = {
    "one": [Wrap(max_length=7)],
    "held back, wrapped": [HoldLast(3), Wrap(max_length=7)],
    "wrapped, held back": [Wrap(max_length=5), HoldLast(2)],
    "held back twice": [HoldLast(1), HoldLast(4)],
    "joined, held back": [UpTo(9), HoldLast(2)],
    "three": [HoldLast(2), Wrap(max_length=6), HoldLast(3)],
}


@pytest.mark.parametrize("policies", CHAINS.values(), ids=CHAINS.keys())
@given(st.lists(st.integers(0, 20), max_size=40), GROUPINGS)
def test_a_chain_is_each_policy_after_the_other(policies, lengths, groups):
    known = Known(lengths, length=np.array(lengths, np.int64))
    found, _ = feed(Chain(policies), known.units(), known, groups)
    assert found == through(policies, known.units(), known)


@pytest.mark.parametrize("policies", CHAINS.values(), ids=CHAINS.keys())
@given(st.lists(st.integers(0, 20), max_size=40), GROUPINGS, st.data())
def test_every_policy_gets_its_own_state_back(policies, lengths, groups, data):
    known = Known(lengths, length=np.array(lengths, np.int64))
    cut = data.draw(st.integers(0, len(lengths)))
    chain = Chain(policies)
    states = chain.make_state(0)
    for at in range(cut):
        chain.push(states, known.units(at, at + 1), known)
    held = chain.held(states)
    assert len(held) == len(policies)
    again = chain.resume(0, held, known)
    assert [written(part) for part in chain.held(again)] == [written(part) for part in held]
    rest = known.units(cut)
    assert plain(chain.push(again, rest, known)) == plain(chain.push(states, rest, known))
    assert plain(chain.finish(again, known)) == plain(chain.finish(states, known))
    assert [written(part) for part in chain.held(again)] == [
        written(part) for part in chain.held(states)
    ]


@given(streams(), GROUPINGS)
def test_without_policies_every_document_is_a_row(stream, groups):
    known, units = stream
    chain = Chain()
    assert chain.make_state(3) == []
    assert chain.push([], units, known) is units
    assert len(chain.finish([], known)) == 0
    assert chain.held([]) == ()
    assert chain.dropped([]) == {}


def test_what_the_end_lets_go_goes_through_the_policies_that_follow():
    """Three documents are held back; at the end they fill a row, and the rest of it is lost."""
    chain, known = Chain([HoldLast(3), Wrap(max_length=4)]), Known([3, 3, 3, 3])
    states = chain.make_state(0)
    assert len(chain.push(states, known.units(), known)) == 0
    assert plain(chain.finish(states, known)) == [
        ([(0, 0, 3), (1, 0, 1)], AT_END),
        ([(1, 1, 2), (2, 0, 2)], AT_END),
        ([(2, 2, 1), (3, 0, 3)], AT_END),
    ]
    assert [written(held)[0] for held in chain.held(states)] == [[], []]


def test_a_state_of_other_policies_is_refused():
    chain, known = Chain([Wrap(max_length=4), HoldLast(1)]), Known([3])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        chain.resume(0, chain.held(chain.make_state(0))[:1], known)


class Drops(Policy):
    """Says that it threw something away."""

    def __init__(self, **reasons):
        self.reasons = reasons

    make_state = push = held = resume = None

    def dropped(self, state):
        return {reason: np.array(tokens) for reason, tokens in self.reasons.items()}


Drops.__abstractmethods__ = frozenset()


def test_what_policies_drop_adds_up_by_reason():
    chain = Chain(
        [Drops(oversized=[1, 2]), Wrap(max_length=3), Drops(oversized=[10, 0], other=[0, 5])]
    )
    found = {reason: tokens.tolist() for reason, tokens in chain.dropped([None] * 3).items()}
    assert found == {"oversized": [11, 2], "other": [0, 5]}
