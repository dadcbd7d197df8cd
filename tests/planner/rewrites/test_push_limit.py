"""Which limits say how far to read ahead."""

import polars as pl
import pytest

from tests.planner.plans import batch, pack, shuffle, token_lists, tokenize
from tests.planner.typed_plans import columns, mapped, typed_fetch
from zephon.planner.compiler import compile_plan
from zephon.planner.logical.batch import Take
from zephon.planner.rewrites.push_limit import push_limit
from zephon.planner.tree import source_first


def limit_of(below, rows=10):
    """Give what Fetch knows after the rule."""
    return source_first(push_limit(Take(input=below, rows=rows)))[0].limit


@pytest.mark.parametrize(
    ("below", "limit"),
    [
        (typed_fetch(), 10),
        (columns("with_columns", (pl.col("score") + 1).alias("more"), below=typed_fetch()), 10),
        (tokenize(typed_fetch()), 10),
        (mapped(typed_fetch(), drop_none=False), 10),
        (batch(typed_fetch(), microbatch_size=4), 12),
        (batch(typed_fetch(), microbatch_size=5), 10),
        (columns("filter", pl.col("score") > 1, below=typed_fetch()), None),
        (tokenize(typed_fetch(), split_long_samples=True, max_length=4), None),
        (mapped(typed_fetch()), None),
        (shuffle(typed_fetch()), None),
        (pack(token_lists(), tokens_field="tokens"), None),
    ],
)
def test_a_limit_passes_what_neither_reorders_nor_changes_the_number_of_rows(below, limit):
    assert limit_of(below) == limit


def test_a_plan_without_a_limit_is_left_alone():
    plan = batch(typed_fetch())
    assert push_limit(plan) is plan


def test_a_pushed_filter_stops_a_limit():
    plan = Take(input=columns("filter", pl.col("score") > 1, below=typed_fetch()), rows=3)
    compiled = compile_plan(plan)
    assert compiled.rewrites[0] == "push_predicates"
    assert source_first(compiled.optimized)[0].limit is None


def test_the_step_that_reads_knows_the_limit():
    compiled = compile_plan(Take(input=typed_fetch(), rows=3))
    assert "push_limit" in compiled.rewrites
    assert source_first(compiled.physical)[0].steps[0].limit == 3
