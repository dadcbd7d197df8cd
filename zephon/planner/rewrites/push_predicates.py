"""A filter over fields of the source is asked while rows are read: others are never decoded whole.

A predicate moves down past steps that neither make nor change what it reads. It stays where it was
called if it cannot go all the way, and then holds those after it that might raise: they might never
have seen a row which it drops.
"""

from __future__ import annotations

from dataclasses import replace

from zephon.column_steps import ColumnStep, Expression, changed_by
from zephon.expressions import cannot_raise
from zephon.planner.logical import Columns, Fetch, Node
from zephon.planner.tree import source_first, transform_up


def push_predicates(plan: Node) -> Node:
    """Move predicates of filters into Fetch, in the order of their calls."""
    pushed, left = _parted(source_first(plan))
    if not pushed:
        return plan
    steps_left = iter(left)  # nodes are rebuilt in the order in which they were looked at

    def change(node: Node) -> Node:
        match node:
            case Fetch():
                return replace(node, predicates=(*node.predicates, *pushed))
            case Columns():
                steps = next(steps_left, node.steps)
                if steps == node.steps:
                    return node
                return replace(node, steps=steps) if steps else node.input or node
            case _:
                return node

    return transform_up(plan, change)


def _parted(nodes: list[Node]) -> tuple[list[Expression], list[tuple[ColumnStep, ...]]]:
    """List the predicates that can be asked of rows of the source, and the steps left of nodes."""
    pushed: list[Expression] = []
    left: list[tuple[ColumnStep, ...]] = []
    stays = False  # a filter that cannot move was met
    changed: set[str] = set()  # names that are not those of the source's fields any more
    for node in nodes:
        if node.is_barrier or node.sees_rows() or node.on_batches:
            break
        changed.update(node.token_fields())
        if not isinstance(node, Columns):
            continue
        steps: list[ColumnStep] = []
        for step in node.steps:
            if step.kind != "filter":
                changed.update(changed_by(step))
                steps.append(step)
                continue
            kept = []
            for each in step.expressions:
                if changed.isdisjoint(each.reads) and (not stays or cannot_raise(each)):
                    pushed.append(each)
                else:
                    stays = True
                    kept.append(each)
            if kept:
                steps.append(replace(step, expressions=tuple(kept)))
        left.append(tuple(steps))
    return pushed, left
