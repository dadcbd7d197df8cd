"""What a lane remembers: the state at any row is the same however far the lane has run."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import Keeps, Measured, Splits, chain_of, lane_of, push
from tests.exec.lanes_written import lane_from_json, lane_to_json
from tests.exec.policies.small import HoldLast, UpTo
from zephon.exec import lane_run
from zephon.exec.history import TICK
from zephon.exec.policies import Chain, Together, Wrap
from zephon.exec.policies.apart import Apart

MEASURES = ("length", "weight")
LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=40)
SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=6)
CHAINS = {
    "documents": Chain(),
    "wrapped to 2": chain_of(2),
    "wrapped to 5": chain_of(5),
    "wrapped to 17": chain_of(17),
    "wrapped to 100": chain_of(100),
    "held back": Chain([HoldLast(3)]),
    "all held back": Chain([HoldLast(1000)]),
    "held back, wrapped": Chain([HoldLast(3), Wrap(max_length=5)]),
    "wrapped, held back": Chain([Wrap(max_length=5), HoldLast(3)]),
    "joined, held back": Chain([UpTo(9), HoldLast(2)]),
    "held back, joined": Chain([HoldLast(7), UpTo(15)]),
    "rows together, apart, wrapped": Chain([Together(), HoldLast(3), Apart(), Wrap(max_length=5)]),
    "rows together, joined": Chain([Together(), HoldLast(2), UpTo(20, flush=False)]),
}


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Let ticks come every 8 draws, so that short lanes have many."""
    monkeypatch.setattr(lane_run, "TICK", 8)


def start(lengths, chain, state=None):
    return lane_of(lengths, chain, components=3, state=state, measures=MEASURES)


def run_to_the_end(run, lengths, sizes):
    """Push what is left, splits and measures with it; stop after each push, and after the end."""
    if not run.ended:
        for _ in push(run, lengths, sizes, Measured(), Splits()):
            yield
        run.end()
    yield


def written(run, rows):
    return json.dumps(lane_to_json(run.history.state_at(rows)))


def rows_of(run):
    """List the rows of a lane that were not taken as (draw, split, start, length), with marks."""
    found = []
    for placed in run.take(run.rows_placed - run.rows_taken):
        rows, refs = placed.rows, run.held.known(placed.rows.seq).refs
        columns = (refs.ordinal, refs.child, rows.start, rows.length)
        pieces = list(zip(*(column.tolist() for column in columns), strict=True))
        rows = [pieces[a:b] for a, b in pairwise(rows.splits.tolist())]
        found += zip(rows, placed.marks.tolist(), strict=True)
    return found


def all_states(lengths, chain):
    """Give the state at every row, each taken as soon as the row is there; and the rows."""
    run = start(lengths, chain)
    found = [written(run, 0)]
    for _ in run_to_the_end(run, lengths, [1]):
        found += [written(run, rows) for rows in range(len(found), run.rows_placed + 1)]
    return found, rows_of(run)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@settings(max_examples=5, deadline=None)
@given(LENGTHS, SIZES)
def test_states_depend_on_the_row_alone(chain, lengths, sizes):
    wanted, rows = all_states(lengths, chain)
    run = start(lengths, chain)
    for _ in run_to_the_end(run, lengths, sizes):
        for at in range(max(run.rows_placed - 4, 0), run.rows_placed + 1):
            assert written(run, at) == wanted[at]
    assert [written(run, at) for at in range(len(wanted))] == wanted
    assert run.rows_placed == len(wanted) - 1
    assert rows_of(run) == rows


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@pytest.mark.parametrize(("size", "behind"), [(3, 0), (20, 1), (3, 5)])
def test_forgetting_keeps_every_state_from_there_on(chain, size, behind):
    lengths, sizes = [i * 7 % 11 for i in range(40)], [size]
    wanted, _ = all_states(lengths, chain)
    run = start(lengths, chain)
    known = 0
    for _ in run_to_the_end(run, lengths, sizes):
        known = max(known, run.rows_placed - behind)
        run.history.forget_before(known)
        for rows in range(known, run.rows_placed + 1):
            assert written(run, rows) == wanted[rows]
    for rows in range(known, run.rows_placed + 1):  # the rows of the end are delivered, too
        run.history.forget_before(rows)
        assert written(run, rows) == wanted[rows]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@settings(max_examples=6, deadline=None)
@given(LENGTHS, SIZES, st.data())
def test_a_lane_goes_on_from_any_state_as_if_it_had_never_stopped(chain, lengths, sizes, data):
    wanted, all_rows = all_states(lengths, chain)
    rows = data.draw(st.integers(0, len(wanted) - 1) | st.just(len(wanted) - 1))
    state = lane_from_json(json.loads(wanted[rows]))
    assert json.dumps(lane_to_json(state)) == wanted[rows]
    run = start(lengths, chain, state)
    assert written(run, rows) == wanted[rows]
    assert (run.rows_taken, run.rows_placed >= rows) == (rows, True)
    for _ in run_to_the_end(run, lengths, sizes):
        pass
    for later in range(rows, len(wanted)):
        assert written(run, later) == wanted[later]
    assert rows_of(run) == all_rows[rows:]
    assert run.counts.rows.sum() == len(lengths)
    assert run.counts.tokens.sum() == sum(n * (2 - row % 2) for row, n in enumerate(lengths))
    assert run.held_tokens().sum() + sum(n for r, _ in all_rows for *_, n in r) == (
        run.counts.tokens.sum()
    )


def test_rows_that_the_end_lets_go_have_states_of_their_own():
    lengths = [4] * 20
    chain = Chain([HoldLast(3), Wrap(max_length=10)])
    run = lane_of(lengths, chain)
    list(push(run, lengths, [20]))
    assert run.rows_placed == 6  # of 17 documents
    run.end()
    assert run.rows_placed == 8
    states = [run.history.state_at(rows) for rows in range(9)]
    assert [state.ended for state in states] == [False] * 7 + [True] * 2
    assert [state.last_draw for state in states[5:]] == [15, 17, 19, 19]
    assert all(state.tick.ordinal == 16 for state in states[6:])
    for rows in (6, 7, 8):
        again = lane_of(lengths, chain, state=states[rows])
        assert again.ended == (rows > 6)
        assert (again.wants is None) == again.ended
        assert again.rows_placed - again.rows_taken == (8 - rows if rows > 6 else 0)


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 15, 16, 17])
def test_the_end_may_come_after_draws_that_give_nothing(kept):
    lengths, chain = [4] * 25, Chain([HoldLast(3), Wrap(max_length=6)])

    def run_it(state=None):
        run = lane_of(lengths, chain, state=state)
        if not run.ended:
            list(push(run, lengths, [5], Keeps(lambda refs: refs.row < kept)))
            run.end()
        return run

    run = run_it()
    wanted = [written(run, rows) for rows in range(run.rows_placed + 1)]
    assert len(wanted) == 1 + 4 * kept // 6
    for rows, saved in enumerate(wanted):
        again = run_it(lane_from_json(json.loads(saved)))
        assert [written(again, later) for later in range(rows, len(wanted))] == wanted[rows:]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@settings(max_examples=6, deadline=None)
@given(LENGTHS, SIZES, st.data())
def test_draws_that_give_nothing_count_once_wherever_a_lane_stops(chain, lengths, sizes, data):
    """Up to the draw that finished the last delivered row, and at the end of the lane all."""
    found = data.draw(st.sets(st.integers(0, len(lengths) - 1)))
    gone = np.array(sorted(found), np.int64)

    def run_it(sizes, state=None):
        run = start(lengths, chain, state)
        if not run.ended:
            steps = (Measured(), Splits(), Keeps(lambda refs: ~np.isin(refs.row, gone)))
            list(push(run, lengths, sizes, *steps))
            run.end()
        return run

    run = run_it([1])
    wanted = [written(run, rows) for rows in range(run.rows_placed + 1)]
    assert run.counts.rows.sum() == len(lengths)
    assert run.counts.filtered.sum() == (gone % 2 == 0).sum()
    assert run.counts.dropped.sum() == (gone % 2 == 1).sum()
    for rows in range(len(wanted)):
        state = run.history.state_at(rows)
        counts = state.tick.counts.after(state.log)
        drawn = np.arange(len(lengths) if state.ended else state.last_draw + 1)
        lost = gone[gone < len(drawn)]
        assert counts.rows.tolist() == np.bincount(drawn % 3, minlength=3).tolist()
        assert (
            counts.filtered.tolist() == np.bincount(lost[lost % 2 == 0] % 3, minlength=3).tolist()
        )
        assert counts.dropped.tolist() == np.bincount(lost[lost % 2 == 1] % 3, minlength=3).tolist()
    rows = data.draw(st.integers(0, len(wanted) - 1) | st.just(len(wanted) - 1))
    again = run_it(sizes, lane_from_json(json.loads(wanted[rows])))
    assert [written(again, later) for later in range(rows, len(wanted))] == wanted[rows:]
    assert [c.tolist() for c in again.counts] == [c.tolist() for c in run.counts]
    run.take(rows)
    assert rows_of(again) == rows_of(run)


def test_a_state_stays_small_where_hardly_any_draw_gives_a_document():
    lengths = [4] * 3000
    run = lane_of(lengths, chain_of(8))
    most = 0
    for _ in push(run, lengths, [50], Keeps(lambda refs: refs.row % 100 == 99)):
        run.history.forget_before(run.rows_placed)
        most = max(most, sum(map(len, run.history._log)), len(run.history._ticks))
        if run.rows_placed:
            assert len(run.history.state_at(run.rows_placed).log) <= 8
    assert run.rows_placed == 15
    assert most <= 8 + 50


def test_an_ended_lane_without_documents_has_a_state():
    run = lane_of([], Chain([HoldLast(3), Wrap(max_length=10)]))
    run.end()
    state = run.history.state_at(0)
    assert (state.rows, state.last_draw, state.ended) == (0, -1, False)


def test_ticks_before_the_end_leave_its_rows_the_draws_they_came_of():
    """Nobody knows when a tick is noted whether a draw follows it."""
    lengths = [4] * 24
    run = lane_of(lengths, CHAINS["all held back"])
    list(push(run, lengths, [7]))
    for ordinal in (24, 24):
        run._add_tick(ordinal)
    run.end()
    state = run.history.state_at(1)
    assert (state.last_draw, state.ended, state.tick.ordinal) == (23, True, 16)
    assert state.log.ordinal.tolist() == list(range(16, 24))


def test_only_what_an_undelivered_row_may_need_is_kept():
    """A lane of a million draws must not remember a million draws."""
    lengths = [3] * 4000
    run = lane_of(lengths, chain_of(7))
    most = 0
    for _ in push(run, lengths, [16]):
        run.history.forget_before(run.rows_placed)
        kept = sum(len(arrivals.ordinal) for arrivals in run.history._log)
        most = max(most, kept, len(run.history._ticks), len(run.history._finishing))
    assert most <= 8 + 16


def test_the_tick_lies_before_the_draw_that_finished_the_row():
    lengths = [4] * 40
    run = lane_of(lengths, chain_of(8))
    list(push(run, lengths, [40]))
    for rows in range(1, run.rows_placed + 1):
        state = run.history.state_at(rows)
        assert state.last_draw == 2 * rows - 1
        assert state.tick.ordinal == state.last_draw // 8 * 8
        assert state.log.ordinal.tolist() == list(range(state.tick.ordinal, state.last_draw + 1))
        assert state.tick.counts.rows.tolist() == [state.tick.ordinal]
        assert state.tick.counts.tokens.tolist() == [4 * state.tick.ordinal]


def test_the_beginning_has_no_log():
    run = lane_of([5, 5, 5], chain_of(4))
    list(push(run, [5, 5, 5], [3]))
    state = run.history.state_at(0)
    assert (state.rows, state.last_draw, len(state.log.ordinal)) == (0, -1, 0)


def test_rows_that_one_long_document_finishes_share_its_draw():
    run = lane_of([1, 100], chain_of(10))
    list(push(run, [1, 100], [2]))
    assert {run.history.state_at(rows).last_draw for rows in range(1, 11)} == {1}
    assert [run.history.state_at(rows).rows for rows in range(1, 11)] == list(range(1, 11))


def test_ticks_come_every_1024_draws(monkeypatch):
    monkeypatch.setattr(lane_run, "TICK", TICK)
    lengths = [1] * 5000
    run = lane_of(lengths, chain_of(100))
    list(push(run, lengths, [700]))
    ordinals = {run.history.state_at(rows).tick.ordinal for rows in range(51)}
    assert ordinals == {0, 1024, 2048, 3072, 4096}
    at_row_11 = run.history.state_at(11)
    assert (at_row_11.last_draw, at_row_11.tick.ordinal) == (1099, 1024)
    assert sum(at_row_11.tick.stages[0].units.length) == 24
