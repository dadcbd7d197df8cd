"""Columns on Columns becomes one: all steps of both, one conversion to Polars and back."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import Columns, Node
from zephon.planner.tree import transform_up


def fuse_columns(plan: Node) -> Node:
    """Join neighbouring column steps; each still works on what the one before it made.

    The fields that leave are those of the upper node: what the lower one said of its own is gone.
    """
    return transform_up(plan, _join)


def _join(node: Node) -> Node:
    match node:
        case Columns(input=Columns() as below):
            return replace(node, steps=below.steps + node.steps, input=below.input)
        case _:
            return node
