"""States behind the last row: nothing follows anywhere, and where every token went is told."""

import json
from itertools import islice

import pytest

from tests.exec.test_accounting import balanced
from tests.properties.chains import CHAINS
from tests.properties.function_chains import CHAINS as FUNCTION_CHAINS
from tests.properties.recipes import packed, rows
from zephon.errors import CheckpointError
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
    return pipeline.checkpoint(scope="local"), pipeline.accounting()


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
        parts.append(pipeline.checkpoint(scope="local"))
        told.append("ended" in parts[-1])
        items.close()
    assert any(told)
    at_step = []
    for group, part in enumerate(parts):
        if "ended" not in part:
            pipeline = make(3, group)
            items = iter(pipeline)
            list(islice(items, 4 * last))
            part = pipeline.checkpoint(scope="local")
            items.close()
        at_step.append(part)
    merged = make().restore(at_step)
    assert merged.checkpoint() == one
    assert list(merged) == []


def shared(degree=1, group=0, **options):
    """Make a rank of a run of lanes of 17 to 23 steps."""
    settings = {"global_batch_size": 12, "canonical_replicas": 4, **options}
    return packed(max_length=29, microbatch=1, dp_degree=degree, dp_group_id=group, **settings)


@pytest.fixture(scope="module")
def apart():
    """Give, by the number of ranks, what each says where its own lanes end: state and account."""
    return {
        degree: [ended(shared(degree, group)) for group in range(degree)] for degree in (2, 3, 4)
    }


UNITED = "ended apart, at steps 17 to 2[23], since no .* the run has 17 whole steps, and nothing f"


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_ranks_that_ended_apart_have_ended(degree, apart):
    """Three ranks share lanes, of which some hand out more than others."""
    parts = [state for state, _ in apart[degree]]
    steps = [part["position"]["step"] for part in parts]
    assert min(steps) == 17 < max(steps)
    with pytest.warns(RuntimeWarning, match=UNITED):
        whole = shared().restore(parts)
    state, account = whole.checkpoint(), whole.accounting()
    balanced(account)
    for name, counted in account.items():
        for lane, found in counted["lanes"].items():
            told = [each[name]["lanes"] for _, each in apart[degree]]
            furthest = max(
                (lanes[lane] for lanes in told if lane in lanes), key=lambda n: n["rows_drawn"]
            )
            assert found == furthest
    assert list(whole) == []
    assert whole.checkpoint() == state
    assert whole.accounting() == account
    ranks = [shared(3, group).restore(state) for group in range(3)]
    assert [list(rank) for rank in ranks] == [[]] * 3
    assert (
        shared().restore([rank.checkpoint(scope="local") for rank in ranks[::-1]]).checkpoint()
        == state
    )


def test_ranks_that_ended_apart_have_no_step_for_a_change(apart):
    with pytest.warns(RuntimeWarning, match=UNITED):
        changed = shared(global_batch_size=24).restore(
            [state for state, _ in apart[4]], allow="global_batch_size"
        )
    message = r"ended apart, the first of them at step 17, and its lanes stand at rows 51 to 69: a"
    with pytest.raises(CheckpointError, match=message):
        iter(changed)


def test_ranks_of_which_some_have_not_ended_are_told_apart(apart):
    rank = shared(4, 3)
    list(islice(rank, 3 * 20))
    parts = [state for state, _ in apart[4]]
    with pytest.raises(CheckpointError) as caught:
        shared().restore([*parts[:3], rank.checkpoint(scope="local")])
    assert str(caught.value) == (
        "restore: some of these parts have ended (part 1 at step 17, parts 0, 2 at step 23), "
        "others have not (part 3 at step 20); ranks end where their own lanes end if no "
        "coordinator joins them, so these have parted: pass the parts of all ranks once each has "
        "ended, or parts that all stand at one step, 17 at most"
    )


def test_lanes_that_ended_on_one_rank_end_no_other():
    def make(group):
        return packed(
            max_length=29, microbatch=1, canonical_replicas=2, dp_degree=2, dp_group_id=group
        )

    first, _ = ended(make(0))
    second = make(1)
    items = iter(second)
    head = [next(items) for _ in range(5)]
    part = second.checkpoint(scope="local")
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
