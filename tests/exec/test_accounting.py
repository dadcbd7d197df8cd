"""Where every token went: made = delivered + held + dropped, at every position, on every way."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.test_states_of_policies import PLANS, planned
from tests.properties.recipes import lengths, packed, source, text_dataset, token_dataset
from tests.written import dataset, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard, Pipeline

NAMES = ("prose", "code")
SUMS = (
    "rows_drawn", "rows_filtered", "rows_dropped", "tokens_made", "tokens_delivered", "tokens_held",
)  # fmt: skip
MODES = {
    "one lane": {},
    "three lanes": {"canonical_replicas": 3},
    "steps": {"global_batch_size": 12, "canonical_replicas": 4},
}


def documents(seed=1):
    return {"prose": lengths(seed, 160), "code": lengths(seed + 1, 90, 90)}


def job(seed=1, **settings):
    sizes = documents(seed)
    found = [token_dataset("prose", sizes["prose"], 3), token_dataset("code", sizes["code"], 2)]
    return packed(found, **settings)


def balanced(account):
    for part in account.values():
        for told in (part, *part["lanes"].values()):
            dropped = sum(told["tokens_dropped"].values())
            assert told["tokens_made"] == told["tokens_delivered"] + told["tokens_held"] + dropped
            assert min(told["rows_drawn"], told["tokens_held"], told["tokens_delivered"]) >= 0
            assert all(count > 0 for count in told["tokens_dropped"].values())
        for key in SUMS:
            assert part[key] == sum(lane[key] for lane in part["lanes"].values())
        dropped = Counter()
        for lane in part["lanes"].values():
            dropped.update(lane["tokens_dropped"])
        assert part["tokens_dropped"] == dropped
    return account


def total(account, key):
    return sum(part[key] for part in account.values())


class Counting:
    """Counts rows and tokens from delivered records alone, the slow way."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.delivered = Counter()
        self.last = {}  # of each lane: the draw that finished its last row
        self.drawn = {}  # of each lane: documents by draw, as far as records name them

    def add(self, batch):
        for record in batch.records:
            lane = record.meta.lane_id
            for component, tokens in record.meta.component_token_counts.items():
                self.delivered[NAMES[component]] += tokens
            for ref in record.meta.contribution_refs():
                at = ref.cursor.chunk_id * 8 + ref.cursor.chunk_offset
                self.drawn.setdefault(lane, {})[at] = ref.cursor.sample_id
                self.last[lane] = at

    def made(self, pipe, lanes):
        """Count what lanes drew up to their last rows, empty documents included."""
        rows, tokens = Counter(), Counter()
        for lane, last in self.last.items():
            refs = pipe._source.lane_stream(lane, lanes).draw(0, last + 1)
            for component, shard, row in zip(
                refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(), strict=True
            ):
                name = NAMES[component]
                size = -(-len(self.sizes[name]) // (3 if name == "prose" else 2))
                rows[name] += 1
                tokens[name] += self.sizes[name][shard * size + row]
        return rows, tokens


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("mode", ["one lane", "three lanes"])
def test_it_agrees_with_counting_at_every_batch(mode, runner):
    pipe = job(max_length=29, runner=runner, **MODES[mode])
    counting = Counting(documents())
    items = iter(pipe)
    for batch in items:
        counting.add(batch)
        found = balanced(pipe.accounting())
        rows, tokens = counting.made(pipe, MODES[mode].get("canonical_replicas", 1))
        for name in NAMES:
            assert found[name]["tokens_delivered"] == counting.delivered[name]
            assert found[name]["rows_drawn"] == rows[name]
            assert found[name]["tokens_made"] == tokens[name]
            assert found[name]["tokens_dropped"] == {}


def test_a_step_that_is_half_delivered_counts_from_its_beginning():
    """With a global batch a lane's state stands at whole steps, whoever handed out their rows."""
    pipe = job(max_length=29, microbatch=4, **MODES["steps"])
    items = iter(pipe)
    at_step = [total(balanced(pipe.accounting()), "tokens_delivered")]
    for number, _ in enumerate(items, 1):
        found = balanced(pipe.accounting())
        if number % 3 == 0:
            at_step.append(total(found, "tokens_delivered"))
            assert at_step[-1] == at_step[-2] + 12 * 29
        else:
            assert total(found, "tokens_delivered") == at_step[-1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stop", [0, 1, 7, 20])
def test_every_way_to_a_position_counts_the_same(mode, stop):
    def at(**settings):
        pipe = job(max_length=29, **MODES[mode], **settings)
        items = iter(pipe)
        for _ in range(stop):
            next(items)
        found, state = pipe.accounting(), pipe.checkpoint()
        items.close()
        assert pipe.accounting() == found
        return found, state

    wanted, state = at()
    assert at(runner="threads")[0] == wanted
    assert at(runner="threads", memory_budget="1kb", prefetch_batches=50)[0] == wanted
    restored = job(max_length=29, **MODES[mode]).restore(state)
    assert restored.accounting() == wanted
    items = iter(restored)
    again = job(max_length=29, **MODES[mode])
    ahead = iter(again)
    for _ in range(stop + 1):
        next(ahead)
    next(items)
    assert restored.accounting() == again.accounting()


def test_before_the_first_batch_nothing_is_drawn():
    nothing = {
        "rows_drawn": 0,
        "rows_filtered": 0,
        "rows_dropped": 0,
        "rows_skipped": 0,
        "rows_quarantined": 0,
        "rows_null": 0,
        "tokens_made": 0,
        "tokens_delivered": 0,
        "share_delivered": 0.0,
        "tokens_held": 0,
        "tokens_dropped": {},
    }
    found = job(canonical_replicas=3).accounting()
    assert list(found) == list(NAMES)
    assert all(
        part == {**nothing, "lanes": {0: nothing, 1: nothing, 2: nothing}}
        for part in found.values()
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 4), st.booleans(), st.integers(0, 5))
def test_at_the_end_every_token_is_accounted_for(max_length, microbatch, lanes, drop_last, seed):
    pipe = job(
        seed,
        max_length=max_length,
        microbatch=microbatch,
        canonical_replicas=lanes,
        drop_last=drop_last,
        work={"stop_after_passes": 1},
    )
    rows = sum(len(batch) for batch in pipe)
    found = balanced(pipe.accounting())
    assert total(found, "tokens_delivered") == rows * max_length
    assert total(found, "tokens_held") == 0
    drawn = pipe._source.lane_stream
    assert total(found, "rows_drawn") == sum(drawn(lane, lanes).length for lane in range(lanes))
    dropped = sum(sum(part["tokens_dropped"].values()) for part in found.values())
    most = lanes * (max_length - 1 + (max_length * (microbatch - 1) if drop_last else 0))
    assert dropped <= most


def test_the_unfinished_row_is_dropped_as_the_end_of_the_data():
    pipe = packed([token_dataset("prose", [10, 10, 10], 1)], max_length=8, microbatch=1)
    assert len(list(pipe)) == 3
    (part,) = balanced(pipe.accounting()).values()
    assert part["tokens_dropped"] == {"end_of_data": 6}


def test_rows_of_a_short_last_batch_are_dropped_by_their_reason():
    """Two full rows do not fill the batch of five: they are no unfinished row."""
    sizes = [8] * 12 + [3]
    pipe = packed(
        [token_dataset("prose", sizes, 1)],
        max_length=8,
        microbatch=5,
        work={"shuffle_within_shard": False},
    )
    assert len(list(pipe)) == 2
    (part,) = balanced(pipe.accounting()).values()
    assert part["tokens_dropped"] == {"drop_last": 16, "end_of_data": 3}


def test_with_steps_what_is_left_at_the_last_step_is_the_end_of_the_data():
    pipe = job(max_length=29, microbatch=4, **MODES["steps"])
    rows = sum(len(batch) for batch in pipe)
    assert rows % 12 == 0
    found = balanced(pipe.accounting())
    assert total(found, "tokens_delivered") == rows * 29
    assert total(found, "tokens_held") == 0
    reasons = {reason for part in found.values() for reason in part["tokens_dropped"]}
    assert reasons == {"end_of_data"}


def test_a_run_that_was_cut_holds_what_it_had_not_delivered():
    pipe = packed([token_dataset("prose", [10] * 20, 1)], max_length=8, microbatch=1)
    items = iter(pipe)
    next(items)
    items.close()
    (part,) = balanced(pipe.accounting()).values()
    assert part["rows_drawn"] == 1
    assert (part["tokens_made"], part["tokens_delivered"], part["tokens_held"]) == (10, 8, 2)


def test_ranks_together_account_for_the_whole():
    whole = job(canonical_replicas=4, microbatch=1)
    list(whole)
    parts = []
    for group in (0, 1):
        pipe = job(canonical_replicas=4, microbatch=1, dp_degree=2, dp_group_id=group)
        list(pipe)
        parts.append(balanced(pipe.accounting()))
    wanted = balanced(whole.accounting())
    for key in ("rows_drawn", "tokens_made", "tokens_delivered"):
        for name in NAMES:
            assert sum(part[name][key] for part in parts) == wanted[name][key]


@pytest.mark.filterwarnings("ignore:rank .* ends where")
@pytest.mark.parametrize("degree", [2, 3, 6, 12])
def test_ranks_that_share_lanes_say_the_same_of_them(degree):
    """Whoever takes each lane once has what one rank with all lanes says."""
    share = 12 // degree
    by_rank = []
    for group in range(degree):
        pipe = job(
            max_length=29, microbatch=1, **MODES["steps"], dp_degree=degree, dp_group_id=group
        )
        items = iter(pipe)
        for _ in range(3 * share):
            next(items)
        by_rank.append(balanced(pipe.accounting()))
        items.close()
    one = job(max_length=29, microbatch=1, **MODES["steps"])
    items = iter(one)
    for _ in range(36):
        next(items)
    wanted = balanced(one.accounting())
    for name in NAMES:
        found = {}
        for account in by_rank:
            for lane, told in account[name]["lanes"].items():
                assert found.setdefault(lane, told) == told
        assert found == wanted[name]["lanes"]


def test_splits_count_their_row_once(tokenizer_file):
    texts = [{"text": "the tree and the wood " * n} for n in (1, 9, 0, 4)]
    encoded = texts_to_tokens(tokenizer_file)
    for split in (False, True):
        pipe = pipeline(dataset("in_memory", None, texts)).tokenize(
            tokenizer_id=tokenizer_file, field="text", split_long_samples=split, max_length=7
        )
        pipe.pack_flat(5, algorithm="wrap").batch(1)
        list(pipe)
        (part,) = balanced(pipe.accounting()).values()
        assert part["rows_drawn"] == 4
        assert part["tokens_made"] == sum(len(encoded(row["text"])) + 2 for row in texts)


def test_a_row_that_was_split_counts_once_wherever_the_run_stands(tokenizer_file):
    texts = [{"text": "the tree and the wood " * (1 + n % 5)} for n in range(30)]
    pipe = pipeline(dataset("in_memory", None, texts)).tokenize(
        tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=7
    )
    seen = set()
    for record in pipe.pack_flat(5, algorithm="wrap"):
        seen |= {ref.cursor.base_offset for ref in record.meta.contribution_refs()}
        (part,) = balanced(pipe.accounting()).values()
        assert part["rows_drawn"] == len(seen)
    assert len(seen) == 30


def test_rows_without_tokens_are_counted_as_rows():
    pipe = Pipeline(source([text_dataset("words", 30)], chunk_size=8)).batch(4)
    assert sum(len(batch) for batch in pipe.options(runner="inline")) == 28
    (part,) = balanced(pipe.accounting()).values()
    assert part["rows_drawn"] == 30
    assert part["tokens_made"] == 0


def test_a_component_of_no_weight_is_listed_with_nothing():
    found = [token_dataset("prose", [5] * 20), token_dataset("code", [5] * 20)]
    pipe = Pipeline(source(found, {"prose": 1.0, "code": 0.0}))
    pipe.pack_flat(4, algorithm="wrap").batch(1).options(runner="inline")
    list(pipe)
    account = balanced(pipe.accounting())
    assert account["code"]["rows_drawn"] == 0
    assert account["prose"]["tokens_delivered"] == 100


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stop", [0, 3, 40, 10_000])
def test_a_resumed_run_ends_with_the_numbers_of_the_straight_one(mode, stop):
    straight = job(max_length=29, microbatch=4, **MODES[mode])
    list(straight)
    pipe = job(max_length=29, microbatch=4, **MODES[mode])
    items = iter(pipe)
    for _ in zip(range(stop), items, strict=False):
        pass
    resumed = job(max_length=29, microbatch=4, **MODES[mode]).restore(pipe.checkpoint())
    items.close()
    list(resumed)
    assert balanced(resumed.accounting()) == balanced(straight.accounting())


# Several policies


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_accounts_for_every_token_at_every_position(plan):
    """What policies hold, and what they threw away, is neither delivered nor lost."""
    pipe, delivered = planned(plan), Counter()
    items = iter(pipe)
    for item in items:
        for record in getattr(item, "records", [item]):
            for component, tokens in record.meta.component_token_counts.items():
                delivered[NAMES[component]] += tokens
        found = balanced(pipe.accounting())
        counted = {name: part["tokens_delivered"] for name, part in found.items()}
        assert counted == {name: delivered[name] for name in NAMES}
        shares = [part["share_delivered"] for part in found.values()]
        assert sum(shares) == pytest.approx(1.0)
        assert planned(plan).restore(pipe.checkpoint()).accounting() == found
    at_end = balanced(pipe.accounting())
    assert total(at_end, "tokens_held") == 0
    again = planned(plan)
    list(again)
    assert again.accounting() == at_end


def test_documents_that_fit_no_row_are_dropped_by_their_reason():
    pipe = Pipeline(
        source([token_dataset("prose", [5, 9, 4, 20, 3], 1)], shuffle_within_shard=False)
    )
    pipe.pack_flat(8, num_bins=1, pad_token_id=0).batch(1, drop_last=False)
    with pytest.warns(RuntimeWarning, match="packing dropped 2 documents of 29 tokens"):
        assert len(list(pipe.options(runner="inline"))) == 2
    (part,) = balanced(pipe.accounting()).values()
    assert part["tokens_dropped"] == {"oversized": 29}
    assert (part["rows_drawn"], part["tokens_made"], part["tokens_delivered"]) == (5, 41, 12)


def test_what_a_shuffle_holds_is_held():
    pipe = Pipeline(source([token_dataset("prose", [10] * 50, 1)]))
    pipe.shuffle(16).pack_flat(10, algorithm="wrap").batch(1).options(runner="inline")
    items = iter(pipe)
    for _ in range(5):
        next(items)
    (part,) = balanced(pipe.accounting()).values()
    items.close()
    assert part["tokens_delivered"] == 50
    assert part["tokens_held"] == part["tokens_made"] - 50 > 0
    assert part["tokens_dropped"] == {}


def test_shares_are_those_of_what_was_delivered():
    data = [token_dataset("prose", [3, 12, 5] * 20), token_dataset("code", [7, 2, 30] * 20)]
    pipe = Pipeline(source(data, {"prose": 0.75, "code": 0.25})).options(runner="inline")
    pipe.pack_flat(10, num_bins=3, pad_token_id=0)
    with pytest.warns(RuntimeWarning, match="packing dropped"):
        records = list(pipe)
    counts = dict.fromkeys(NAMES, 0)
    for record in records:
        for number, tokens in record.meta.component_token_counts.items():
            counts[NAMES[number]] += tokens
    parts = pipe.accounting()
    assert {name: part["tokens_delivered"] for name, part in parts.items()} == counts
    for name, part in parts.items():
        assert part["share_delivered"] == pytest.approx(counts[name] / sum(counts.values()))
        size = {"prose": 12, "code": 30}[name]
        assert set(part["tokens_dropped"]) == {"oversized"}
        assert part["tokens_dropped"]["oversized"] % size == 0


# Rows of which nothing is left


def numbered(name, rows):
    made = [{"input_ids": [1] * (i * 7 % 9 + 1), "id": i} for i in range(rows)]
    shards = {0: InMemoryShard(made[: rows // 2]), 1: InMemoryShard(made[rows // 2 :])}
    return Dataset.from_dict(name, shards)


def every_fifth_goes(row):
    return None if row["id"] % 5 == 0 else row


def sieved(lanes, unit="samples", runner="inline"):
    data = [numbered("prose", 160), numbered("code", 90)]
    work = source(data, stop_after_passes=1, mixture_unit=unit)
    pipe = Pipeline(work).filter(pl.col("id") % 4 != 0).map_transform(every_fifth_goes)
    pipe.pack_flat(max_length=23, algorithm="wrap").batch(2)
    return pipe.options(runner=runner, canonical_replicas=lanes)


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("lanes", [1, 3])
def test_rows_that_give_nothing_are_drawn_and_counted_by_reason(lanes, runner):
    pipe = sieved(lanes, runner=runner)
    last = {}
    for batch in pipe:
        for record in batch.records:
            ref = record.meta.contribution_refs()[-1].cursor
            last[record.meta.lane_id] = ref.chunk_id * pipe._source.chunk_size + ref.chunk_offset
        account = balanced(pipe.accounting())
        for number, name in enumerate(NAMES):
            ids = [
                shard * (80 if name == "prose" else 45) + row
                for lane, at in last.items()
                for component, shard, row in zip(
                    *(
                        getattr(pipe._source.lane_stream(lane, lanes).draw(0, at + 1), column)
                        for column in ("component", "shard", "row")
                    ),
                    strict=True,
                )
                if component == number
            ]
            part = account[name]
            assert part["rows_drawn"] == len(ids)
            assert part["rows_filtered"] == sum(i % 4 == 0 for i in ids)
            assert part["rows_dropped"] == sum(i % 4 > 0 and i % 5 == 0 for i in ids)
    account = balanced(pipe.accounting())
    drawn = [pipe._source.lane_stream(lane, lanes).length for lane in range(lanes)]
    assert total(account, "rows_drawn") == sum(drawn)


@pytest.mark.parametrize("unit", ["samples", "tokens"])
def test_lost_rows_count_the_same_after_every_restore(unit):
    states, accounts = [], []
    pipe = sieved(2, unit)
    for _ in pipe:
        states.append(pipe.checkpoint())
        accounts.append(balanced(pipe.accounting()))
    for at in (0, 3, len(states) - 1):
        again = sieved(2, unit, "threads").restore(states[at])
        assert again.accounting() == accounts[at]
        for number, _ in enumerate(again, at + 1):
            assert again.accounting() == accounts[number]
            assert again.checkpoint() == states[number]
        assert again.accounting() == pipe.accounting()


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_take_cuts_short_counts_what_it_delivered(mode):
    """However far its lanes ran ahead."""

    def at_the_end(runner, rows):
        pipe = Pipeline(source([token_dataset("prose", [10] * 400, 2)], stop_after_passes=1))
        pipe.pack_flat(max_length=8, algorithm="wrap").batch(2).take(rows)
        pipe.options(runner=runner, **MODES[mode])
        assert sum(len(batch) for batch in pipe) <= rows
        return balanced(pipe.accounting())

    found = at_the_end("inline", 24)
    assert found == at_the_end("threads", 24)
    assert total(found, "tokens_delivered") == 24 * 8
    assert total(found, "rows_drawn") < 40
    assert total(at_the_end("inline", 10_000), "rows_drawn") > 380
