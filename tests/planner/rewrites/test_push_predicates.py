"""Filters over fields of the source are asked while rows are read; what cannot go there stays."""

from dataclasses import replace

import polars as pl
import pytest

from tests.planner.plans import batch, mix, pack, shuffle, tokenize
from tests.planner.typed_plans import SCORE, TEXT, URL, add, predicates, typed_fetch
from zephon.planner.logical import MapTransform, Materialize, Prefetch, RowFunction
from zephon.planner.rewrites.push_predicates import push_predicates

SMALL, RAISES = SCORE < 5, TEXT.cast(pl.Int64) > 3


def pushed(*given):
    return replace(typed_fetch(), predicates=predicates(*given))


def tokens(below):
    return tokenize(below, preserve_upstream_payload=True)


def test_filters_move_in_the_order_of_their_calls():
    plan = add(typed_fetch(), ("filter", RAISES, SMALL), ("filter", URL == "a"))
    assert push_predicates(plan) == pushed(RAISES, SMALL, URL == "a")
    assert push_predicates(batch(pack(tokenize(plan)))) == batch(
        pack(tokenize(pushed(RAISES, SMALL, URL == "a")))
    )


@pytest.mark.parametrize(
    "between",
    [shuffle, mix, tokens, lambda below: Prefetch(input=below)],
    ids=["shuffle", "ensure_mixture", "tokenize", "prefetch"],
)
def test_steps_that_make_nothing_it_reads_let_it_pass(between):
    plan = add(between(typed_fetch()), ("filter", SMALL))
    assert push_predicates(plan) == between(pushed(SMALL))


@pytest.mark.parametrize(
    "call",
    [
        ("with_columns", {"n": SCORE * 2}),
        ("with_columns", TEXT.str.to_uppercase()),
        ("select", "text", "score"),
        ("rename", {"url": "link"}),
        ("drop", "url"),
    ],
    ids=lambda call: call[0],
)
def test_column_steps_that_leave_its_columns_alone_let_it_pass(call):
    plan = add(typed_fetch(), call, ("filter", SMALL))
    assert push_predicates(plan) == add(pushed(SMALL), call)


@pytest.mark.parametrize(
    "call",
    [
        ("with_columns", {"score": SCORE * 2}),
        ("with_columns", SCORE.abs()),
        ("select", SCORE + 1),
        ("rename", {"score": "n", "url": "score"}),
    ],
    ids=lambda call: call[0],
)
def test_column_steps_that_make_its_columns_hold_it(call):
    given = URL if call[0] == "rename" else SMALL
    plan = add(typed_fetch(), call, ("filter", pl.col("score") == "a" if given is URL else SMALL))
    assert push_predicates(plan) is plan


@pytest.mark.parametrize(
    "between",
    [
        lambda below: Materialize(input=below),
        lambda below: MapTransform(input=below, functions=(RowFunction(function=len),)),
        lambda below: mix(below, weight_by="function", weight_function=len),
    ],
    ids=["materialize", "map_transform", "ensure_mixture by a function"],
)
def test_barriers_and_functions_hold_it(between):
    below = between(typed_fetch())
    step = add(typed_fetch(), ("filter", SMALL))
    plan = type(step)(input=below, steps=step.steps, made=step.made, complete=True)
    assert push_predicates(plan) is plan


def test_a_filter_that_stays_holds_those_after_it_that_may_raise():
    calls = (("with_columns", {"n": SCORE * 2}), ("filter", pl.col("n") > 2))
    held = add(typed_fetch(), *calls, ("filter", RAISES))
    assert push_predicates(held) is held
    plan = add(typed_fetch(), *calls, ("filter", SMALL))
    assert push_predicates(plan) == add(pushed(SMALL), *calls)
    plan = add(typed_fetch(), *calls, ("filter", SMALL, pl.col("n") < 9, RAISES))
    assert push_predicates(plan) == add(pushed(SMALL), *calls, ("filter", pl.col("n") < 9, RAISES))


def test_the_same_filter_after_its_column_was_made_anew_stays():
    again = (("with_columns", {"score": SCORE * 2}), ("filter", SMALL))
    plan = add(typed_fetch(), ("filter", SMALL), *again)
    assert push_predicates(plan) == add(pushed(SMALL), *again)


def test_leaves_a_plan_alone_where_all_is_pushed():
    plan = push_predicates(add(shuffle(typed_fetch()), ("filter", SMALL)))
    assert push_predicates(plan) is plan
