"""What a restored lane finds again; whatever does not fit is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exec.by_hand import Counted, lane_of, push, token_lane
from tests.exec.policies.small import HoldLast
from zephon.errors import CheckpointError
from zephon.exec.intake import Intake
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain, Wrap
from zephon.exec.restoring import drawn_again, resumed, set_intakes

LENGTHS = [3, 4, 2, 5, 1, 6, 2, 3]


def state_of(rows=2):
    run = lane_of(LENGTHS, Chain([HoldLast(2), Wrap(max_length=6)]))
    list(push(run, LENGTHS, [3]))
    return run, run.state_at(rows)


def test_the_references_of_a_log_are_drawn_again():
    _, state = state_of()
    documents = state.log.documents()
    refs = drawn_again(0, state, documents, Counted(len(LENGTHS)))
    assert refs.row.tolist() == documents.ordinal.tolist()
    assert refs.last_child.all()
    assert not refs.child.any()


def test_a_source_that_draws_others_is_refused():
    _, state = state_of()
    with pytest.raises(CheckpointError, match="lane 0 draws other rows than when"):
        drawn_again(0, state, state.log.documents(), Counted(len(LENGTHS), components=2))
    with pytest.raises(CheckpointError, match="from draw 0 on; a work source must repeat"):
        drawn_again(0, state, state.log.documents(), Counted(1))


def test_states_of_other_policies_are_refused():
    run, state = state_of()
    tick = run.history.state_at(state.rows).tick
    chain = Chain([Wrap(max_length=6)])
    with pytest.raises(CheckpointError, match="does not fit the steps of this pipeline"):
        wrong = replace(tick.stages[0], numbers={"nothing": np.zeros(1, np.int64)})
        resumed(chain, replace(tick, stages=(wrong, wrong)), run.held)
    with pytest.raises(CheckpointError, match="does not fit the steps of this pipeline"):
        resumed(chain, replace(tick, stages=tick.stages * 3, known=tick.known), run.held)


def test_intakes_go_on_behind_the_last_draw():
    _, state = state_of()
    (intake,) = intakes = [Intake(Counted(len(LENGTHS)))]
    set_intakes(intakes, None, np.zeros(1, np.int64), state)
    assert intake.next_draw == intake.read == state.last_draw + 1


def test_intakes_of_strands_go_on_behind_their_merged_documents():
    lane = token_lane([[5] * 4, [5] * 4], (1, 1))
    run = LaneRun(0, lane, Chain([Wrap(max_length=5)]), 2)
    intakes = [Intake(strand) for strand in lane.strands]
    set_intakes(intakes, run.strands, np.array([7, 8]), run.state_at(0))
    assert [(each.next_draw, each.read, each.tokens) for each in intakes] == [(0, 0, 7), (0, 0, 8)]
