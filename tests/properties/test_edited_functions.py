"""Functions that change in the middle of a run: held documents are made again, all are counted."""

import random
from itertools import combinations

import pytest

from tests.properties import chains
from tests.properties.edits_by_hand import (
    FUNCTIONS,
    accounts,
    as_it_is,
    check_documents,
    drops_more,
    job,
    quiet,
    run,
    unchanged,
)
from zephon.errors import CheckpointError, NotYetError
from zephon.exec import session

STEPS = {"global_batch_size": 4, "canonical_replicas": 2}


def made(name):
    """Give what builds a chain on what begins it."""
    if name in chains.PACKERS:
        return lambda start: chains.PACKERS[name](start())
    if name.endswith(", shuffled"):
        packer = chains.PACKERS[name.removesuffix(", shuffled")]
        return lambda start: packer(start().shuffle(24, seed=3))
    return OTHERS[name]


OTHERS = {
    "blocks": lambda start: chains.flat(start().shuffle(20, algorithm="block"), "best_fit"),
    "rows shuffled": lambda start: chains.flat(start(), "wrap").shuffle(10, seed=1),
    "documents and rows shuffled": lambda start: chains.flat(
        start().shuffle(30), "best_fit_wrap"
    ).shuffle(6),
    "rows mixed": lambda start: chains.flat(start(), "wrap").ensure_mixture(max_buffer_size=12),
    "mixed": lambda start: chains.flat(start().ensure_mixture(max_buffer_size=30), "first_fit"),
    "exact tokens": lambda start: chains.flat(
        start(mixture_unit="tokens").shuffle(20, seed=2), "best_fit_wrap", candidate_pool_size=6
    ),
    "sequences": lambda start: start().shuffle(20).pack_sequences(33, num_bins=3),
    "documents": lambda start: start().shuffle(24),
    "plain documents": lambda start: start(),
}
NAMES = [*chains.PACKERS, *(f"{name}, shuffled" for name in chains.PACKERS), *OTHERS]
# each chain meets two functions, and each two functions meet on many of them
EDITS = [
    (name, function)
    for number, name in enumerate(NAMES)
    for function in list(combinations(FUNCTIONS, 2))[number % 6]
]


def edited(name, function, cut, options, keep):
    """Run to a cut, change the function, run to the end; check all that must hold."""
    make = made(name)
    first = job(make, as_it_is, **options)
    head, stood = run(first, cut)
    state, before = stood[-1]
    second = job(make, function, **options).restore(state, allow={"functions"})
    after = accounts(second)
    assert after["tokens_delivered"] == before["tokens_delivered"]
    tail, kept = run(second, keep=keep)
    delivered = [[token for batch in part for token in batch] for part in (head, tail)]
    check_documents(*delivered, function)
    end = kept[-1][1]
    assert end["edit"] == after["edit"]
    if end["tokens_made"]:
        assert end["tokens_delivered"] == sum(map(len, delivered))
    return make, tail, kept


@pytest.mark.parametrize(
    ("name", "function"), EDITS, ids=lambda each: getattr(each, "__name__", each)
)
def test_every_document_comes_once_or_is_counted(name, function):
    chosen = random.Random(f"{name} {function.__name__}")
    cut, options = chosen.choice([(1, {}), (4, {}), (9, {}), (2, STEPS), (6, STEPS)])
    at = 2 * chosen.randrange(4) + 1
    make, tail, kept = quiet(edited, name, function, cut, options, {0, at})
    # A state behind the edit needs no allow, and is restored like any other.
    for number in kept.keys() & {0, at}:
        state, account = kept[number]
        again = job(make, function, **options).restore(state)
        assert quiet(accounts, again) == account
        assert session.state_of(again._launch(state)) == state
        found, ends = quiet(run, again)
        assert found == tail[number + 1 :]
        assert ends[-1] == kept[-1]


def test_functions_and_weights_may_change_together():
    def make(function, weights):
        source = chains.source(chains.DATASETS, weights, exhausted_policy="redistribute")
        pipeline = chains.flat(chains.Pipeline(source).map_transform(function).shuffle(20), "wrap")
        return pipeline.batch(microbatch_size=2).options(runner="inline", **STEPS)

    head, stood = run(make(as_it_is, {"prose": 0.5, "code": 0.3, "maths": 0.2}), 6)
    weights = {"prose": 0.2, "code": 0.2, "maths": 0.6}
    second = make(drops_more, weights).restore(stood[-1][0], allow={"functions", "weights"})
    tail, kept = quiet(run, second, keep={3})
    delivered = [[token for batch in part for token in batch] for part in (head, tail)]
    check_documents(*delivered, drops_more)
    assert kept[-1][1]["tokens_delivered"] == sum(map(len, delivered))
    found, ends = quiet(run, make(drops_more, weights).restore(kept[3][0]))
    assert found == tail[4:]
    assert ends[-1] == kept[-1]


def test_within_a_step_functions_change_only_with_the_step_begun_anew():
    _, stood = run(job(made("wrap"), as_it_is, **STEPS), 3)
    within = job(made("wrap"), unchanged, **STEPS)
    with pytest.raises(CheckpointError, match="taken inside step 1"):
        next(iter(within.restore(stood[-1][0], allow={"functions"})))
    again = within.restore(stood[-1][0], allow={"functions", "partial_step"})
    whole, _ = run(job(made("wrap"), as_it_is, **STEPS), 4)
    assert run(again, 2)[0] == whole[2:]


def test_an_operator_that_sees_rows_in_order_is_named_as_what_stands_in_the_way():
    def make(function):
        pipeline = chains.start().map_transform(function)
        return pipeline.stateful_transform("pass", init_state=int, push=passing).batch(2)

    state = make(as_it_is).options(runner="inline").checkpoint()
    with pytest.raises(NotYetError, match="functions cannot change yet where an operator sees"):
        next(iter(make(unchanged).restore(state, allow={"functions"})))


def passing(state, record):
    return state, [record]
