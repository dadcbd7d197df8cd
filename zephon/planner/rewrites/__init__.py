"""Logical plan to logical plan, one rule a file; each keeps the meaning and may change the cost."""

from collections.abc import Callable

from zephon.planner.logical import Node
from zephon.planner.rewrites.drop_dead_outputs import drop_dead_outputs
from zephon.planner.rewrites.filter_before_tokenize import filter_before_tokenize
from zephon.planner.rewrites.fuse_columns import fuse_columns
from zephon.planner.rewrites.fuse_maps import fuse_maps
from zephon.planner.rewrites.prune_columns import prune_columns
from zephon.planner.rewrites.push_limit import push_limit
from zephon.planner.rewrites.push_predicates import push_predicates

Rule = Callable[[Node], Node]

REWRITES: tuple[Rule, ...] = (
    drop_dead_outputs,  # first: payload that nobody sees needs no columns
    push_predicates,  # before the other rule on filters: what is asked while reading is done with
    filter_before_tokenize,  # before fuse_columns: it can leave column steps side by side
    fuse_columns,
    fuse_maps,
    push_limit,
    prune_columns,  # last: by now every reader of a column is known
)
