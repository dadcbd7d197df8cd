"""Compiling: rules keep their promises, one pass is enough, and a broken rule is named."""

from dataclasses import replace

import pytest

from tests.planner.plans import batch, pack, sample_plans, tokenize
from zephon.errors import OptimizerError
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions import FUSIONS
from zephon.planner.physical import (
    AssembleBatch,
    AssembleRows,
    FetchRows,
    PlaceWrap,
    Segment,
    StackRows,
    TokenizeColumn,
)
from zephon.planner.rewrites import REWRITES
from zephon.planner.tree import source_first, transform_up

PLANS = sample_plans()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_an_optimized_plan_is_left_alone(plan):
    optimized = compile_plan(plan).optimized
    for rule in REWRITES:
        assert rule(optimized) is optimized
    physical = compile_plan(plan).physical
    for fusion in FUSIONS:
        assert fusion(physical) is physical


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_rules_keep_the_fields_that_leave_the_plan(plan):
    assert compile_plan(plan).optimized.outputs() == plan.outputs()


def test_the_main_job_is_one_segment_one_policy_one_assembly():
    nodes = source_first(compile_plan(batch()).physical)
    assert [type(n) for n in nodes] == [Segment, PlaceWrap, AssembleBatch]
    assert [type(s) for s in nodes[0].steps] == [FetchRows, TokenizeColumn]


def test_without_fusions_every_step_stands_alone():
    nodes = source_first(compile_plan(batch(), fusions=()).physical)
    kinds = [Segment, Segment, PlaceWrap, AssembleRows, StackRows]
    assert [type(n) for n in nodes] == kinds


def test_a_rule_that_loses_a_field_is_named():
    def forget_positions(plan):
        return transform_up(
            plan, lambda n: replace(n, emit_positions=False) if n.call == "pack_flat" else n
        )

    message = r"forget_positions: the plan had fields .* and now has"
    with pytest.raises(OptimizerError, match=message):
        compile_plan(batch(), rewrites=(forget_positions,))


def test_a_rule_that_loses_the_top_is_named():
    def forget_batch(plan):
        return plan.input

    with pytest.raises(OptimizerError, match="forget_batch: the plan had top node 'Batch'"):
        compile_plan(batch(), rewrites=(forget_batch,))


def test_parallelism_reaches_segments_and_nothing_below_them():
    plan = compile_plan(batch(pack(tokenize(parallelism=7))))
    (segment,) = [n for n in source_first(plan.physical) if isinstance(n, Segment)]
    assert segment.parallelism == 7
    assert all(not hasattr(step, "parallelism") for step in segment.steps)


def test_plans_compare_by_what_they_say():
    assert batch() == batch()
    assert hash(batch()) == hash(batch())
    assert batch() != batch(microbatch_size=3)
