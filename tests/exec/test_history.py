"""What a lane remembers: the state at any row is the same however far the lane has run."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import lane_of, policy_of, push
from zephon.exec import lane_run
from zephon.exec.checkpoint import lane_from_dict, lane_to_dict
from zephon.exec.history import TICK

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=60)
ROWS = st.sampled_from([None, 1, 2, 5, 8, 17, 100])
SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Let ticks come every 8 draws, so that short lanes have many."""
    monkeypatch.setattr(lane_run, "TICK", 8)


def written(run, rows):
    return json.dumps(lane_to_dict(run.history.state_at(rows)))


def all_states(lengths, max_length, components=1):
    """Give the state at every row, each taken as soon as the row is there."""
    run = lane_of(lengths, policy_of(max_length), components=components)
    found = [written(run, 0)]
    for _ in push(run, lengths, [1]):
        found += [written(run, rows) for rows in range(len(found), run.rows_placed + 1)]
    return found


@settings(max_examples=60, deadline=None)
@given(LENGTHS, ROWS, SIZES)
def test_states_depend_on_the_row_alone(lengths, max_length, sizes):
    wanted = all_states(lengths, max_length, 3)
    run = lane_of(lengths, policy_of(max_length), components=3)
    for _ in push(run, lengths, sizes):
        for rows in range(run.rows_placed + 1):
            assert written(run, rows) == wanted[rows]
    run.end()
    assert [written(run, rows) for rows in range(run.rows_placed + 1)] == wanted


@pytest.mark.parametrize("max_length", [None, 5, 17])
@pytest.mark.parametrize("size", [3, 7, 20])
@pytest.mark.parametrize("behind", [0, 1, 2, 5, 9])
def test_forgetting_keeps_every_state_from_there_on(max_length, size, behind):
    lengths, sizes = [i * 7 % 11 for i in range(70)], [size]
    wanted = all_states(lengths, max_length)
    run = lane_of(lengths, policy_of(max_length))
    known = 0
    for _ in push(run, lengths, sizes):
        known = max(known, run.rows_placed - behind)
        run.history.forget_before(known)
        for rows in range(known, run.rows_placed + 1):
            assert written(run, rows) == wanted[rows]


@settings(max_examples=60, deadline=None)
@given(LENGTHS, ROWS, SIZES, st.data())
def test_a_lane_goes_on_from_any_state_as_if_it_had_never_stopped(lengths, max_length, sizes, data):
    wanted = all_states(lengths, max_length, 2)
    rows = data.draw(st.integers(0, len(wanted) - 1))
    state = lane_from_dict(0, json.loads(wanted[rows]))
    run = lane_of(lengths, policy_of(max_length), components=2, state=state)
    assert written(run, rows) == wanted[rows]
    assert (run.rows_taken, run.rows_placed >= rows) == (rows, True)
    for _ in push(run, lengths, sizes):
        pass
    for later in range(rows, len(wanted)):
        assert written(run, later) == wanted[later]
    assert run.rows_drawn.sum() == len(lengths)
    assert run.tokens_made.sum() == sum(lengths)


def test_only_what_an_undelivered_row_may_need_is_kept():
    """A lane of a million draws must not remember a million draws."""
    lengths = [3] * 4000
    run = lane_of(lengths, policy_of(7))
    most = 0
    for _ in push(run, lengths, [16]):
        run.history.forget_before(run.rows_placed)
        kept = sum(len(arrivals.ordinal) for arrivals in run.history._log)
        most = max(most, kept, len(run.history._ticks), len(run.history._finishing))
    assert most <= 8 + 16


def test_the_tick_lies_before_the_draw_that_finished_the_row():
    lengths = [4] * 40
    run = lane_of(lengths, policy_of(8))
    list(push(run, lengths, [40]))
    for rows in range(1, run.rows_placed + 1):
        state = run.history.state_at(rows)
        assert state.last_draw == 2 * rows - 1
        assert state.tick.ordinal == state.last_draw // 8 * 8
        assert state.log.ordinal.tolist() == list(range(state.tick.ordinal, state.last_draw + 1))
        assert state.tick.counts.rows.tolist() == [state.tick.ordinal]
        assert state.tick.counts.tokens.tolist() == [4 * state.tick.ordinal]


def test_the_beginning_has_no_log():
    run = lane_of([5, 5, 5], policy_of(4))
    list(push(run, [5, 5, 5], [3]))
    state = run.history.state_at(0)
    assert (state.rows, state.last_draw, len(state.log.ordinal)) == (0, -1, 0)


def test_rows_that_one_long_document_finishes_share_its_draw():
    run = lane_of([1, 100], policy_of(10))
    list(push(run, [1, 100], [2]))
    assert {run.history.state_at(rows).last_draw for rows in range(1, 11)} == {1}
    assert [run.history.state_at(rows).rows for rows in range(1, 11)] == list(range(1, 11))


def test_ticks_come_every_1024_draws(monkeypatch):
    monkeypatch.setattr(lane_run, "TICK", TICK)
    lengths = [1] * 5000
    run = lane_of(lengths, policy_of(100))
    list(push(run, lengths, [700]))
    ordinals = {run.history.state_at(rows).tick.ordinal for rows in range(51)}
    assert ordinals == {0, 1024, 2048, 3072, 4096}
    at_row_11 = run.history.state_at(11)
    assert (at_row_11.last_draw, at_row_11.tick.ordinal) == (1099, 1024)
    assert at_row_11.tick.held.length.sum() == 24
