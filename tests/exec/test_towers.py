"""Pipelines whose operators see rows in order: resumed anywhere, on any ranks, the same rows."""

import json
from itertools import islice

import pytest

from tests.properties.recipes import source, two_datasets
from zephon import Pipeline
from zephon.exec.towers import how_it_resumes
from zephon.planner import physical
from zephon.planner.logical.functions import MapTransform, RowFunction
from zephon.types import SampleRecord


def begin():
    return {"count": 0, "held": []}


def number(state, records):
    """Drop every fourth record, and put its number before the tokens of the others."""
    made = []
    for record in records:
        state["count"] += 1
        if state["count"] % 4:
            tokens = [state["count"], *record.payload["input_ids"]]
            made.append(SampleRecord(record.meta, {"input_ids": tokens}))
    return state, made


def delay(state, records):
    """Give each record five records later."""
    state["held"] += records
    made, state["held"] = state["held"][:-5], state["held"][-5:]
    return state, made


def rest(state):
    return state["held"]


def as_it_is(state):
    return {"count": state["count"], "held": []}


def end_with_length(row):
    return {**row, "input_ids": [*row["input_ids"], len(row["input_ids"])]}


def numbered(pipe):
    return pipe.stateful_transform(
        "number", init_state=begin, push=number, snapshot=as_it_is, restore=as_it_is
    )


def delayed(pipe):
    return pipe.stateful_transform(
        "delay", init_state=begin, push=delay, flush=rest, preserves_cursor_order=True
    )


def packed(pipe):
    return pipe.pack_flat(max_length=33, algorithm="wrap")


PLANS = {
    "written down": lambda pipe: packed(numbered(pipe).shuffle(9)),
    "flushed": lambda pipe: packed(delayed(pipe.shuffle(9)).shuffle(5)),
    "behind a packer": lambda pipe: packed(pipe).map_transform(end_with_length),
    "two floors": lambda pipe: packed(numbered(delayed(pipe.shuffle(7)).shuffle(6))),
}
MODES = {
    "lanes": {"canonical_replicas": 2},
    "steps": {"global_batch_size": 12, "canonical_replicas": 4},
}


def job(plan, mode, runner="inline", **options):
    pipe = PLANS[plan](Pipeline(source(two_datasets(), stop_after_passes=1)))
    return pipe.batch(6).options(runner=runner, **MODES[mode], **options)


def told(batch):
    return [(list(record.payload["input_ids"]), record.meta) for record in batch.records]


def rows_of(pipe):
    return [row for batch in pipe for row in told(batch)]


def balanced(account):
    for part in account.values():
        dropped = sum(part["tokens_dropped"].values())
        assert part["tokens_made"] == part["tokens_delivered"] + part["tokens_held"] + dropped
        assert part["tokens_held"] >= 0 <= part["tokens_delivered"]
    return account


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("plan", PLANS)
def test_a_restored_pipeline_goes_on_with_the_same_rows(plan, mode):
    whole, states, accounts = [], {}, {}
    pipe = job(plan, mode)
    for at, batch in enumerate(pipe):
        whole.append(told(batch))
        if at in (0, 5, 14, 15):
            states[at] = json.loads(json.dumps(pipe.checkpoint()))
            accounts[at] = balanced(pipe.accounting())
    assert len(whole) > 20
    ended = balanced(pipe.accounting())
    again = job(plan, mode, runner="threads").restore(states[0])
    for at, batch in enumerate(again, 1):
        assert told(batch) == whole[at]
        if at in states:
            assert again.checkpoint() == states[at]
            assert again.accounting() == accounts[at]
    assert again.accounting() == ended
    twice = job(plan, mode).restore(states[14])
    assert twice.accounting() == accounts[14]
    next(items := iter(twice))
    state = twice.checkpoint()
    items.close()
    assert state == states[15]
    assert rows_of(job(plan, mode).restore(state)) == [r for rows in whole[16:] for r in rows]


@pytest.mark.parametrize("plan", PLANS)
def test_any_number_of_ranks_goes_on_from_a_checkpoint_of_one(plan):
    one = job(plan, "steps")
    items = iter(one)
    for _ in range(8):
        next(items)
    state = one.checkpoint()
    left = [told(next(items)) for _ in range(12)]
    items.close()
    ranks = [
        islice(iter(job(plan, "steps", dp_degree=2, dp_group_id=g).restore(state)), 6)
        for g in range(2)
    ]
    found = [told(batch) for step in zip(*ranks, strict=True) for batch in step]
    assert found == left


def test_explain_says_how_operators_are_made_again():
    op = MapTransform(functions=(RowFunction(function=len),))
    layout = physical.RowLayout(tokens_field=None)
    nodes = [physical.CallInOrder(op=op, layout=layout, every=every) for every in (1, 16, 0)]
    assert how_it_resumes([]) == "resumes by reference"
    assert how_it_resumes(nodes) == (
        "resumes by replay: map_transform is run again on the 64 rows around a held one; "
        "map_transform is flushed every 1,024 rows; map_transform writes its memory down every "
        "1,024 rows"
    )
