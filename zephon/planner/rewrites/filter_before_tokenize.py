"""A filter that reads no tokens runs before they are made, so that none are made in vain."""

from __future__ import annotations

from dataclasses import replace

from zephon.column_steps import ColumnStep
from zephon.expressions import cannot_raise
from zephon.planner.logical import Columns, Node, Tokenize
from zephon.planner.tree import transform_up


def filter_before_tokenize(plan: Node) -> Node:
    """Move filters below tokenize, which neither makes nor changes what they read.

    A filter that might raise stays behind one that reads tokens: it might never have seen a row
    which that one drops.
    """
    return transform_up(plan, _swap)


def _swap(node: Node) -> Node:
    match node:
        case Columns(input=Tokenize() as tokenize) if tokenize.input is not None:
            moved, left = _parted(node.steps, set(tokenize.token_fields()))
            if not moved:
                return node
            below = Columns(
                input=tokenize.input,
                steps=moved,
                made=tokenize.input.fields(),
                complete=tokenize.input.knows_all_fields(),
            )
            above = replace(tokenize, input=below)
            return replace(node, steps=left, input=above) if left else above
        case _:
            return node


def _parted(
    steps: tuple[ColumnStep, ...], tokens: set[str]
) -> tuple[tuple[ColumnStep, ...], tuple[ColumnStep, ...]]:
    """Part steps: those that move below, and those that stay."""
    moved: list[ColumnStep] = []
    left: list[ColumnStep] = []
    for step in steps:
        reads = {name for each in step.expressions for name in each.reads}
        free = step.kind == "filter" and tokens.isdisjoint(reads)
        free &= all(other.kind == "filter" for other in left)
        if free and (not left or all(cannot_raise(each) for each in step.expressions)):
            moved.append(step)
        else:
            left.append(step)
    return tuple(moved), tuple(left)
