"""Domains: each gives the rows it would give alone, in the order of what let them go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, held_after, plain
from tests.exec.policies.known import Known
from tests.exec.policies.packing import documents, packed
from zephon.exec.policies.best_fit import BestFit
from zephon.exec.policies.best_fit_wrap import BestFitWrap
from zephon.exec.policies.domains import Domains
from zephon.exec.policies.policy import AT_END
from zephon.exec.policies.windows import Windows
from zephon.exec.policies.wrap import Wrap
from zephon.exec.renumbering import Renumbering

POLICIES = [
    BestFit(max_length=20, num_bins=2, components=3),
    BestFitWrap(max_length=20, candidate_pool_size=3),
    Wrap(max_length=20, max_sequences_per_bin=3),
    Wrap(max_length=20),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@settings(deadline=None, max_examples=30)
@given(
    documents(),
    st.lists(st.sampled_from([2, 5, 9]), min_size=3, max_size=3),
    GROUPINGS,
    st.data(),
)
def test_each_domain_gives_the_rows_it_gives_alone(policy, stream, domains, groups, data):
    known, units = stream
    of_unit = np.array(domains)[known.of_components]
    # Who lets a row go is told apart here, even where several units share a trigger.
    units = units.let_go(np.arange(len(units)))
    pushed, ended = [], []
    for domain in sorted(set(domains)):
        alone, _ = feed(policy, units.take(np.flatnonzero(of_unit == domain)), known, [1])
        pushed += [row for row in alone if row[1] != AT_END]
        ended += [row for row in alone if row[1] == AT_END]
    pushed.sort(key=lambda row: row[1])
    both = Domains(policy, domains)
    at = data.draw(st.integers(0, len(units)))
    assert feed(both, units, known, groups, resume_at=at)[0] == pushed + ended
    assert held_after(both, units, known, groups, at) == held_after(both, units, known, [1], at)


@settings(deadline=None, max_examples=30)
@given(documents(), GROUPINGS)
def test_units_that_share_a_trigger_may_be_pushed_together_or_not(stream, groups):
    known, units = stream
    policy = Domains(Wrap(max_length=9, max_sequences_per_bin=2), [0, 1, 0])
    assert feed(policy, units, known, groups)[0] == feed(policy, units, known, [1])[0]


def test_a_row_holds_one_domain_and_domains_end_in_order():
    policy = Domains(BestFit(max_length=10, num_bins=2, components=3), [7, 4, 7])
    rows, _ = packed(policy, [3, 6, 4, 4, 3, 9], components=[0, 1, 2, 1, 2, 1])
    seqs = [[seq for seq, _, _ in row] for row in rows]
    assert seqs == [[1, 3], [0, 2, 4], [5]]


def test_what_domains_drop_is_counted_together_and_outlives_a_resume():
    policy = Domains(BestFit(max_length=10, num_bins=2, components=3), [0, 1, 0])
    known = Known([30, 2, 11, 40, 12], components=[0, 1, 1, 2, 0])
    _, state = feed(policy, known.units(), known, [2], resume_at=3)
    assert policy.dropped(state)["oversized"].tolist() == [42, 11, 40]
    assert policy.dropped_documents(state) == 4


def test_a_policy_that_drops_nothing_counts_nothing():
    policy = Domains(Wrap(max_length=10), [0, 1])
    assert dict(policy.dropped(policy.make_state(0))) == {}
    assert policy.dropped_documents(policy.make_state(0)) == 0


def test_a_row_belongs_to_the_domain_that_it_begins_with():
    known = Known([2, 2, 4, 3, 1], components=[0, 1, 0, 1, 0])
    rows = Wrap(max_length=4).push(Wrap(max_length=4).make_state(0), known.units(), known)
    policy = Domains(Windows(order="length", seed=0, stage=0, size=2), [0, 1])
    state = policy.make_state(0)
    assert plain(policy.push(state, rows, known)) == [
        ([(0, 0, 2), (1, 0, 2)], 2),
        ([(2, 0, 4)], 2),
    ]
    assert plain(policy.finish(state, known)) == [([(3, 0, 3), (4, 0, 1)], AT_END)]


def test_each_domain_goes_on_among_other_components():
    """A component came in front, two stand the other way round, and one that is gone is in none."""
    then = Domains(BestFit(max_length=10, num_bins=2, components=3), [4, 1, -1])
    now = Domains(BestFit(max_length=10, num_bins=2, components=4), [3, 0, 5, -1])
    numbers = Renumbering(np.array([2, 1, 3]), 4)
    known = Known([3, 30, 4, 5, 5], components=[0, 0, 1, 1, 0])
    state = then.make_state(0)
    assert not len(then.push(state, known.units(), known))
    held = now.renumbered(then.held(state), then, numbers)
    known = Known([3, 30, 4, 5, 5, 2, 1, 10], components=[2, 2, 1, 1, 2, 2, 1, 0])
    state = now.resume(0, held, known)
    assert now.dropped(state)["oversized"].tolist() == [0, 0, 30, 0]
    rows = plain(now.push(state, known.units().rows(5, 8), known))
    assert [sorted(seq for seq, _, _ in pieces) for pieces, _ in rows] == [
        [0, 4, 5],
        [2, 3, 6],
        [7],
    ]
