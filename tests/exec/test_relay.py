"""Operators of the user between floors of a lane: the same rows from every state, on every way."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.lanes_written import lane_from_json, lane_to_json
from tests.exec.policies.small import HoldLast
from tests.exec.towers_by_hand import (
    GROUND,
    LENGTHS,
    PACKED,
    TOWERS,
    InPairs,
    Uneven,
    entry,
    often,
    rows_of,
    run_all,
    start,
    step,
    whole,
    written,
)
from zephon.errors import CheckpointError, DataError, ExecutionError
from zephon.exec.operator import Operator, RowError
from zephon.exec.policies import Chain, Wrap
from zephon.exec.towers import counted_at


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    often(monkeypatch)


@pytest.mark.parametrize("name", TOWERS)
def test_rows_and_states_depend_on_the_row_alone(name):
    states, rows, _ = whole(name)
    assert len(states) == len(rows) + 1 > 10
    for sizes in ([90], [7, 1, 20]):
        again, found, run = run_all(name, sizes, forget=True)
        assert found == rows
        assert again == states
        assert sum(len(floor.below._intervals) for floor in run.floors() if floor.below) < 60


@pytest.mark.parametrize("name", TOWERS)
@settings(max_examples=4, deadline=None)
@given(data=st.data(), size=st.integers(1, 40))
def test_a_tower_goes_on_from_any_state_as_if_it_had_never_stopped(name, data, size):
    states, rows, before = whole(name)
    at = data.draw(st.integers(0, len(rows)) | st.sampled_from([len(rows), len(rows) - 1]))
    state = lane_from_json(json.loads(states[at]))
    assert json.dumps(lane_to_json(state)) == states[at]
    again, found, run = run_all(name, [size], state, rows=at, forget=data.draw(st.booleans()))
    assert found == rows[at:]
    assert again == states[at:]
    for mine, wanted in zip(run.floors(), before.floors(), strict=True):
        assert [c.tolist() for c in mine.counts] == [c.tolist() for c in wanted.counts]
    late = data.draw(st.integers(0, len(again) - 1))
    once_more = lane_from_json(json.loads(again[late]))
    assert run_all(name, [5], once_more, rows=at + late)[1] == rows[at + late :]


# What goes wrong


class Failing(Uneven):
    """Fails at the row with a number."""

    label = "failing"

    def push(self, state, records):
        if any(41_000 in record.payload["input_ids"] for record in records):
            raise ExecutionError("failing: no")
        return state, records


def test_what_an_operator_raises_waits_until_its_lane_gets_there(monkeypatch):
    for size in (1, 90):
        monkeypatch.setitem(TOWERS, "failing", (PACKED, [partial(entry, Failing(), 1)]))
        run = start("failing")
        with pytest.raises(ExecutionError, match="failing: no"):
            while not run.ended:
                step("failing", run, size)
        assert run.rows_placed % 4 == 0 < run.rows_placed
        found = rows_of("failing", run, run.rows_placed)
        assert max(token for tokens, _ in found for token in tokens) < 41_000
        assert written(run, run.rows_placed)


class Refusing(Operator):
    """Fails at the row with a number."""

    label = "refusing"

    def run(self, rows):
        at = np.flatnonzero(rows.refs.row == 41)
        if len(at):
            raise RowError(int(at[0]), "a row must not be", "leave it out")
        return rows


def test_a_row_that_a_step_above_refuses_takes_those_before_it_with_it_not(monkeypatch):
    made = partial(entry, Uneven(), 1, None, Refusing())
    monkeypatch.setitem(TOWERS, "refusing", (GROUND, [made]))
    monkeypatch.setitem(TOWERS, "not refusing", (GROUND, [partial(entry, Uneven(), 1)]))
    run = start("refusing")
    with pytest.raises(DataError, match="refusing: a row must not be on group"):
        while not run.ended:
            step("refusing", run, 7)
    found = rows_of("refusing", run, run.rows_placed)
    assert found == run_all("not refusing", [7])[1][: len(found)]
    assert found[-1][1] == [(0, 0, 39)]


def test_other_records_than_before_are_noticed(monkeypatch):
    class Longer(InPairs):
        def push(self, state, records):
            for record in records:
                record.payload["input_ids"] = [*record.payload["input_ids"], 0]
            return super().push(state, records)

    name = "flushed behind a packer, packed"
    states, _, _ = whole(name)
    state = lane_from_json(json.loads(states[len(states) // 2]))
    longer = partial(entry, Longer(), 2, Chain([HoldLast(2), Wrap(max_length=7)]))
    monkeypatch.setitem(TOWERS, name, (PACKED, [longer]))
    with pytest.raises(CheckpointError, match="in pairs gives other records in lane 0 than when"):
        run_all(name, [7], state, rows=state.rows)


# What is kept


def test_rows_that_nobody_needs_any_more_are_let_go_of(monkeypatch):
    """An endless lane remembers what its policies hold, however long it runs."""
    monkeypatch.setitem(
        TOWERS, "long", (GROUND, [partial(entry, InPairs(), 2, Chain([HoldLast(6)]))])
    )
    run = start("long")
    most = 0
    while not run.ended:
        step("long", run, 5)
        while run.rows_taken < run.rows_placed:
            rows_of("long", run, 1)
            run.forget_before(run.rows_taken)
        most = max(most, len(run.below._intervals))
    assert most <= 2 * 5 + 8 + 1
    (interval, *_) = run.below._intervals
    assert interval > 0


def test_rows_are_counted_at_the_bottom_and_tokens_at_the_top():
    name = "filtered above"
    states, rows, run = whole(name)
    for at in (1, len(rows) // 2, len(rows)):
        state = lane_from_json(json.loads(states[at]))
        counts = counted_at(state, 0)
        last = state.below.lane.last_draw
        assert counts.rows.sum() == last + 1
        lost = [row for row in range(last + 1) if row % 11 == 3]
        assert counts.filtered.sum() == sum(row % 2 == 0 for row in lost)
        assert counts.dropped.sum() == sum(row % 2 for row in lost)
    assert run.counts.tokens.sum() == sum(len(tokens) for tokens, _ in rows)
    assert run.bottom.counts.rows.sum() == len(LENGTHS)
