"""MapTransform on MapTransform becomes one: all functions of both, one pass over the rows."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import MapTransform, Node
from zephon.planner.tree import transform_up


def fuse_maps(plan: Node) -> Node:
    """Join neighbouring maps; a row dropped by one function never reaches the next, as before.

    Each function keeps its ``drop_none`` and ``fingerprint``; the smaller ``parallelism`` holds.
    """
    return transform_up(plan, _join)


def _join(node: Node) -> Node:
    match node:
        case MapTransform(input=MapTransform() as below):
            return replace(
                node,
                functions=below.functions + node.functions,
                parallelism=min(below.parallelism, node.parallelism),
                input=below.input,
            )
        case _:
            return node
