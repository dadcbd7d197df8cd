"""Logical plan to logical plan, one rule a file; each keeps the meaning and may change the cost."""

from collections.abc import Callable

from zephon.planner.logical import Node
from zephon.planner.rewrites.drop_dead_outputs import drop_dead_outputs
from zephon.planner.rewrites.prune_columns import prune_columns

Rule = Callable[[Node], Node]

REWRITES: tuple[Rule, ...] = (
    drop_dead_outputs,  # first: payload that nobody sees needs no columns
    prune_columns,  # last: by now every reader of a column is known
)
