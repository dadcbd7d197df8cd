"""Ensure mixture against the slow way; how near shares stay; what is obsolete, forced and told."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, cut, feed, held_after, plain, streams, units_of
from tests.exec.policies.known import Known
from tests.exec.policies.obvious_mixture import ObviousMixture
from zephon.exec.policies import ensure_mixture
from zephon.exec.policies.ensure_mixture import EnsureMixture
from zephon.exec.policies.policy import AT_END
from zephon.exec.renumbering import Renumbering

EVERY = 5  # units between two looks at the weights, here: so that few units see many targets
TARGETS = st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0]), min_size=3, max_size=3).filter(any)


@st.composite
def settings_of(draw):
    return {
        "max_buffer_size": draw(st.sampled_from([None, 1, 2, 5, 20, 1000])),
        "drain_target_ratio": draw(st.sampled_from([0.1, 0.5, 0.8])),
        "obsolete_drain_rate": draw(st.sampled_from([0, 0.1, 0.4, 1.0])),
        "weight_by": draw(st.sampled_from(["tokens", "samples", "weight"])),
    }


@st.composite
def mixtures(draw):
    """Draw a policy, the slow one of the same settings, and a stream whose weights change."""
    known, units = draw(streams(most=300, rows=st.integers(4, 40)))
    chosen, groups = draw(settings_of()), draw(st.sampled_from([[0, 1, 2], [1, 0, 1], [2, 2, 0]]))
    target = draw(st.none() | TARGETS)
    stages = draw(st.lists(st.none() | TARGETS, min_size=1, max_size=12))
    known.of_weights = lambda seq: stages[min(seq // 20, len(stages) - 1)]
    policy = EnsureMixture(groups=groups, names="abc", target=_array(target), **chosen)
    slow = ObviousMixture(
        groups,
        3,
        target=None if target is None else (_array(target) / sum(target)).tolist(),
        most=chosen["max_buffer_size"],
        ratio=chosen["drain_target_ratio"],
        rate=chosen["obsolete_drain_rate"],
        weight_by=chosen["weight_by"],
        every=EVERY,
    )
    return known, units, policy, slow


def _array(values):
    return None if values is None else np.array(values, np.float64)


@settings(deadline=None, max_examples=50)
@given(mixtures(), GROUPINGS, st.data())
def test_it_is_the_slow_way_however_pushed_and_wherever_resumed(mixture, groups, data):
    known, units, policy, slow = mixture
    at = data.draw(st.integers(0, len(units)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensure_mixture, "_EVERY", EVERY)
        whole = held_after(policy, units, known, [1], at)
        assert held_after(policy, units, known, groups, at) == whole
        out, state = feed(policy, units, known, groups, resume_at=at, lane=1)
        kept = plain(policy.held(feed(policy, units, known, [50])[1]).units)
    assert out == slow.run(units, known)
    assert policy.realised(state).tolist() == slow.realised
    everything = sorted(row for row, _ in plain(units))
    assert sorted(row for row, _ in [*out, *kept]) == everything
    assert not kept or policy._most == np.inf


def lane(shares, count, lengths=(1,), seed=0, weights=None):
    """Make documents whose components are drawn by shares."""
    numbers = np.random.default_rng(seed)
    shares = np.array(shares, float)
    components = numbers.choice(len(shares), count, p=shares / shares.sum())
    return Known(numbers.choice(lengths, count), components=components, weights=weights)


def prefixes(out, known, count):
    """Return tokens by component after each unit that left, shape [units, components]."""
    tokens = np.zeros((len(out), count))
    for place, (row, _) in enumerate(out):
        for seq, _, length in row:
            tokens[place, known.of_components[seq]] += length
    return np.cumsum(tokens, axis=0)


@pytest.mark.parametrize("target", [[1, 1], [1, 2, 5], [1, 1, 1, 1, 1, 15]])
@pytest.mark.parametrize("lengths", [[1], [1, 7, 40]])
def test_without_force_shares_stay_within_two_units_of_the_target(target, lengths):
    known = lane(target, 5000, lengths)
    policy = EnsureMixture(
        groups=range(len(target)), names="abcdef"[: len(target)], target=_array(target),
        max_buffer_size=None,
    )  # fmt: skip
    out, _ = feed(policy, known.units(), known, [500])
    tokens = prefixes(out, known, len(target))
    ahead = tokens - tokens.sum(1, keepdims=True) * np.array(target) / sum(target)
    assert len(out) > 4000
    assert np.abs(ahead).max() <= 2 * max(lengths)
    came = prefixes([([(s, 0, n)], 0) for s, n in enumerate(known.of_lengths)], known, len(target))
    drift = came - came.sum(1, keepdims=True) * np.array(target) / sum(target)
    assert np.abs(drift).max() > 5 * max(lengths)  # as they came they strayed further


def test_a_bounded_buffer_loses_nothing_never_holds_more_and_drains_to_its_ratio():
    known = lane([1, 1], 4000, [1])
    known.of_lengths = np.where(known.of_components == 0, 20, 2)
    policy = EnsureMixture(
        groups=[0, 1], names="ab", target=_array([1, 1]), max_buffer_size=100,
        drain_target_ratio=0.6,
    )  # fmt: skip
    state, held, out = policy.make_state(0), [], 0
    for at in range(4000):
        out += len(policy.push(state, known.units(at, at + 1), known))
        held.append(at + 1 - out)
    assert max(held) == 99
    assert set(np.diff(held)) <= {
        1,
        0,
        -1,
        -39,
    }  # it waits, passes, brings one along; or down to 60
    assert -39 in np.diff(held)
    assert out + len(policy.finish(state, known)) == 4000
    assert policy.realised(state).tolist() == [
        known.of_lengths[known.of_components == group].sum() for group in (0, 1)
    ]


def test_without_a_bound_what_has_no_partner_stays_held():
    known = Known([20, 2] * 200, components=[0, 1] * 200)
    policy = EnsureMixture(groups=[0, 1], names="ab", target=_array([1, 1]), max_buffer_size=None)
    out, state = feed(policy, known.units(), known, [50])
    assert sum(row[0][2] == 2 for row, _ in out) == 200  # every one of the scarce kind left
    assert len(out) + len(policy.held(state).units) == 400
    assert abs(np.subtract(*policy.realised(state))) <= 20


def changing(before, after, at):
    return lambda seq: before if seq < at else after


def test_a_schedule_is_followed_on_its_way():
    """Shares that left are those of each stage, not one average over both."""
    known = lane([1, 1], 4096, weights=changing([3, 1], [1, 3], 2048))
    policy = EnsureMixture(groups=[0, 1], names="ab", max_buffer_size=None)
    out, _ = feed(policy, known.units(), known, [100])
    first = [known.of_components[row[0][0]] for row, trigger in out if trigger < 2048]
    later = [known.of_components[row[0][0]] for row, trigger in out if trigger >= 2048]
    assert abs(np.mean(first) - 0.25) < 0.002
    assert abs(np.mean(later) - 0.75) < 0.002


@pytest.mark.parametrize(("rate", "period"), [(0.1, 10), (0.3, 3), (1.0, 1)])
def test_obsolete_units_leave_one_for_so_many_others_in_their_former_shares(rate, period):
    # Of 64 of each kind, those of b and c wait for a; then only a is wanted.
    components = [1] * 256 + [2] * 128 + [0] * 2000
    known = Known(
        [1] * len(components), components=components, weights=changing([5, 2, 1], [1, 0, 0], 384)
    )
    policy = EnsureMixture(
        groups=[0, 1, 2], names="abc", max_buffer_size=1000, obsolete_drain_rate=rate
    )
    out, _ = feed(policy, known.units(), known, [33], resume_at=605)
    left = [components[row[0][0]] for row, trigger in out if trigger != AT_END]
    drained = np.flatnonzero(left)
    assert set(np.diff(drained)) == {period + 1} or drained[-1] == 384 + 383 * period
    # b left twice as often as c for as long as both waited.
    assert [left[place] for place in drained[:30]].count(1) == 20
    assert len(out) == len(components)


def test_a_component_that_becomes_obsolete_later_does_not_first_catch_up_with_the_others():
    components = [1] * 256 + [2] * 256 + [0] * 2000
    targets = [[2, 1, 1], [2, 0, 1], [1, 0, 0]]
    known = Known(
        [1] * len(components),
        components=components,
        weights=lambda seq: targets[(seq >= 512) + (seq >= 640)],
    )
    policy = EnsureMixture(groups=[0, 1, 2], names="abc", obsolete_drain_rate=0.2)
    out, _ = feed(policy, known.units(), known, [100], resume_at=900)
    drained = [components[row[0][0]] for row, trigger in out if trigger >= 640]
    drained = [kind for kind in drained if kind]
    # b had a quarter when it went, 128 arrivals ago, and c a third when it did.
    assert abs(drained[:70].count(1) - 30) <= 1


def test_obsolete_units_wait_for_the_end_at_rate_zero_or_leave_when_only_they_fill_the_buffer():
    known = Known([1] * 300, components=[1] * 150 + [0] * 150)
    chosen = {"groups": [0, 1], "names": "ab", "target": _array([1, 0]), "obsolete_drain_rate": 0}
    out, _ = feed(EnsureMixture(**chosen, max_buffer_size=1000), known.units(), known, [9])
    assert [row[0][0] for row, _ in out] == [*range(150, 300), *range(150)]
    out, _ = feed(EnsureMixture(**chosen, max_buffer_size=100), known.units(), known, [9])
    assert [row[0][0] for row, trigger in out if trigger == 99] == list(range(20))
    assert len(out) == 300


def test_components_of_one_name_share_its_target():
    known = Known([1] * 300, components=[0, 1, 2] * 100)
    policy = EnsureMixture(groups=[0, 0, 1], names="ab", target=_array([2, 1]), max_buffer_size=4)
    out, state = feed(policy, known.units(), known, [300])
    assert policy.realised(state).tolist() == [200, 100]
    assert [trigger == AT_END for _, trigger in out].count(True) <= 2


def test_the_target_stays_what_it_was_where_none_is_known():
    known = lane([1, 1], 400, weights=lambda seq: _array([1, 1]) if seq < 64 else None)
    policy = EnsureMixture(groups=[0, 1], names="ab", max_buffer_size=None)
    out, _ = feed(policy, known.units(), known, [400])
    kinds = np.cumsum([1 - 2 * known.of_components[row[0][0]] for row, _ in out])
    assert np.abs(kinds).max() <= 1
    unknown = Known([1] * 100, components=[0, 1] * 50)
    assert feed(policy, unknown.units(), unknown, [7])[0] == plain(unknown.units())


def test_packed_rows_of_several_components_even_out_what_comes_in_waves():
    numbers, count = np.random.default_rng(2), 6000
    wave = 0.5 + 0.4 * np.sin(np.arange(count) / 150)
    known = Known(
        numbers.integers(1, 60, count), components=(numbers.random(count) < wave).astype(int)
    )
    rows = cut(known.of_lengths.tolist(), 128)
    units = units_of(rows, [row[-1][0] for row in rows])
    policy = EnsureMixture(groups=[0, 1], names="ab", target=_array([1, 1]), max_buffer_size=1000)
    out, _ = feed(policy, units, known, [77])
    before, after = (np.ptp(prefixes(o, known, 2), axis=1) for o in (plain(units), out))
    forced = [trigger == AT_END for _, trigger in out].index(True)
    assert before.max() > 4000
    assert after[:forced].max() < 4 * 128
    assert sorted(out, key=str) != out
    assert sorted(row for row, _ in out) == sorted(rows)


def test_a_deviation_is_told_once_a_lane_and_not_before_enough_has_left():
    known = Known([20, 2] * 200, components=[0, 1] * 200)
    policy = EnsureMixture(
        groups=[0, 1], names=["web", "code"], target=_array([1, 1]), max_buffer_size=10,
        warn_tolerance=0.2,
    )  # fmt: skip
    with pytest.warns(
        RuntimeWarning, match=r"lane 3 let go 0\.\d+ of 'web', wanted 0\.500"
    ) as told:
        feed(policy, known.units(), known, [1], lane=3, resume_at=300)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = Known([20, 2] * 40, components=[0, 1] * 40)
        feed(policy, few.units(), few, [1])
        even = Known([2, 2] * 1000, components=[0, 1] * 1000)
        feed(policy, even.units(), even, [100])


def test_what_a_schedule_made_due_is_no_deviation():
    known = lane([1, 1], 4096, weights=changing([3, 1], [1, 3], 2048))
    policy = EnsureMixture(
        groups=[0, 1], names="ab", max_buffer_size=None, warn_tolerance=0.01
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feed(policy, known.units(), known, [100])


def test_what_left_is_cleared_away():
    known = lane([1, 2, 3], 30_000, weights=lambda seq: [1, 2, 3])
    policy = EnsureMixture(groups=range(3), names="abc")
    state = policy.make_state(0)
    for at in range(0, 30_000, 100):
        policy.push(state, known.units(at, at + 100), known)
    assert state.store._table.shape[1] <= 8192
    assert sum(map(len, state.serving)) == 0


def test_it_goes_on_among_other_components():
    """What waits and what left stays with its component; the target of now is aimed at."""
    then = EnsureMixture(groups=[0, 1], names="ab", target=np.array([0.5, 0.5]))
    known = Known([1] * 40, components=[1] * 40)
    state = then.make_state(0)
    left = then.push(state, known.units(), known)
    now = EnsureMixture(groups=[0, 1, 2], names="cba", target=np.array([0.5, 0.25, 0.25]))
    held = now.renumbered(then.held(state), then, Renumbering(np.array([2, 1]), 3))
    known = Known([1] * 240, components=[1] * 40 + [2, 0, 0, 0] * 50)
    state = now.resume(0, held, known)
    assert now.realised(state).tolist() == [0.0, len(left), 0.0]
    now.push(state, known.units().rows(40, 240), known)
    assert state.target == [0.5, 0.25, 0.25]
    came = now.realised(state) - [0.0, len(left), 0.0]
    assert came[1] > 30 and abs(came[0] / came.sum() - 0.5) < 0.1
