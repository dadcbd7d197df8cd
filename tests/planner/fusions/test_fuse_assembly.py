"""Gathering and stacking become one step that has the fields of both."""

from tests.planner.plans import batch, fetch
from zephon.planner.fusions.fuse_assembly import fuse_assembly
from zephon.planner.lower import lower
from zephon.planner.physical import AssembleBatch, AssembleRows, StackRows


def test_the_joint_step_has_the_fields_of_both():
    plan = lower(batch(drop_last=False))
    assert isinstance(plan, StackRows)
    rows = plan.input
    assert isinstance(rows, AssembleRows)
    assert fuse_assembly(plan) == AssembleBatch(
        input=rows.input, layout=rows.layout, microbatch_size=2, drop_last=False
    )


def test_rows_without_a_batch_are_left_alone():
    plan = lower(fetch())
    assert fuse_assembly(plan) is plan
