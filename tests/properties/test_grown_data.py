"""Shards added within a run: the old ones finish their pass, later passes have the rows of all."""

import json
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.grown_by_hand import (
    CHUNK,
    ORDERS,
    Expected,
    dataset,
    document_of,
    documents_of,
)
from tests.properties.recipes import source
from tests.properties.test_edits import EVERY_CHAIN, UNITS, lanes_of, tokens_of
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.exec.editing import with_bottom
from zephon.exec.session import state_of
from zephon.work import TokenEstimation

FIRST = {"prose": {10: 9, 20: 14, 40: 5}, "code": {5: 8, 6: 3}}
PRIMED = TokenEstimation(primer={"prose": 0.5, "code": 0.25})
WORKS = {**UNITS, "estimated tokens": {"token_estimation": PRIMED}}


def job(shards, order, unit="samples", lanes=2, weights=(0.6, 0.4), **work):
    """A pipeline whose rows hold the documents in the order in which they are drawn."""
    mixed = source(
        [dataset(name, each) for name, each in shards.items()],
        dict(zip(shards, weights, strict=False)),
        **{"chunk_size": CHUNK, "exhausted_policy": "repeat", **order, **WORKS[unit], **work},
    )
    packed = Pipeline(mixed).pack_flat(8, algorithm="wrap").batch(2)
    return packed.options(runner="inline", canonical_replicas=lanes, global_batch_size=4 * lanes)


def cut(pipeline, batches):
    """Give the rows of so many batches, and the state behind them."""
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in lanes_of(batch)]
    state = json.loads(json.dumps(pipeline.checkpoint()))
    items.close()
    return found, state


def on_ranks(make, state, ranks, batches):
    """Give the rows of so many batches, as ranks deliver them."""
    found = []
    items = [
        iter(make().options(dp_degree=ranks, dp_group_id=n).restore(state)) for n in range(ranks)
    ]
    for _ in range(batches // ranks):
        for each in items:
            found += lanes_of(next(each))
    return found


ADDED = st.dictionaries(st.sampled_from([3, 15, 25, 50, 60]), st.integers(1, 12), min_size=1)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(sorted(ORDERS)),
    st.sampled_from(sorted(WORKS)),
    st.sampled_from([1, 2, 4]),
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(["prose", "code"]), ADDED),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_passes_are_finished_and_later_ones_have_all(order, unit, lanes, edits, reweighed):
    shards = {name: dict(each) for name, each in FIRST.items()}
    expected = {name: Expected(name, lanes, ORDERS[order]) for name in shards}
    for each in expected.values():
        each.add_passes(100, shards)
    found, state, weights, words = [], None, (0.6, 0.4), set()
    for steps, name, more in edits:
        head = job(shards, ORDERS[order], unit, lanes, weights)
        if state is not None:
            head.restore(state, allow=words)
        rows, state = cut(head, steps * 2 * lanes)
        found += rows
        was = sum(shards[name].values())
        shards = {**shards, name: {**more, **shards[name]}}
        words = {"data"}
        if reweighed:
            weights, words = weights[::-1], words | {"weights"}
        alone = documents_of(found)
        drawn = [len(alone.get((lane, name), ())) for lane in range(lanes)]
        expected[name].begin_anew_from(drawn, was)
        expected[name].add_passes(100, shards)
    now = job(shards, ORDERS[order], unit, lanes, weights).restore(state, allow=words)
    rows, last = cut(now, 14 * lanes)
    found += rows
    assert (
        json.loads(json.dumps(state_of(make_last(shards, order, unit, lanes, weights, last))))
        == last
    )
    found += on_ranks(lambda: job(shards, ORDERS[order], unit, lanes, weights), last, 2, 30)
    came = documents_of(found)
    for (lane, name), documents in came.items():
        due = [document for _, document in expected[name].hands[lane]]
        assert documents == due[: len(documents)], (lane, name)
    assert max(map(len, came.values())) > 30


def make_last(shards, order, unit, lanes, weights, state):
    return job(shards, ORDERS[order], unit, lanes, weights).restore(state)._launch(state)


def spread(dataset, more=0):
    """Give the shards of a dataset other keys, with one shard more between the first two."""
    shards = {10 * n: shard.memory for n, shard in enumerate(dataset.shards)}
    if more:
        rows = [{"input_ids": [9_000_000 + 1000 * n], "n": n, "k": n} for n in range(more)]
        shards[5] = InMemoryShard(rows)
    return Dataset.from_dict(dataset.name, shards)


def chain_of(name, *, more=0, only=False, **work):
    """Build a chain that makes two passes over data to which shards may be added."""
    pipeline = EVERY_CHAIN[name]()
    was = pipeline._source
    components = was.components[:1] if only else was.components
    pipeline._source = source(
        [spread(each.dataset, more) for each in components],
        {each.name: each.weight for each in components},
        chunk_size=8,
        shuffle_within_shard=True,
        exhausted_policy="repeat",
        max_repeats=1,
        mixture_unit=was.mixture_unit,
        **work,
    )
    return pipeline.batch(1).options(runner="inline", canonical_replicas=2)


def first_tokens(pipeline, refs):
    """Give the first token of each document that references name, as far as they have any."""
    datasets = [each.dataset for each in pipeline._source.components]
    found = []
    for number, shard, row in zip(refs.component, refs.shard, refs.row, strict=True):
        tokens = datasets[number].shards[int(shard)].memory[int(row)]["input_ids"]
        found.append((int(number), tokens[:1]))
    return found


def held(pipeline, state):
    """Give what the floors of a lane hold, by first tokens."""
    found = [first_tokens(pipeline, state.tick.known.refs)]
    if state.below is not None:
        kept = [each.rows().known.refs for each in state.below.intervals]
        refs = [state.log.refs, *kept]
        found += [first_tokens(pipeline, each) for each in refs]
        found += held(pipeline, state.below.lane)
    return found


HOLDING = (
    "best_fit",
    "documents and rows shuffled",
    "mixture, shuffle",
    "exact tokens",
    "functions: filter, exact tokens",
    "functions: groups, shuffle",
    "functions: state written down",
    "functions: two with memory",
    "functions: memory behind packing",
)


@pytest.mark.parametrize("chain", HOLDING)
def test_what_is_held_stays_what_it_was(chain):
    """References follow their shards; the run goes on alike in one go and restored."""
    items = iter(pipeline := chain_of(chain))
    list(islice(items, 2 if chain == "mixture, shuffle" else 14))
    state = json.loads(json.dumps(pipeline.checkpoint()))
    items.close()
    engine = pipeline._launch(state)
    edited = chain_of(chain, more=9).restore(state, allow={"data"})
    after = edited._launch(edited._restored)
    for lane, was in engine.state()[1].items():
        now = after.state()[1][lane]
        standing = with_bottom(was, engine.lane_at(lane, was).bottom.standing())
        assert held(edited, now) == held(pipeline, standing)
    items = iter(edited)
    middle = len(list(islice(items, 9)))
    again = json.loads(json.dumps(edited.checkpoint()))
    rest = [row for batch in items for row in tokens_of(batch)]
    assert middle == 9
    assert [row for b in chain_of(chain, more=9).restore(again) for row in tokens_of(b)] == rest
    for counts in edited.accounting().values():
        lost = sum(counts["tokens_dropped"].values())
        assert counts["tokens_made"] == counts["tokens_delivered"] + counts["tokens_held"] + lost


@pytest.mark.parametrize("rows", [0, 1, 11, 12, 13, 30])
def test_each_document_comes_as_often_as_there_are_passes_of_it(rows):
    """At the edge of a pass, too, where the next may have begun in one lane alone."""

    def make(more=0):
        shards = {0: 7, 9: 5, **({4: more} if more else {})}
        work = source([dataset("prose", shards)], exhausted_policy="repeat", max_repeats=3)
        return Pipeline(work).shuffle(1).options(runner="inline", canonical_replicas=2)

    items = iter(pipeline := make())
    head = [row.payload["input_ids"][0] for row in islice(items, rows)]
    state = pipeline.checkpoint()
    edited = make(more=6).restore(state, allow={"data"})
    came = Counter([*head, *(row.payload["input_ids"][0] for row in edited)])
    begun = {0: 0, 1: 1, 11: 1, 12: 1, 13: 2, 30: 3}[rows]
    old = [document_of(key, row) for key, count in ((0, 7), (9, 5)) for row in range(count)]
    new = [document_of(4, row) for row in range(6)]
    times = dict.fromkeys(old, 4) | dict.fromkeys(new, 4 - begun)
    assert came == Counter({1_000_000 + 1000 * each: n for each, n in times.items()})
    (edit,) = edited.checkpoint()["edits"]
    assert edit["grown"]["prose"]["stop"] == begun
