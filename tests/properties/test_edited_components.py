"""Datasets that come, go, and are listed otherwise in a run: the others go on where they stood."""

import warnings
from functools import cache
from itertools import islice

import numpy as np
import pytest

from tests.properties import chains, function_chains
from tests.properties.edited_runs import (
    DATASETS,
    ESTIMATED,
    EVEN,
    LANES,
    NUMBER,
    SIZES,
    UNITS,
    alone,
    cut,
    documents_of,
    drawn,
    each_alone,
    first_of,
    restored_state,
)
from tests.properties.recipes import source, token_dataset, tokens_of
from zephon import Pipeline
from zephon.errors import CheckpointError, NotYetError
from zephon.exec.edits import RESIZED
from zephon.ops import DomainGroups
from zephon.work import MixtureSchedule, TokenEstimation

VERSE = token_dataset("verse", [1 + i % 4 for i in range(37)], 2)
ALL = {each.name: each for each in (*DATASETS, VERSE)}
NUMBERS = {**NUMBER, "verse": 1 + ord("v") % 7}
LENGTH = {**SIZES, **{(NUMBERS["verse"], 1000 * i): 1 + i % 4 for i in range(37)}}
PRIMER = {**ESTIMATED.primer, "verse": 0.3}
WORDS = {"datasets", "weights"}


def mixed(weights, unit="samples", **work):
    """Mix datasets in the order in which weights name them."""
    counted = dict(UNITS[unit])
    if unit == "estimated tokens":
        primer = {name: PRIMER[name] for name in weights}
        counted["token_estimation"] = TokenEstimation(primer=primer)
    return drawn(weights, [ALL[name] for name in weights], **{**counted, **work})


def go_on(pipeline, state, batches, allow=WORDS):
    """Restore, run so many batches, and give their rows, the state behind them, and the counts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="restore: removed")
        found, state = cut(pipeline.restore(state, allow=allow), batches)
    return found, state, pipeline.accounting()


@cache
def streams():
    """Give the documents of each lane and component, in order, as they come without others."""
    return {**alone(), **each_alone(cut(mixed({"verse": 1.0}), 200)[0])}


def check_counts(found, counts, gone=()):
    """Hold what is counted against what was delivered, and against each component's own stream.

    Args:
        found: all rows of the run.
        counts: at their end.
        gone: components that were removed at some time, of which held documents may be missing.
    """
    whole, tokens = streams(), {}
    for lane, row in found:
        for token in row:
            tokens.setdefault((lane, token // 1_000_000), []).append(token)
    for name, counted in counts.items():
        for lane in range(LANES):
            key, own = (lane, NUMBERS[name]), counted["lanes"][lane]
            came = tokens.get(key, [])
            lost = sum(own["tokens_dropped"].values())
            assert own["tokens_made"] == own["tokens_delivered"] + own["tokens_held"] + lost
            assert own["tokens_delivered"] == len(came)
            before = whole[key][: own["rows_drawn"]] if key in whole else []
            stream = [t for d in before for t in _tokens(NUMBERS[name], d)]
            assert own["tokens_made"] == len(stream)
            if name not in gone:
                assert not lost
                assert came == stream[: len(came)]
            else:  # what came is a part of the stream, in order
                rest = iter(stream)
                assert all(token in rest for token in came)


def _tokens(number, document):
    first = 1_000_000 * number + document
    return range(first, first + LENGTH[number, document])


def some_weights(rng):
    """Choose some datasets, in any order, and weights, of which some may be 0."""
    names = rng.permutation(list(ALL))[: rng.integers(1, 5)].tolist()
    shares = rng.dirichlet(np.ones(len(names))) + 0.02
    shares[1:] *= rng.random(len(names) - 1) < 0.75
    return dict(zip(names, (shares / shares.sum()).tolist(), strict=True))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("seed", range(4))
def test_any_datasets_in_any_order_with_any_weights(unit, seed):
    """Each goes on where it stood, also one that was away; what is counted is what came."""
    rng = np.random.default_rng(seed)
    weights = some_weights(rng)
    found, state = cut(mixed(weights, unit), 4 * int(rng.integers(0, 9)))
    away = set()
    for _ in range(3):
        now = some_weights(rng)
        away |= weights.keys() - now.keys()
        more, state, counts = go_on(mixed(now, unit), state, 4 * int(rng.integers(1, 7)))
        found += more
        assert restored_state(mixed(now, unit), state) == state
        assert list(counts)[: len(now)] == list(now)
        check_counts(found, counts, away)
        weights = now
    drawing = {NUMBERS[name] for name, share in weights.items() if share}
    later = documents_of(go_on(mixed(weights, unit), state, 40, ())[0][40:])
    assert {number for _, number, _ in later} == drawing


OF_CHAINS = {each.name: each for each in (*chains.DATASETS, VERSE)}
ROWS = {
    "prose": chains.lengths(1, 130),
    "code": chains.lengths(2, 70, 90),
    "maths": chains.lengths(3, 60, 9),
    "verse": [1 + i % 4 for i in range(37)],
}
CHAINS = {
    **chains.CHAINS,
    "mixture of its own": lambda: chains.flat(
        chains.start().ensure_mixture(
            mixture={name: 1 / len(chains.WEIGHTS) for name in chains.WEIGHTS}, max_buffer_size=20
        ),
        "wrap",
    ),
    "rows of one component, exact tokens": lambda: chains.flat(
        chains.start(mixture_unit="tokens").shuffle(9), "best_fit_wrap", homogeneity="full"
    ),
}
for name in ("sequences", "documents", "random windows", "longest first"):
    del CHAINS[name]  # no tokens that are counted; rows that leave at the end of the lane alone


def chain_of(patch, name, names):
    """Make a chain over some datasets, in this order."""
    groups = {"words": [each for each in names if each != "code"]}
    groups |= {"code": ["code"]} if "code" in names else {}
    patch.setattr(chains, "DATASETS", [OF_CHAINS[each] for each in names])
    patch.setattr(chains, "WEIGHTS", {each: {"prose": 0.5}.get(each, 0.2) for each in names})
    patch.setattr(chains, "GROUPS", DomainGroups(groups))
    return CHAINS[name]().batch(1).options(runner="inline", canonical_replicas=2)


def tokens_in(batches):
    """Give all tokens of batches but padding."""
    return [token for batch in batches for token in tokens_of(batch) if token != chains.PAD]


def taken(pipeline, batches):
    """Give the tokens of so many batches, or of all, and the state behind them."""
    items = iter(pipeline)
    found = tokens_in(islice(items, batches))
    state = pipeline.checkpoint()
    items.close()
    return found, state


@pytest.mark.filterwarnings("ignore:restore. removed", "ignore:packing dropped")
@pytest.mark.parametrize("chain", CHAINS)
def test_whatever_policies_hold(chain, monkeypatch):
    """Nothing is lost or repeated but what was held of a dataset that went; all is counted."""
    first = ("prose", "code", "maths")
    wider = ("verse", "maths", "code", "prose")
    fewer = ("maths", "verse", "prose")
    batches = 1 if chain == "mixture, shuffle" else 5
    found, state = taken(chain_of(monkeypatch, chain, first), batches)
    edited = chain_of(monkeypatch, chain, wider).restore(state, allow=WORDS)
    begun = first_of(edited)
    assert restored_state(chain_of(monkeypatch, chain, wider), begun) == begun
    more, state = taken(edited, batches)
    found += more
    again = chain_of(monkeypatch, chain, fewer).restore(state, allow=WORDS)
    begun = first_of(again)
    assert restored_state(chain_of(monkeypatch, chain, fewer), begun) == begun
    more, state = taken(again, batches)
    rest, _ = taken(again.restore(state), None)
    assert rest == taken(chain_of(monkeypatch, chain, fewer).restore(state), None)[0]
    found += [*more, *rest]
    code = 1 + ord("c") % 7
    assert not any(token // 1_000_000 == code for token in [*more, *rest])
    assert len(set(found)) == len(found)
    counts = again.accounting()
    assert list(counts) == [*fewer, "code"]
    for name, counted in counts.items():
        number = 1 + ord(name[0]) % 7
        came = [token for token in found if token // 1_000_000 == number]
        lost = sum(counted["tokens_dropped"].values())
        assert counted["tokens_delivered"] == len(came)
        assert counted["tokens_made"] == len(came) + counted["tokens_held"] + lost
        if name in fewer:
            assert (counted["rows_drawn"], counted["tokens_made"]) == (
                len(ROWS[name]),
                sum(ROWS[name]),
            )
            assert "edit" not in counted["tokens_dropped"]
        else:
            assert counted["tokens_held"] == 0 and counted["rows_drawn"]


def halves(sample):
    return {**sample, "input_ids": sample["input_ids"][: len(sample["input_ids"]) // 2]}


def as_it_is(sample):
    return sample


@pytest.mark.parametrize("unit", ["samples", "tokens"])
def test_datasets_and_functions_change_at_once(unit):
    """What is held of the datasets that stay is made again by the functions of now."""

    def make(names, function, rows):
        work = source(
            [OF_CHAINS[name] for name in names],
            {name: 1 / len(names) for name in names},
            chunk_size=8,
            exhausted_policy="redistribute",
            mixture_unit=unit,
        )
        shuffled = Pipeline(work).map_transform(function).shuffle(40, seed=2)
        options = {"canonical_replicas": 2, "global_batch_size": rows}
        return chains.flat(shuffled, "best_fit_wrap").batch(1).options(runner="inline", **options)

    def edited():
        return make(("verse", "maths", "prose"), halves, 6)

    found, state = taken(make(("prose", "code", "maths"), as_it_is, 4), 20)
    pipeline = edited().restore(state, allow={*WORDS, RESIZED, "functions"})
    with pytest.warns(RuntimeWarning) as warned:
        more, state = taken(pipeline, 6)
    told = "".join(str(each.message) for each in warned)
    assert "restore: removed 'code': " in told and "restore: functions changed: " in told
    rest, _ = taken(again := edited().restore(state), None)
    found += [*more, *rest]
    assert len(set(found)) == len(found)
    for name, counted in again.accounting().items():
        number = 1 + ord(name[0]) % 7
        lost, held = sum(counted["tokens_dropped"].values()), counted["tokens_held"]
        came = sum(token // 1_000_000 == number for token in found)
        assert counted["tokens_delivered"] == came == counted["tokens_made"] - lost - held
        assert counted["rows_drawn"] == len(ROWS[name]) or name == "code"


def test_an_edited_run_goes_on_on_any_ranks():
    """Also where several changes are made at once, and the checkpoint is one of many ranks."""
    fewer = {"verse": 0.3, "prose": 0.5, "code": 0.2}

    def now(**options):
        return mixed(fewer, rows_in_step=12).options(**options)

    whole, state = cut(mixed(EVEN), 28)
    allow = {*WORDS, RESIZED}
    with pytest.warns(RuntimeWarning, match="restore: removed 'maths': .* gone with it, and w"):
        found, _ = cut(now().restore(state, allow), 12)
    parts = [cut(mixed(EVEN).options(dp_degree=4, dp_group_id=g), 7)[1] for g in range(4)]
    shares = [go_on(now(dp_degree=3, dp_group_id=g), parts, 4, allow)[0] for g in range(3)]
    steps = [row for at in range(0, 8, 4) for share in shares for row in share[at : at + 4]]
    assert steps == found[: len(steps)]
    maths = NUMBERS["maths"]
    assert any(number == maths for _, number, _ in documents_of(whole))
    assert not any(token // 1_000_000 == maths for _, row in found for token in row)


@pytest.mark.parametrize(
    "unit, batches", [("samples", 28), ("estimated tokens", 36), ("exact tokens", 20)]
)
def test_a_dataset_that_comes_back_goes_on_where_it_was(unit, batches):
    """It begins anew by another name only; other data by its own name are refused."""
    _, state = cut(mixed(EVEN, unit), batches)
    _, state, counts = go_on(mixed({"prose": 0.5, "code": 0.5}, unit), state, 8)
    gone = counts["maths"]
    assert gone["rows_drawn"] and gone["tokens_dropped"].keys() == {"edit"}
    found, _, counts = go_on(mixed({"maths": 1.0}, unit), state, 20)
    for lane in range(LANES):
        came = [document for where, _, document in documents_of(found) if where == lane]
        expected = alone()[lane, NUMBERS["maths"]][gone["lanes"][lane]["rows_drawn"] :]
        assert came and came == expected[: len(came)]
    changed = token_dataset("maths", [3] * 40)
    work = {"token_estimation": TokenEstimation(primer={"maths": 0.4})}
    other = drawn({"maths": 1.0}, [changed], **{**UNITS[unit], **(work if "est" in unit else {})})
    with pytest.raises(CheckpointError, match="'maths' was removed from this run earlier"):
        next(iter(other.restore(state, allow=WORDS)))


@pytest.mark.parametrize("unit", UNITS)
def test_a_weight_that_becomes_0_finishes_a_dataset(unit):
    """What is held of it is delivered; it draws no more until it has a weight again."""
    head, state = cut(mixed(EVEN, unit), 24)
    before = state_counts(state, mixed(EVEN, unit))
    none = {"prose": 0.5, "code": 0.5, "maths": 0.0}
    middle, state, counts = go_on(mixed(none, unit), state, 24, {"weights"})
    assert counts["maths"]["rows_drawn"] == before["maths"]["rows_drawn"]
    assert counts["maths"]["tokens_held"] == 0 and not counts["maths"]["tokens_dropped"]
    assert restored_state(mixed(none, unit), state) == state
    tail, _, counts = go_on(mixed(EVEN, unit), state, 24, {"weights"})
    assert counts["maths"]["rows_drawn"] > before["maths"]["rows_drawn"]
    check_counts(head + middle + tail, counts)


def state_counts(state, pipeline):
    return pipeline.restore(state).accounting()


def test_a_schedule_and_a_budget_go_on_counting():
    """What was drawn of a dataset that is gone counts as time of the run."""
    first = {"prose": 0.5, "code": 0.5, "maths": 0.5}
    _, state = cut(mixed(first), 40)
    done = sum(each["rows_drawn"] for each in state_counts(state, mixed(first)).values())
    fewer, later = {"prose": 0.9, "code": 0.1}, {"prose": 0.0, "code": 1.0}

    def make(weights):
        schedule = MixtureSchedule({done + 100: {**dict.fromkeys(weights, 0.0), **later}})
        return mixed(weights, schedule=schedule)

    _, state = cut(make({**fewer, "maths": 0.2}).restore(state, WORDS), 4)
    _, state, counts = go_on(make(fewer), state, 0)
    left = done + 100 - sum(each["rows_drawn"] for each in counts.values())
    found, _, _ = go_on(make(fewer), state, 80)
    prose = [number == NUMBERS["prose"] for _, number, _ in documents_of(found)]
    assert not any(prose[left + 30 :]) and any(prose[left - 30 : left])


def test_groups_of_rows_are_seen_again_without_those_that_are_gone():
    def make(names):
        datasets = [each for each in function_chains.DATASETS if each.name in names]
        work = source(datasets, chunk_size=8, exhausted_policy="repeat")
        pipeline = function_chains.grouped(Pipeline(work)).shuffle(50, seed=3)
        return pipeline.batch(1).options(runner="inline", canonical_replicas=2)

    items = iter(pipeline := make(("prose", "code")))
    list(islice(items, 90))
    state = pipeline.checkpoint()
    edited = make(("code",)).restore(state, allow={"datasets"})
    with pytest.warns(RuntimeWarning, match="restore: removed 'prose'"):
        again = first_of(edited)
    with pytest.warns(RuntimeWarning, match="restore: removed 'prose'"):
        ours = [tokens_of(batch) for batch in islice(edited, 120)]
    assert ours == [tokens_of(batch) for batch in islice(make(("code",)).restore(again), 120)]
    first = 1_000_000 * (1 + ord("c") % 7)  # other tokens tell how many rows were seen together
    assert all(first <= token < first + 1_000_000 for row in ours for token in row if token > 64)


def test_other_datasets_are_refused_where_an_operator_remembers_rows():
    def make(datasets, weights=None):
        work = source(datasets, weights)
        packed = function_chains.summed(Pipeline(work)).pack_flat(8, algorithm="wrap")
        return packed.batch(1).options(runner="inline")

    state = make(DATASETS).checkpoint()
    for datasets in ([*DATASETS, VERSE], DATASETS[1:], DATASETS[::-1]):
        with pytest.raises(NotYetError, match="with an operator that remembers rows"):
            next(iter(make(datasets).restore(state, allow={"datasets"})))
    none = {**EVEN, "maths": 0.0}
    assert next(iter(make(DATASETS, none).restore(state, allow={"weights"})))
