"""Segment on Segment becomes one: a block of references crosses all stateless steps in one task."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.physical import PhysicalNode, Segment
from zephon.planner.tree import transform_up


def fuse_segment(plan: PhysicalNode) -> PhysicalNode:
    """Join neighbouring segments; the joint one may run as many tasks as the wider of the two."""
    return transform_up(plan, _join)


def _join(node: PhysicalNode) -> PhysicalNode:
    match node:
        case Segment(input=Segment() as below):
            return replace(
                below,
                steps=below.steps + node.steps,
                parallelism=max(below.parallelism, node.parallelism),
            )
        case _:
            return node
