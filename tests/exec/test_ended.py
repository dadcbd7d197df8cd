"""States behind the last row: nothing follows anywhere, and where every token went is told."""

import json
from itertools import islice

import pytest

from tests.exec.test_accounting import balanced
from tests.properties.chains import CHAINS
from tests.properties.function_chains import CHAINS as FUNCTION_CHAINS
from tests.properties.recipes import packed, rows
from zephon.exec import history, lane_run
from zephon.exec.lane_table import trees_of

SOME = {
    name: lambda make=CHAINS[name], **how: make().batch(5, **how)
    for name in ("wrap", "best_fit", "blocks", "mixture, shuffle", "exact tokens", "groups")
} | {
    name: lambda make=make, **how: make()
    for name, make in FUNCTION_CHAINS.items()
    if name in list(FUNCTION_CHAINS)[:3]
}
MODES = {
    "turns": {"canonical_replicas": 3},
    "steps": {"global_batch_size": 20, "canonical_replicas": 4},
}
pytestmark = pytest.mark.filterwarnings(
    "ignore:rank .* ends where", "ignore:packing dropped", "ignore:stateful_transform"
)


def ended(pipeline):
    """Run to the end; give the state and the account there."""
    for _ in pipeline:
        pass
    return pipeline.checkpoint(), pipeline.accounting()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SOME)
def test_a_state_of_the_end_says_where_every_token_went(name, mode, monkeypatch):
    monkeypatch.setattr(lane_run, "TICK", 8)
    monkeypatch.setattr(history, "TICK", 8)

    def make():
        return SOME[name]().options(runner="inline", **MODES[mode])

    state, account = ended(make())
    balanced(account)
    assert state["ended"] is True
    again = make().restore(json.loads(json.dumps(state)))
    assert again.accounting() == account
    assert list(again) == []
    assert again.accounting() == account
    assert json.dumps(again.checkpoint()) == json.dumps(state)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_follows_on_any_topology(mode):
    """Although some lanes have rows left, which no step holds."""

    def make(degree=1, group=0, microbatch=1):
        settings = {**MODES[mode], "dp_degree": degree, "dp_group_id": group}
        return packed(max_length=29, microbatch=microbatch, **settings)

    state, _ = ended(make(microbatch=5))
    for degree in (1, 2, 3) if mode == "turns" else (1, 2, 4, 5, 20):
        for group in range(degree):
            assert list(make(degree, group).restore(state)) == []


def test_the_rank_whose_lane_ends_tells_all():
    """Two of three ranks could go on; the third has nothing for another step."""

    def make(degree=1, group=0):
        return packed(
            max_length=29, microbatch=1, global_batch_size=12, canonical_replicas=4,
            dp_degree=degree, dp_group_id=group,
        )  # fmt: skip

    one, _ = ended(make())
    last = one["position"]["step"]
    parts, told = [], []
    for group in range(3):
        pipeline = make(3, group)
        items = iter(pipeline)
        list(islice(items, 4 * last))
        next(items, None)  # ranks that have more hand it out
        parts.append(pipeline.checkpoint())
        told.append("ended" in parts[-1])
        items.close()
    assert any(told)
    at_step = []
    for group, part in enumerate(parts):
        if "ended" not in part:
            pipeline = make(3, group)
            items = iter(pipeline)
            list(islice(items, 4 * last))
            part = pipeline.checkpoint()
            items.close()
        at_step.append(part)
    merged = make().restore(at_step)
    assert merged.checkpoint() == one
    assert list(merged) == []


def test_lanes_that_ended_on_one_rank_end_no_other():
    def make(group):
        return packed(
            max_length=29, microbatch=1, canonical_replicas=2, dp_degree=2, dp_group_id=group
        )

    first, _ = ended(make(0))
    second = make(1)
    items = iter(second)
    head = [next(items) for _ in range(5)]
    part = second.checkpoint()
    items.close()
    assert first["ended"]
    assert "ended" not in part
    whole = packed(max_length=29, microbatch=1, canonical_replicas=2).restore([first, part])
    assert "ended" not in whole.checkpoint()
    assert len(rows(whole)) == len(rows(make(1))) - len(head)
    both = [first, ended(make(1))[0]]
    assert list(packed(max_length=29, microbatch=1, canonical_replicas=2).restore(both)) == []


def test_before_the_end_is_asked_for_nobody_knows_it():
    pipeline = packed(max_length=29, microbatch=1)
    items = iter(pipeline)
    for _ in range(len(rows(packed(max_length=29, microbatch=1)))):
        next(items)
    assert "ended" not in pipeline.checkpoint()
    assert next(items, None) is None
    state = pipeline.checkpoint()
    assert state["ended"]
    assert trees_of(state["lanes"])[0]["ended"].tolist() == [1]


def test_a_run_that_take_cut_short_has_not_ended():
    state, account = ended(packed(max_length=29, microbatch=2).take(7))
    assert "ended" not in state
    again = packed(max_length=29, microbatch=2).take(7).restore(state)
    assert again.accounting() == account
    assert list(again) == []
    more = packed(max_length=29, microbatch=1).take(9).restore(state)
    assert rows(more) == rows(packed(max_length=29, microbatch=1))[7:9]
