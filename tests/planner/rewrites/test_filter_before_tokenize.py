"""A filter that reads no tokens runs before they are made."""

import polars as pl

from tests.planner.plans import tokenize
from tests.planner.typed_plans import SCORE, TEXT, add, typed_fetch
from zephon.planner.logical import Columns
from zephon.planner.rewrites.filter_before_tokenize import filter_before_tokenize

SHORT = pl.col("input_ids").list.len() < 9
RAISES = TEXT.str.slice(1).cast(pl.Int64) > 3


def tokens(below):
    return tokenize(below, preserve_upstream_payload=True)


def steps_of(*predicates):
    """Make the filters of one joined node."""
    plan = tokens(typed_fetch())
    made = [add(plan, ("filter", each)).steps[0] for each in predicates]
    return plan, tuple(made)


def joined(plan, steps):
    return Columns(input=plan, steps=steps, made=plan.fields(), complete=plan.knows_all_fields())


def test_it_moves_below():
    plan = add(tokens(typed_fetch()), ("filter", SCORE > 1))
    assert filter_before_tokenize(plan) == tokens(add_plain(("filter", SCORE > 1)))


def add_plain(*calls):
    """Add filters to the source; their nodes say what the source says of its fields."""
    below = typed_fetch()
    steps = tuple(add(below, call).steps[0] for call in calls)
    return joined(below, steps)


def test_one_that_reads_tokens_stays():
    plan = add(tokens(typed_fetch()), ("filter", SHORT))
    assert filter_before_tokenize(plan) is plan
    plan, (short, small) = steps_of(SHORT, SCORE > 1)
    moved = tokens(add_plain(("filter", SCORE > 1)))
    assert filter_before_tokenize(joined(plan, (short, small))) == joined(moved, (short,))


def test_it_moves_past_filters_of_other_calls_that_stay():
    plan = add(tokens(typed_fetch()), ("filter", SHORT), ("filter", SCORE > 1), ("filter", RAISES))
    wanted = add(tokens(add_plain(("filter", SCORE > 1))), ("filter", SHORT), ("filter", RAISES))
    assert filter_before_tokenize(plan) == wanted
    assert filter_before_tokenize(wanted) is wanted
    computed = {"n": pl.col("input_ids").list.len()}
    plan = add(tokens(typed_fetch()), ("with_columns", computed), ("filter", SCORE > 1))
    assert filter_before_tokenize(plan) is plan


def test_one_that_may_raise_stays_behind_one_that_stays():
    plan, steps = steps_of(SHORT, RAISES)
    plan = joined(plan, steps)
    assert filter_before_tokenize(plan) is plan
    plan, steps = steps_of(RAISES, SHORT)
    moved = tokens(add_plain(("filter", RAISES)))
    assert filter_before_tokenize(joined(plan, steps)) == joined(moved, steps[1:])
