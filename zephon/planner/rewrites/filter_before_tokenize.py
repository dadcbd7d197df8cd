"""A filter that reads no tokens runs before they are made, so that none are made in vain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from zephon.column_steps import ColumnStep
from zephon.expressions import cannot_raise
from zephon.planner.logical import Columns, Node, Tokenize
from zephon.planner.tree import top_first, transform_up


def filter_before_tokenize(plan: Node) -> Node:
    """Move filters below tokenize, which neither makes nor changes what they read.

    They move past column steps of other calls, too. A filter that might raise stays behind one that
    reads tokens: it might never have seen a row which that one drops.
    """
    return transform_up(plan, _swap)


def _swap(node: Node) -> Node:
    if not isinstance(node, Columns) or node.input is None:
        return node
    between = list(takewhile(lambda each: isinstance(each, Columns), top_first(node.input)))
    match between[-1].input if between else node.input:
        case Tokenize(input=Node() as source) as tokenize:
            passed = [step for each in between if isinstance(each, Columns) for step in each.steps]
            moved, left = _parted(node.steps, set(tokenize.token_fields()), passed)
            if not moved:
                return node
            made, complete = source.fields(), source.knows_all_fields()
            below = Columns(input=source, steps=moved, made=made, complete=complete)
            above: Node = replace(tokenize, input=below)
            for each in reversed(between):
                above = replace(each, input=above)
            return replace(node, steps=left, input=above) if left else above
        case _:
            return node


def _parted(
    steps: Sequence[ColumnStep], tokens: set[str], passed: Sequence[ColumnStep]
) -> tuple[tuple[ColumnStep, ...], tuple[ColumnStep, ...]]:
    """Part steps: those that move below tokenize, past others that stay, and those that stay."""
    moved: list[ColumnStep] = []
    left: list[ColumnStep] = []
    for step in steps:
        stays = (*passed, *left)
        reads = {name for each in step.expressions for name in each.reads}
        free = step.kind == "filter" and tokens.isdisjoint(reads)
        free &= all(other.kind == "filter" for other in stays)
        if free and (not stays or all(cannot_raise(each) for each in step.expressions)):
            moved.append(step)
        else:
            left.append(step)
    return tuple(moved), tuple(left)
