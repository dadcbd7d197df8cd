"""Neighbouring column steps are computed together, and nothing else is joined."""

from tests.planner.plans import shuffle
from tests.planner.typed_plans import SCORE, TEXT, add, typed_fetch
from zephon.planner.logical import Columns, Materialize
from zephon.planner.rewrites.fuse_columns import fuse_columns


def test_neighbours_become_one():
    plan = add(
        typed_fetch(),
        ("filter", SCORE > 1),
        ("with_columns", {"n": SCORE * 2}),
        ("select", "n", "text"),
    )
    steps = tuple(step for node in (plan.input.input, plan.input, plan) for step in node.steps)
    wanted = Columns(input=typed_fetch(), steps=steps, made=plan.made, complete=True)
    assert fuse_columns(plan) == wanted


def test_steps_that_others_stand_between_stay_apart():
    for between in (shuffle, lambda below: Materialize(input=below)):
        plan = add(between(add(typed_fetch(), ("filter", SCORE > 1))), ("filter", TEXT == "a"))
        assert fuse_columns(plan) is plan
