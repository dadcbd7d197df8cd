"""What lanes write down of several policies, and that every plan goes on from it at any place."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from tests.exec.by_hand import Measured, Splits, lane_of, push
from tests.exec.parts_of_states import with_part
from tests.exec.policies.small import HoldLast, UpTo
from tests.properties.recipes import lengths, source, token_dataset
from zephon import Pipeline
from zephon.errors import CheckpointError
from zephon.exec import lane_run
from zephon.exec.lane_states import lane_from_dict, lane_to_dict
from zephon.exec.lane_table import table_of, trees_of
from zephon.exec.policies import Chain, Wrap


def twice_the_tokens(row):
    return 2 * len(row["input_ids"])


def shuffled_and_wrapped(pipe):
    return pipe.shuffle(7, seed=3).pack_flat(11, algorithm="wrap").batch(2, drop_last=False)


def shuffled_twice(pipe):
    pipe.shuffle(5, algorithm="block").pack_flat(16, num_bins=3, pad_token_id=0)
    return pipe.shuffle(4).batch(1)


def mixed_and_packed(pipe):
    pipe.ensure_mixture(max_buffer_size=6)
    pipe.pack_flat(16, algorithm="best_fit_decreasing", candidate_pool_size=8, pad_token_id=0)
    return pipe.batch(1)


def measured_and_mixed(pipe):
    pipe.pack_sequences(30, num_bins=4, length_fn=twice_the_tokens)
    return pipe.ensure_mixture(weight_by="samples")


PLANS = (shuffled_and_wrapped, shuffled_twice, mixed_and_packed, measured_and_mixed)


def planned(plan, **work):
    found = [
        token_dataset("prose", lengths(1, 30, 12), 3),
        token_dataset("code", lengths(2, 20), 2),
    ]
    settings = {"chunk_size": 8, "shuffle_within_shard": True, **work}
    pipe = Pipeline(source(found, {"prose": 0.7, "code": 0.3}, **settings))
    return plan(pipe).options(runner="inline")


def payloads(item):
    return [record.payload for record in getattr(item, "records", [item])]


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("counted", ["rows", "tokens"])
def test_every_plan_goes_on_from_every_position(plan, counted):
    """To the last row, which only the end of the data let go."""
    work = {"mixture_unit": "tokens"} if counted == "tokens" else {}
    straight = planned(plan, **work)
    items = iter(straight)
    states, found = [straight.checkpoint()], []
    for item in items:
        found.append(payloads(item))
        states.append(straight.checkpoint())
    ends = [trees_of(state["lanes"])[0]["ended"].tolist() for state in states]
    assert (ends[0], ends[-1]) == ([0], [1])
    for at, saved in enumerate(states):
        again = planned(plan, **work).restore(json.loads(json.dumps(saved)))
        assert again.checkpoint() == saved
        assert [payloads(item) for item in again] == found[at:]


def lane_of_two_policies():
    """Write down a lane of two policies that both hold documents, with splits and measures."""
    chain = Chain([UpTo(9), HoldLast(2), HoldLast(1)])
    with mock.patch.object(lane_run, "TICK", 8):
        run = lane_of([4] * 50, chain, measures=("length", "weight"))
        list(push(run, [4] * 50, [50], Measured(), Splits()))
    return chain, run.history.state_at(run.rows_placed)


def test_a_lane_reads_back_as_it_was_written():
    _, state = lane_of_two_policies()
    saved = json.loads(json.dumps(table_of({0: lane_to_dict(state)})))
    again = lane_from_dict(0, trees_of(saved)[0])
    assert table_of({0: lane_to_dict(again)}) == saved
    assert len(again.tick.stages) == 3
    assert [len(held.units) for held in again.tick.stages[1:]] == [2, 1]
    for held, before in zip(again.tick.stages, state.tick.stages, strict=True):
        assert held.units.splits.tolist() == before.units.splits.tolist()
        assert held.units.start.tolist() == before.units.start.tolist()
        assert held.units.length.tolist() == before.units.length.tolist()
        assert {k: v.tolist() for k, v in held.numbers.items()} == {
            k: v.tolist() for k, v in before.numbers.items()
        }
    assert again.tick.known.measures.tolist() == state.tick.known.measures.tolist()
    assert again.tick.known.refs.child.tolist() == state.tick.known.refs.child.tolist()
    assert again.log.measures.tolist() == state.log.measures.tolist()


def test_a_document_that_several_pieces_belong_to_is_written_once():
    chain = Chain([Wrap(max_length=3), HoldLast(7)])
    run = lane_of([20] * 1025, chain)
    list(push(run, [20] * 1025, [1025]))
    saved = lane_to_dict(run.state_at(run.rows_placed))
    assert saved["tick"].tolist() == [1024]
    assert saved["documents"]["row"].tolist() == [1022, 1023]
    assert saved["stages"][0]["document"].tolist() == [1]
    assert saved["stages"][1]["document"].tolist() == [0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("stages", 1, "document"), [10**6] * 6),  # documents that are not there
        (("stages", 1, "document"), [-1] * 6),
        (("stages", 1, "document"), [0]),  # fewer pieces than starts
        (("stages", 1, "sizes"), [1]),  # units that do not take all pieces
        (("stages", 1, "sizes"), [-1, 2]),
        (("stages", 1, "start"), []),
        (("stages", 2, "length"), [1] * 99),
        (("documents", "length"), [1]),
        (("documents", "measures", 0), [1]),
        (("documents", "child"), []),
        (("log", "measures", 0), [1]),
        (("log", "length"), [1]),
        (("drawn", "tokens"), [1, 2]),
        (("drawn", "filtered"), []),
    ],
)
def test_parts_of_a_lane_that_do_not_fit_are_refused(path, values):
    saved = lane_to_dict(lane_of_two_policies()[1])
    with pytest.raises(CheckpointError, match="restore: lane 0 of the checkpoint is damaged"):
        lane_from_dict(0, with_part(saved, path, np.array(values, np.int64)))


def test_a_draw_that_gave_no_document_for_no_known_reason_is_refused():
    _, state = lane_of_two_policies()
    length = state.log.length.copy()
    assert len(length)
    length[0] = -6
    lost = replace(state, log=replace(state.log, length=length))
    assert lane_from_dict(0, lane_to_dict(lost)).log.length.tolist() == length.tolist()
    length[0] = -7
    with pytest.raises(CheckpointError, match="a document of -7 tokens"):
        lane_from_dict(0, lane_to_dict(lost))


def test_states_of_other_policies_are_refused():
    chain, state = lane_of_two_policies()
    saved = lane_to_dict(state)
    message = "restore: lane 0 of the checkpoint does not fit the steps of this pipeline"
    with pytest.raises(CheckpointError, match=message):
        fewer = lane_from_dict(0, {**saved, "stages": saved["stages"][:2]})
        lane_of([4] * 50, chain, measures=("length", "weight"), state=fewer)
    with pytest.raises(CheckpointError, match=message):
        other = lane_from_dict(0, with_part(saved, ("stages", 1, "numbers"), {}))
        lane_of([4] * 50, chain, measures=("length", "weight"), state=other)
