"""Weights that count tokens: exact at every row, the same on every way, resumed anywhere."""

import json
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.recipes import (
    lengths,
    rows,
    rows_of,
    source,
    states_along,
    text_dataset,
    token_dataset,
)
from tests.written import lines
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import CheckpointError, DataError, PlanError
from zephon.work import MixtureSchedule, tokens

WEIGHTS = {"prose": 0.7, "code": 0.3}


def documents(seed=1):
    return {"prose": lengths(seed, 160), "code": lengths(seed + 1, 90, 90)}


def mixed(sizes=None, weights=None, *, max_length=29, microbatch=1, work=None, **options):
    """Build a packed job over token lists whose weights count tokens."""
    sizes = documents() if sizes is None else sizes
    datasets = [token_dataset(name, each, 3) for name, each in sizes.items()]
    given = {"chunk_size": 8, "shuffle_within_shard": True, "mixture_unit": "tokens"}
    return (
        Pipeline(source(datasets, weights or WEIGHTS, **{**given, **(work or {})}))
        .pack_flat(max_length=max_length, algorithm="wrap")
        .batch(microbatch)
        .options(**{"runner": "inline", **options})
    )


class Shares:
    """Adds up the tokens of each component in each lane, from delivered records."""

    def __init__(self, names):
        self.names = list(names)
        self.of_lane = {}

    def add(self, batch):
        for record in batch.records:
            found = self.of_lane.setdefault(record.meta.lane_id, np.zeros(len(self.names)))
            for component, count in record.meta.component_token_counts.items():
                found[component] += count

    def farthest(self, weights):
        """Say how far any lane is from its target, in tokens."""
        shares = np.array([weights[name] for name in self.names]) / sum(weights.values())
        return max(np.abs(found - found.sum() * shares).max() for found in self.of_lane.values())


MODES = {
    "one lane": {},
    "three lanes": {"canonical_replicas": 3},
    "steps": {"global_batch_size": 12, "canonical_replicas": 4, "microbatch": 2},
    "threads": {"canonical_replicas": 3, "runner": "threads"},
    "little memory": {"canonical_replicas": 3, "runner": "threads", "memory_budget": "40kb"},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_row_is_within_one_longest_document_of_the_target(mode):
    sizes = documents()
    longest = max(map(max, sizes.values()))
    shares, count = Shares(sizes), 0
    for batch in mixed(sizes, **MODES[mode]):
        shares.add(batch)
        count += len(batch)
        assert shares.farthest(WEIGHTS) <= longest
    assert count > 300


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_mixture_keeps_its_shares(data):
    count = data.draw(st.integers(2, 7))
    names = [f"{letter}{i}" for i, letter in enumerate("abcdefg"[:count])]
    most = data.draw(st.lists(st.sampled_from([2, 20, 200]), min_size=count, max_size=count))
    sizes = {name: lengths(7 + i, 40, most[i] + 1) for i, name in enumerate(names)}
    sizes = {name: each if sum(each) else [1] for name, each in sizes.items()}
    share = st.sampled_from([1.0, 0.1, 0.01, 3.0])
    weights = {name: data.draw(share) for name in names}
    lanes = data.draw(st.integers(1, 3))
    work = {"stop_after_passes": None, "exhausted_policy": "repeat"}
    shares = Shares(names)
    items = iter(mixed(sizes, weights, work=work, canonical_replicas=lanes))
    for batch in islice(items, 60):
        shares.add(batch)
        assert shares.farthest(weights) <= max(map(max, sizes.values()))
    items.close()


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("memory", ["1kb", "20kb", "256mb"])
@pytest.mark.parametrize("prefetch", [0, 50])
def test_runner_memory_and_queue_change_no_byte(runner, memory, prefetch):
    oracle = rows(mixed(canonical_replicas=3))
    way = {"runner": runner, "memory_budget": memory, "prefetch_batches": prefetch}
    assert rows(mixed(canonical_replicas=3, max_workers=1 + prefetch % 3, **way)) == oracle


def test_any_number_of_ranks_delivers_the_same_steps():
    def steps(degree):
        parts = []
        for group in range(degree):
            way = {"global_batch_size": 12, "canonical_replicas": 4, "dp_degree": degree}
            items = iter(mixed(dp_group_id=group, **way))
            parts.append(
                [row for batch in islice(items, 5 * 12 // degree) for row in rows_of(batch)]
            )
            items.close()
        share = 12 // degree
        return [row for t in range(5) for p in parts for row in p[t * share : (t + 1) * share]]

    oracle = steps(1)
    assert len(oracle) == 60
    for degree in (2, 3, 6, 12):
        assert steps(degree) == oracle


def test_ranks_deliver_the_same_steps_where_nothing_packs(tokenizer_file):
    """Rows are drawn one by one, and still no lane knows beforehand how many it has."""

    def steps(degree):
        parts = []
        for group in range(degree):
            way = {"global_batch_size": 12, "canonical_replicas": 4, "dp_degree": degree}
            found = [
                batch.ids[0]
                for batch in text_job(tokenizer_file, pack=False, dp_group_id=group, **way)
            ]
            parts.append(found)
        share = 12 // degree
        whole = min(map(len, parts)) // share
        return [r for t in range(whole) for p in parts for r in p[t * share : (t + 1) * share]]

    oracle = steps(1)
    assert len(oracle) > 100
    with pytest.warns(RuntimeWarning, match="ends where its own lanes end"):
        assert steps(4)[: len(oracle)] == oracle


def test_data_shorter_than_a_step_are_refused_and_named():
    with pytest.raises(PlanError, match=r"global_batch_size=4096 .* lane \d+ has \d+"):
        rows(mixed(global_batch_size=4096, canonical_replicas=4))


# Resuming


def cut(make, batches):
    pipeline = make()
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint()
    items.close()
    return found, state


def resumed(make, state):
    return rows(make().restore(json.loads(json.dumps(state))))


@pytest.mark.parametrize("mode", MODES)
def test_cut_at_any_batch(mode):
    def make():
        return mixed(**MODES[mode])

    whole = rows(make())
    for count, state in states_along(make(), whole, 17):
        assert resumed(make, state) == whole[count:], count


ENDS = {
    "passes": {},
    "two passes": {"stop_after_passes": 2},
    "stop": {"exhausted_policy": "stop"},
    "redistribute": {"exhausted_policy": "redistribute"},
    "repeat": {"exhausted_policy": "repeat", "max_repeats": 1},
    "mixed": {"exhausted_policy": {"prose": "redistribute", "code": "stop"}},
    "budget": {"budget": {"prose": tokens(900)}},
    "budget and redistribute": {
        "budget": {"prose": tokens(900)},
        "exhausted_policy": "redistribute",
    },
    "schedule": {
        "schedule": MixtureSchedule(
            {0: WEIGHTS, 800: {"prose": 0.1, "code": 0.9}, 2500: {"prose": 1, "code": 0}},
            unit="tokens",
            interpolation="linear",
        ),
        "exhausted_policy": "redistribute",
    },
}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(ENDS)), st.integers(1, 4), st.integers(0, 400), st.integers(5, 90))
def test_cut_of_any_recipe(end, lanes, batches, max_length):
    def make(**options):
        return mixed(work=ENDS[end], canonical_replicas=lanes, max_length=max_length, **options)

    whole = rows(make())
    head, state = cut(make, batches)
    assert head + resumed(make, state) == whole
    assert head + resumed(lambda: make(runner="threads"), state) == whole


def test_a_cut_far_from_a_tick_and_at_ticks():
    """Ticks come every 1,024 draws of the lane, whichever strands they are of."""

    def make(**options):
        sizes = {"tiny": [1, 2, 0] * 1200, "more": [3] * 800}
        return mixed(sizes, {"tiny": 0.6, "more": 0.4}, max_length=64, **options)

    whole = rows(make())
    assert len(whole) > 80
    for batches in (0, 1, 15, 16, 17, 21, 22, 31, 32, 33, 55, len(whole)):
        head, state = cut(make, batches)
        assert head + resumed(lambda: make(runner="threads"), state) == whole


def test_a_state_tells_nothing_of_what_was_read_ahead():
    found = []
    ways = ({}, {"runner": "threads", "prefetch_batches": 50}, {"memory_budget": "1kb"})
    for way in ways:
        pipeline = mixed(canonical_replicas=2, **way)
        items = iter(pipeline)
        for _ in range(9):
            next(items)
        found.append(pipeline.checkpoint(as_bytes=True))
        items.close()
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("end", sorted(ENDS))
def test_a_restored_state_is_the_same_state_byte_for_byte(end):
    def make():
        return mixed(canonical_replicas=3, work=ENDS[end])

    for batches in (0, 1, 5, 60, 10_000):
        _, state = cut(make, batches)
        pipeline = make().restore(state)
        pipeline._engine, pipeline._restored = pipeline._launch(pipeline._restored), None
        assert json.dumps(pipeline.checkpoint()) == json.dumps(state)


def test_after_the_end_nothing_is_left():
    for end in ENDS.values():
        pipeline = mixed(work=end)
        assert len(rows(pipeline)) > 50
        assert rows(mixed(work=end).restore(pipeline.checkpoint())) == []


def test_a_state_whose_merge_is_damaged_is_refused():
    from zephon.exec.checkpoint import content_digest
    from zephon.exec.lane_table import table_of, trees_of

    gone = (["merge"], ["merge", "live"], ["documents", "position"], ["log", "skipped"])
    wrong = (
        (["merge", "position"], [3]),
        (["merge", "position"], [-1, 2]),
        (["merge", "live"], [1, 2]),
        (["merge", "base"], [0, 0, 0]),
        (["documents", "position"], [1] * 9),
        (["log", "skipped"], [0]),
    )
    _, whole = cut(mixed, 5)
    for names, value in [*((names, None) for names in gone), *wrong]:
        state = json.loads(json.dumps(whole))
        trees = trees_of(state["lanes"])
        place = trees[0]
        for name in names[:-1]:
            place = place[name]
        if value is None:
            del place[names[-1]]
        else:
            place[names[-1]] = np.array(value, np.int64)
        state["lanes"] = table_of(trees)
        state["digest"] = content_digest(state)
        with pytest.raises(CheckpointError, match="lane 0 of the checkpoint"):
            iter(mixed().restore(state))


# Ends


def drawn(pipeline):
    """Run to the end; give the rows drawn of each component, and what accounting says."""
    rows(pipeline)
    account = pipeline.accounting()
    for part in account.values():
        dropped = sum(part["tokens_dropped"].values())
        assert part["tokens_made"] == part["tokens_delivered"] + part["tokens_held"] + dropped
    return {name: part["rows_drawn"] for name, part in account.items()}, account


@pytest.mark.parametrize("lanes", [1, 4])
def test_by_default_every_row_is_drawn_at_least_once(lanes):
    found, account = drawn(mixed(canonical_replicas=lanes))
    assert found["code"] == 90  # the slowest ends the lanes
    assert found["prose"] > 160
    total = sum(part["tokens_made"] for part in account.values())
    assert abs(account["prose"]["tokens_made"] - 0.7 * total) <= 90 * lanes


def test_redistribute_draws_every_row_once():
    found, account = drawn(mixed(work=ENDS["redistribute"], canonical_replicas=3))
    sizes = documents()
    assert found == {"prose": 160, "code": 90}
    for name, each in sizes.items():
        assert account[name]["tokens_made"] == sum(each)


def test_stop_ends_each_lane_where_a_share_is_due_that_nobody_can_give():
    sizes = documents()
    found, account = drawn(mixed(work=ENDS["stop"]))
    assert found["prose"] == 160
    made = {name: part["tokens_made"] for name, part in account.items()}
    assert made["prose"] == sum(sizes["prose"])
    assert abs(made["code"] - made["prose"] * 3 / 7) <= 90


def test_a_budget_holds_within_one_document_a_lane():
    for lanes in (1, 3):
        _, account = drawn(mixed(work=ENDS["budget"], canonical_replicas=lanes))
        longest = max(documents()["prose"])
        assert 900 <= account["prose"]["tokens_made"] <= 900 + lanes * longest


def test_a_schedule_in_tokens_holds_at_every_row():
    points = {0: WEIGHTS, 600: {"prose": 0.2, "code": 0.8}, 2000: {"prose": 0.9, "code": 0.1}}
    work = {"schedule": MixtureSchedule(points, unit="tokens"), "exhausted_policy": "repeat"}
    shares = Shares(WEIGHTS)
    items = iter(mixed(work=work))
    for batch in islice(items, 150):
        shares.add(batch)
        total = shares.of_lane[0].sum()
        spans = [min(total, 600), min(max(total - 600, 0), 1400), max(total - 2000, 0)]
        target = sum(n * w for n, w in zip(spans, (0.7, 0.2, 0.9), strict=True))
        assert abs(shares.of_lane[0][0] - target) <= 90
        in_force = 0.7 if total <= 600 else 0.2 if 690 < total <= 2000 else None
        if in_force is not None:
            assert batch.target_mixture["prose"] == pytest.approx(in_force)
    items.close()


@pytest.mark.parametrize("end", ["passes", "stop", "redistribute", "repeat"])
def test_three_rows_on_sixty_four_lanes(end):
    sizes = {"few": [5, 6, 7], "prose": lengths(3, 400)}
    work = {"chunk_size": 16384, **ENDS[end]}
    found, account = drawn(
        mixed(sizes, {"few": 0.1, "prose": 0.9}, work=work, canonical_replicas=64)
    )
    if end == "redistribute":
        assert found == {"few": 3, "prose": 400}
    if end == "passes":
        assert found["few"] >= 3
        assert found["prose"] >= 400
    assert account["few"]["tokens_made"] > 0


# Documents of all kinds


def test_one_token_beside_ten_thousand():
    sizes = {"tiny": [1] * 3000, "long": [10_000] * 3}
    weights = {"tiny": 0.5, "long": 0.5}
    work = {"exhausted_policy": "repeat"}
    oracle = None
    for way in ({}, {"runner": "threads"}, {"runner": "threads", "memory_budget": "256kb"}):
        shares, found = Shares(sizes), []
        items = iter(mixed(sizes, weights, max_length=512, work=work, **way))
        for batch in islice(items, 90):
            shares.add(batch)
            found += rows_of(batch)
            assert shares.farthest(weights) <= 10_000
        items.close()
        assert shares.of_lane[0].min() > 15_000
        oracle = oracle or found
        assert found == oracle


def test_a_component_of_very_little_weight_starves_nobody():
    sizes = {"rare": [3] * 5, "prose": [7] * 300}
    pipeline = mixed(
        sizes,
        {"rare": 1e-6, "prose": 1.0},
        work={"exhausted_policy": "repeat", "max_repeats": 2},
        runner="threads",
        canonical_replicas=2,
    )
    found, _ = drawn(pipeline)
    assert found == {"rare": 2, "prose": 900}


def text_job(tokenizer_file, *, pack=True, weights=None, work=None, split=None, **options):
    datasets = [text_dataset("words", 70), text_dataset("verse", 50, seed=1)]
    given = {"chunk_size": 4, "mixture_unit": "tokens", **(work or {})}
    changes = {} if split is None else {"split_long_samples": True, "max_length": split}
    pipeline = Pipeline(source(datasets, weights or {"words": 0.5, "verse": 0.5}, **given))
    pipeline.tokenize(tokenizer_id=tokenizer_file, field="text", special_tokens="none", **changes)
    if pack:
        pipeline.pack_flat(max_length=17, algorithm="wrap")
    return pipeline.batch(1).options(**{"runner": "inline", **options})


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("split", [None, 9])
def test_text_is_mixed_by_the_tokens_it_becomes(tokenizer_file, pack, split):
    def make(**options):
        return text_job(tokenizer_file, pack=pack, split=split, canonical_replicas=2, **options)

    def seen(pipeline):
        return [
            (record.meta.sample_id, record.meta.lineage, record.payload["input_ids"])
            for batch in pipeline
            for record in batch.records
        ]

    whole = seen(make())
    assert len(whole) > 100
    assert seen(make(runner="threads", memory_budget="1kb")) == whole
    for batches in range(0, len(whole), 31):
        pipeline = make()
        items = iter(pipeline)
        head = seen(islice(items, batches))
        state = pipeline.checkpoint()
        items.close()
        assert head + seen(make().restore(state)) == whole
    shares = Shares(["words", "verse"])
    for batch in make():
        shares.add(batch)
        longest = 60 * 8 if pack else 2 * 60 * 8
        assert shares.farthest({"words": 0.5, "verse": 0.5}) <= longest


def test_the_splits_of_a_row_stay_together(tokenizer_file):
    found = [
        (batch.records[0].meta.sample_id, batch.records[0].meta.lineage)
        for batch in text_job(tokenizer_file, pack=False, split=9)
    ]
    children = Counter(sample for sample, _ in found)
    assert max(children.values()) > 5
    for (before, parts), (after, more) in pairwise(found):
        if more and more[0] > 0:
            assert (before, parts) == (after, (more[0] - 1,))


def test_a_plan_without_tokens_is_refused():
    datasets = [text_dataset("words", 20), text_dataset("verse", 20)]
    work = source(datasets, mixture_unit="tokens")
    with pytest.raises(PlanError, match=r"mixture_unit='tokens' counts tokens, and nothing"):
        iter(Pipeline(work).batch(2))


# Errors, and weights in force


def bad_line(folder, at):
    found = [json.dumps({"input_ids": [i] * (1 + i % 7)}).encode() for i in range(40)]
    found[at] = b'{"input_ids": [1, "two"]}'
    lines(folder, "a.jsonl", found)
    return Dataset.from_path("lines", folder)


@pytest.mark.parametrize("at", [0, 1, 17, 39])
def test_a_bad_row_is_met_in_its_place(tmp_path, at):
    bad = bad_line(tmp_path / "lines", at)

    def outcome(**options):
        work = source(
            [bad, token_dataset("prose", [4] * 80)],
            {"lines": 0.4, "prose": 0.6},
            shuffle_shards=False,
            exhausted_policy="redistribute",
            mixture_unit="tokens",
        )
        pipeline = Pipeline(work).pack_flat(8, algorithm="wrap").batch(1).options(**options)
        found = []
        with pytest.raises(DataError, match=rf"dataset 'lines', shard .* row {at}") as error:
            for batch in pipeline:
                found += rows_of(batch)
        return found, str(error.value)

    oracle = outcome(runner="inline")
    # Everything before the document that is due, at lane times 155 and 375, is there.
    assert len(oracle[0]) == {0: 0, 1: 0, 17: 19, 39: 47}[at]
    for way in (
        {"runner": "threads"},
        {"runner": "threads", "memory_budget": "2kb"},
        {"runner": "inline", "memory_budget": "1kb"},
    ):
        assert outcome(**way) == oracle


def test_a_bad_row_that_is_never_drawn_harms_nobody(tmp_path):
    bad = bad_line(tmp_path / "lines", 39)
    work = source(
        [bad, token_dataset("prose", [4] * 10)],
        {"lines": 0.5, "prose": 0.5},
        shuffle_shards=False,
        exhausted_policy={"lines": "redistribute", "prose": "stop"},
        mixture_unit="tokens",
    )
    for runner in ("inline", "threads"):
        pipeline = Pipeline(work).pack_flat(8, algorithm="wrap").batch(1).options(runner=runner)
        assert len(rows(pipeline)) == 10


@pytest.mark.parametrize("unit", ["samples", "tokens"])
@pytest.mark.parametrize("end", ["passes", "redistribute", "schedule"])
def test_batches_name_the_weights_in_force_on_every_way(unit, end):
    settings = dict(ENDS[end])
    if end == "schedule":
        points = {0: WEIGHTS, 100: {"prose": 0.1, "code": 0.9}, 200: {"prose": 1, "code": 0}}
        settings["schedule"] = MixtureSchedule(points, unit=unit, interpolation="linear")

    def make(**options):
        return mixed(work={"mixture_unit": unit, **settings}, canonical_replicas=2, **options)

    def weights(pipeline):
        return [batch.target_mixture for batch in pipeline]

    whole = weights(make())
    assert whole[0] == pytest.approx(WEIGHTS, abs=0.3)
    assert all(sum(each.values()) == pytest.approx(1.0) for each in whole)
    if end == "passes":
        assert all(each == WEIGHTS for each in whole)
    else:
        assert len({tuple(each.values()) for each in whole}) > 1
    assert weights(make(runner="threads")) == whole
    for batches in (1, 30, len(whole) - 3):
        pipeline = make()
        items = iter(pipeline)
        head = weights(islice(items, batches))
        state = pipeline.checkpoint()
        items.close()
        assert head + weights(make(runner="threads").restore(state)) == whole


def test_rows_that_empty_documents_finish_name_the_weights_in_force(tokenizer_file):
    """Several components may end at one time, in tokens: only the draw tells their rows apart."""
    rng = np.random.default_rng(3)
    found = [
        Dataset.from_dict(name, {0: InMemoryShard([{"text": "a b" * n} for n in sizes])})
        for name in "abcd"
        for sizes in [(rng.integers(0, 4, 200) * (np.arange(200) < 40)).tolist()]
    ]

    def made(**options):
        work = source(found, mixture_unit="tokens", exhausted_policy="redistribute")
        steps = Pipeline(work).tokenize(
            tokenizer_id=tokenizer_file, field="text", special_tokens="none"
        )
        return steps.batch(1).options(**options)

    def told(items):
        return [(batch.ids, batch.target_mixture) for batch in items]

    whole = told(made(runner="inline", memory_budget="1kb"))
    assert len(whole) == 800
    assert told(made(runner="threads", memory_budget="64mb")) == whole
    for cut in range(0, 800, 97):
        pipeline = made(runner="inline")
        items = iter(pipeline)
        head = told(islice(items, cut))
        state = pipeline.checkpoint()
        items.close()
        assert head + told(made(runner="threads").restore(state)) == whole
