"""Neighbouring segments become one, and nothing else changes."""

from tests.planner.plans import batch, fetch
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions.fuse_segment import fuse_segment
from zephon.planner.lower import lower
from zephon.planner.physical import Segment
from zephon.planner.tree import source_first


def test_joined_steps_keep_their_order_and_the_wider_parallelism():
    plan = lower(batch())
    apart = [n for n in source_first(plan) if isinstance(n, Segment)]
    (joined,) = [n for n in source_first(fuse_segment(plan)) if isinstance(n, Segment)]
    assert joined.steps == apart[0].steps + apart[1].steps
    assert joined.parallelism == max(n.parallelism for n in apart)


def test_the_rest_of_the_chain_stays():
    plan = lower(batch())
    kept = [n for n in source_first(plan) if not isinstance(n, Segment)]
    after = [n for n in source_first(fuse_segment(plan)) if not isinstance(n, Segment)]
    assert [type(n) for n in after] == [type(n) for n in kept]


def test_a_single_segment_is_left_alone():
    plan = compile_plan(batch(fetch()), fusions=()).physical
    assert fuse_segment(plan) is plan
