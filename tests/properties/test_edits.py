"""Edits of a run: each component goes on where it stood, nothing is lost, nothing comes twice."""

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import function_chains
from tests.properties.chains import CHAINS
from tests.properties.edited_runs import (
    DATASETS,
    ESTIMATED,
    LANES,
    LENGTHS,
    NAMES,
    NUMBER,
    SIZES,
    UNITS,
    UNLIKE,
    alone,
    check_places,
    cut,
    documents_of,
    drawn,
    each_alone,
    first_of,
    lanes_of,
    restored_state,
    tokens_of,
)
from tests.properties.recipes import rows, rows_of, source, token_dataset
from zephon import Pipeline
from zephon.errors import CheckpointError, NotYetError, PlanError
from zephon.exec.checkpoint import content_digest
from zephon.exec.edits import RESIZED
from zephon.exec.history import LaneState
from zephon.exec.lane_states import lane_to_dict
from zephon.exec.lane_table import table_of
from zephon.work import MixtureSchedule, TokenEstimation


@pytest.mark.parametrize("chain", CHAINS)
def test_a_lane_brought_to_its_draw_goes_on_as_it_would(chain):
    """Whatever policies hold, and rows that they had finished, go along."""

    def make():
        return CHAINS[chain]().batch(1).options(runner="inline", canonical_replicas=2)

    whole = rows(make())
    for batches in (0, 3, 11, len(whole) // 2, len(whole) - 4):
        items = iter(pipeline := make())
        head = [row for batch in islice(items, batches) for row in rows_of(batch)]
        state = pipeline.checkpoint()
        items.close()
        engine = pipeline._launch(state)
        _, states = engine.state()
        trees = {}
        for lane, before in states.items():
            standing = engine.lane_at(lane, before).standing()
            assert isinstance(standing, LaneState) and not len(standing.log)
            assert standing.tick.ordinal == before.last_draw + 1
            trees[lane] = lane_to_dict(standing)
        state["lanes"] = table_of(trees)
        state["digest"] = content_digest(state)
        pipeline = make().restore(json.loads(json.dumps(state)))
        assert head + rows(pipeline) == whole, batches
        assert restored_state(make(), state) == state


def check_shares(found, weights, unit):
    """Every prefix of each lane is within C + 1 draws, or a document, of its target."""
    for lane in range(LANES):
        mine = [
            (component, document)
            for where, component, document in documents_of(found)
            if where == lane
        ]
        sizes = [SIZES[place] if unit == "exact tokens" else 1 for place in mine]
        room = max(SIZES.values()) if unit == "exact tokens" else len(NAMES) + 1
        total = np.cumsum(sizes)
        for name, share in weights.items():
            own = np.cumsum(
                [size * (NUMBER[name] == c) for size, (c, _) in zip(sizes, mine, strict=True)]
            )
            assert np.abs(own - share * total).max() <= room


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=10, deadline=None)
@given(steps=st.integers(0, 15), seed=st.integers(0, 99))
def test_other_weights_go_on_where_each_component_stood(unit, steps, seed):
    shares = np.random.default_rng(seed).dirichlet(np.ones(3)) + 0.01
    now = dict(zip(NAMES, (shares / shares.sum()).tolist(), strict=True))
    head, state = cut(drawn(**UNITS[unit]), 4 * steps)
    edited = drawn(now, **UNITS[unit]).restore(state, allow={"weights"})
    middle, second = cut(edited, 32)
    again = drawn(UNLIKE, **UNITS[unit]).restore(second, allow={"weights"})
    tail, third = cut(again, 60)
    check_places(head + middle + tail)
    if unit != "estimated tokens":
        check_shares(middle, now, unit)
        check_shares(tail, UNLIKE, unit)
    assert [edit["words"] for edit in third["edits"]] == [["weights"], ["weights"]]
    assert restored_state(drawn(UNLIKE, **UNITS[unit]), third) == third


@pytest.mark.parametrize("unit", UNITS)
def test_an_edited_run_is_restored_on_any_ranks_without_a_word(unit):
    _, state = cut(drawn(**UNITS[unit]), 20)
    edited = drawn(UNLIKE, **UNITS[unit]).restore(state, allow={"weights"})
    items = iter(edited)
    list(islice(items, 8))
    state = edited.checkpoint()
    rest = [row for batch in islice(items, 20) for row in lanes_of(batch)]
    again = drawn(UNLIKE, **UNITS[unit]).restore(state)
    assert cut(again, 20)[0] == rest
    ranks = [
        drawn(UNLIKE, **UNITS[unit]).options(dp_degree=4, dp_group_id=group).restore(state)
        for group in range(4)
    ]
    shares = [cut(rank, 5)[0] for rank in ranks]
    found = [row for step in range(5) for share in shares for row in share[2 * step : 2 * step + 2]]
    assert found == rest


@pytest.mark.parametrize("unit", ["samples", "exact tokens"])
def test_a_schedule_counts_from_the_beginning_of_the_run(unit):
    """An edit begins shares anew; the time of the lane goes on."""
    counts = "tokens" if unit == "exact tokens" else "samples"
    first = {"prose": 0.5, "code": 0.5, "maths": 0.0}
    later = {"prose": 0.0, "code": 0.0, "maths": 1.0}
    head, state = cut(drawn(first | {"maths": 0.5}, **UNITS[unit]), 40)
    done = sum(SIZES[*place] if unit == "exact tokens" else 1 for _, *place in documents_of(head))
    schedule = MixtureSchedule({done + 100: later}, unit=counts)
    edited = drawn(first, schedule=schedule, **UNITS[unit]).restore(state, allow={"weights"})
    found, _ = cut(edited, 80)
    after, changed = 0, []
    for _, component, document in documents_of(found):
        changed.append(component == NUMBER["maths"])
        after += SIZES[component, document] if unit == "exact tokens" else 1
        if after >= 130:
            assert changed[-1]
        if after <= 70:
            assert not changed[-1]
    check_places(head + found)


EVERY_CHAIN = CHAINS | {f"functions: {name}": make for name, make in function_chains.CHAINS.items()}
for name in (
    "functions: accumulator",  # refused by the checks of operators
    "functions: counting accumulator",
    "sequences",  # rows have another field
    "random windows",  # rows leave at the end of the lane alone, behind which no edit can stand
    "longest first",
):
    del EVERY_CHAIN[name]


@pytest.mark.parametrize("chain", EVERY_CHAIN)
def test_whatever_is_held_goes_along(chain):
    """An edited run goes on alike in one go and restored, and every token stays accounted for."""

    def make(weights=None):
        pipeline = EVERY_CHAIN[chain]()
        if weights is not None:
            work = pipeline._source
            changed = source(
                [each.dataset for each in work.components],
                dict(zip((each.name for each in work.components), weights, strict=False)),
                chunk_size=8,
                shuffle_within_shard=True,
                exhausted_policy=work.rules()[0][1].policy,
                mixture_unit=work.mixture_unit,
            )
            pipeline._source = changed
        return pipeline.batch(1).options(runner="inline", canonical_replicas=2)

    now = (0.15, 0.55, 0.3)
    items = iter(pipeline := make())
    batches = 2 if chain == "mixture, shuffle" else 14
    head = len(list(islice(items, batches)))
    before = pipeline.accounting()
    state = json.loads(json.dumps(pipeline.checkpoint()))
    items.close()
    edited = make(now).restore(state, allow={"weights"})
    assert restored_state(make(now), first_of(edited)) == first_of(edited)
    items = iter(edited)
    middle = len(list(islice(items, 9)))
    again = json.loads(json.dumps(edited.checkpoint()))
    rest = [row for batch in items for row in tokens_of(batch)]
    assert middle and rest
    assert head == batches
    assert [row for batch in make(now).restore(again) for row in tokens_of(batch)] == rest
    after = edited.accounting()
    for name, counts in after.items():
        lost = sum(counts["tokens_dropped"].values())
        assert counts["tokens_made"] == counts["tokens_delivered"] + counts["tokens_held"] + lost
        assert counts["rows_drawn"] >= before[name]["rows_drawn"]
        assert counts["tokens_delivered"] >= before[name]["tokens_delivered"]


def test_a_group_of_rows_is_seen_again_as_it_was():
    """What was drawn before an edit saw draws behind it, which came to nothing."""

    def make(weights):
        work = source(function_chains.DATASETS, weights, chunk_size=8, exhausted_policy="repeat")
        pipeline = function_chains.grouped(Pipeline(work)).shuffle(50, seed=3)
        return pipeline.batch(1).options(runner="inline", canonical_replicas=2)

    weights = {"prose": 0.6, "code": 0.4}
    was = {}
    for lane, ids in (row for b in islice(make(weights), 400) for row in tokens_of(b)):
        was.setdefault((lane, ids[0]), list(ids))
    items = iter(pipeline := make(weights))
    list(islice(items, 90))
    state = pipeline.checkpoint()
    now = {"prose": 0.1, "code": 0.9}
    edited = make(now).restore(state, allow={"weights"})
    engine = edited._launch(edited._restored)
    held = []
    for lane, found in engine.state()[1].items():
        assert (found.last_draw + 1) % 64, "the edit stands within a window"
        refs = found.tick.known.refs
        for number, shard, row in zip(refs.component, refs.shard, refs.row, strict=True):
            dataset = function_chains.DATASETS[number]
            before = int(dataset.counts()[:shard].sum())
            first = 1_000_000 * (1 + ord(dataset.name[0]) % 7)
            held.append((lane, first + 1000 * (before + int(row))))
    again = first_of(edited)
    ours = [row for b in islice(edited, 300) for row in tokens_of(b)]
    theirs = [row for b in islice(make(now).restore(again), 300) for row in tokens_of(b)]
    assert ours == theirs
    came = {}  # in a later pass too, among others then
    for lane, ids in ours:
        came.setdefault((lane, ids[0]), []).append(list(ids))
    held = [place for place in held if place in came and place in was]  # some have no token
    assert len(held) > 50
    assert all(was[place] in came[place] for place in held)


def flow_of(found):
    """Give the rows of each lane."""
    lanes = {}
    for lane, tokens in found:
        lanes.setdefault(lane, []).append(tokens)
    return lanes


@pytest.mark.parametrize("unit", UNITS)
def test_steps_of_another_size_hold_the_rows_that_follow(unit):
    """Each lane goes on as it would have; steps deal them out by other numbers."""

    whole = flow_of(cut(drawn(**UNITS[unit]), 120)[0])
    head, state = cut(drawn(**UNITS[unit]), 12)
    larger, second = cut(drawn(rows_in_step=12, **UNITS[unit]).restore(state, {RESIZED}), 18)
    assert second["position"] == {"step": 6}
    assert restored_state(drawn(rows_in_step=12, **UNITS[unit]), second) == second
    smaller, third = cut(drawn(rows_in_step=4, **UNITS[unit]).restore(second, {RESIZED}), 10)
    assert third["position"] == {"step": 11}
    now = drawn(UNLIKE, rows_in_step=4, **UNITS[unit]).restore(third, {"weights"})
    check_places(head + larger + smaller + cut(now, 20)[0])
    for lane, came in flow_of(head + larger + smaller).items():
        assert came == whole[lane][: len(came)]
    ranks = [
        drawn(rows_in_step=12, **UNITS[unit]).options(dp_degree=3, dp_group_id=group)
        for group in range(3)
    ]
    shares = [cut(rank.restore(state, {RESIZED}), 6)[0] for rank in ranks]
    steps = [row for at in range(0, 12, 4) for share in shares for row in share[at : at + 4]]
    assert steps == larger


def test_steps_of_another_size_end_with_the_data():
    def make(rows_in_step):
        return drawn(exhausted_policy="redistribute", rows_in_step=rows_in_step)

    whole = cut(make(8), 1000)[0]
    _, state = cut(make(8), 8)
    found = cut(make(4).restore(state, {RESIZED}), 1000)[0]
    assert len(whole) <= len(found) + 16 <= len(whole) + 8


def test_steps_are_resized_between_two_of_them_alone():
    _, state = cut(drawn(), 5)
    with pytest.raises(CheckpointError, match="inside step 1, the rest of which"):
        next(iter(drawn(rows_in_step=4).restore(state, {RESIZED})))
    again = drawn(rows_in_step=4).restore(state, {RESIZED, "partial_step"})
    assert cut(again, 4)[0][:2] == cut(drawn(), 6)[0][8:10]
    schedule = MixtureSchedule({50: UNLIKE}, unit="steps")
    packed = {"mixture_unit": "tokens", "schedule": schedule}
    _, state = cut(drawn(**packed), 4)
    with pytest.raises(NotYetError, match="and the schedule counts steps"):
        next(iter(drawn(rows_in_step=4, **packed).restore(state, {RESIZED})))


def test_ranks_begin_and_end_to_share_steps():
    """Where each lane has handed out as many rows; each goes on with those that follow."""

    def make(rows_in_step):
        return drawn(rows_in_step=rows_in_step)

    whole = flow_of(cut(make(8), 60)[0])
    head, state = cut(make(None), 10)
    middle, second = cut(make(8).restore(state, {RESIZED}), 12)
    assert second["position"] == {"step": 3}
    assert restored_state(make(8), second) == second
    tail, third = cut(make(None).restore(second, {RESIZED}), 6)
    last, _ = cut(make(4).restore(third, {RESIZED}), 6)
    found = flow_of(head + middle + tail + last)
    assert {lane: whole[lane][: len(came)] for lane, came in found.items()} == found
    assert [len(came) for came in found.values()] == [34, 34]
    ranks = [make(8).options(dp_degree=4, dp_group_id=group) for group in range(4)]
    shares = [cut(rank.restore(state, {RESIZED}), 3)[0] for rank in ranks]
    steps = [row for at in range(0, 6, 2) for share in shares for row in share[at : at + 2]]
    assert steps == middle
    inside = cut(make(8), 5)[1]
    with pytest.raises(CheckpointError, match="inside step 1, the rest of which"):
        next(iter(make(None).restore(inside, {RESIZED})))
    again = flow_of(cut(make(None).restore(inside, {RESIZED, "partial_step"}), 4)[0])
    assert again == {lane: rows_[4:8] for lane, rows_ in whole.items()}
    with pytest.raises(CheckpointError, match="have handed out from 4 to 6 rows, but each"):
        next(iter(make(8).restore(cut(make(None), 5)[1], {RESIZED})))


def test_rows_are_counted_across_steps_of_two_sizes():
    whole = cut(drawn(), 30)[0]
    _, state = cut(drawn(), 12)

    def make(rows, **options):
        return drawn(rows_in_step=12).take(rows).options(**options).restore(state, {RESIZED})

    found, state_then = cut(make(24 + 17), 100)
    assert len(found) == 17 and flow_of(found)[0] == flow_of(whole)[0][12:23]
    assert not cut(make(24 + 17).restore(state_then), 100)[0]
    shares = [cut(make(24 + 36, dp_degree=2, dp_group_id=g), 100)[0] for g in range(2)]
    assert [len(share) for share in shares] == [18, 18]
    with pytest.raises(
        PlanError, match="=12 behind the first 24, before it changed, got 61; take 60"
    ):
        next(iter(make(61, dp_degree=2, dp_group_id=0)))


MORE = token_dataset("verse", [1 + i % 4 for i in range(37)], 2)
WITH_VERSE = {"prose": 0.3, "code": 0.2, "maths": 0.1, "verse": 0.4}
PRIMED = TokenEstimation(primer={**ESTIMATED.primer, "verse": 0.3})
UNITS_WITH_VERSE = {**UNITS, "estimated tokens": {"token_estimation": PRIMED}}


def verse_alone():
    return each_alone(cut(drawn({"verse": 1.0}, [MORE]), 200)[0])


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("blocks", [None, "auto"])
def test_a_dataset_is_added(unit, blocks):
    """It begins at its first row, and the others go on where they stood."""

    def wide(weights=WITH_VERSE):
        changes = {**UNITS_WITH_VERSE[unit], "shuffle_block_size": blocks}
        return drawn(weights, [*DATASETS, MORE], **changes)

    head, state = cut(drawn(**UNITS[unit], shuffle_block_size=blocks), 32)
    middle, second = cut(wide().restore(state, allow={"datasets", "weights"}), 28)
    tail, third = cut(wide().restore(second), 40)
    whole, _ = cut(wide().restore(state, allow={"datasets", "weights"}), 68)
    assert middle + tail == whole
    assert restored_state(wide(), third) == third
    again = wide({**WITH_VERSE, "prose": 0.9}).restore(third, allow={"weights"})
    last, _ = cut(again, 20)
    verse = 1 + ord("v") % 7
    came = each_alone(head + middle + tail + last)
    old = {key: found for key, found in came.items() if key[1] != verse}
    if blocks is None:
        for key, documents in old.items():
            assert documents == alone()[key][: len(documents)]
        for key, documents in verse_alone().items():
            assert came[key] == documents[: len(came[key])]
    # No row comes twice in a pass, whatever the blocks are.
    for name, lengths_ in {**LENGTHS, "verse": range(37)}.items():
        number = 1 + ord(name[0]) % 7
        rounds = [came[lane, number] for lane in range(LANES)]
        each = min(len(found) for found in rounds)
        if each * LANES <= len(lengths_):
            first = [document for found in rounds for document in found[:each]]
            assert len(set(first)) == len(first)
    if unit == "samples":
        check_added_share(middle + tail, verse)


def check_added_share(found, verse):
    for lane in range(LANES):
        mine = [component == verse for where, component, _ in documents_of(found) if where == lane]
        total = np.arange(1, len(mine) + 1)
        assert np.abs(np.cumsum(mine) - 0.4 * total).max() <= 5


@pytest.mark.parametrize("chain", [name for name in CHAINS if name != "sequences"])
def test_what_is_held_goes_along_with_a_dataset_more(chain):
    def make(more=False):
        pipeline = CHAINS[chain]()
        if more:
            work = pipeline._source
            datasets = [*(each.dataset for each in work.components), MORE]
            weights = {each.name: each.weight for each in work.components} | {"verse": 0.25}
            pipeline._source = source(
                datasets,
                weights,
                chunk_size=8,
                shuffle_within_shard=True,
                exhausted_policy="redistribute",
                mixture_unit=work.mixture_unit,
            )
        return pipeline.batch(1).options(runner="inline", canonical_replicas=2)

    if chain in ("one component", "groups"):
        return
    items = iter(pipeline := make())
    list(islice(items, 0 if chain in ("random windows", "longest first") else 2))
    state = pipeline.checkpoint()
    edited = make(True).restore(state, allow={"datasets"})
    assert restored_state(make(True), first_of(edited)) == first_of(edited)
    items = iter(edited)
    list(islice(items, 9))
    again = edited.checkpoint()
    rest = [row for batch in items for row in tokens_of(batch)]
    assert [row for batch in make(True).restore(again) for row in tokens_of(batch)] == rest
    counts = edited.accounting()
    assert counts["verse"]["rows_drawn"] == 37
    assert counts["prose"]["rows_drawn"] == 130
    for each in counts.values():
        lost = sum(each["tokens_dropped"].values())
        assert each["tokens_made"] == each["tokens_delivered"] + each["tokens_held"] + lost
