"""StackRows on AssembleRows becomes AssembleBatch: no row buffer between tokens and batch."""

from __future__ import annotations

from zephon.planner.physical import AssembleBatch, AssembleRows, PhysicalNode, StackRows
from zephon.planner.tree import transform_up


def fuse_assembly(plan: PhysicalNode) -> PhysicalNode:
    """Gather placed rows straight into the batch buffer."""
    return transform_up(plan, _join)


def _join(node: PhysicalNode) -> PhysicalNode:
    match node:
        case StackRows(input=AssembleRows() as below):
            return AssembleBatch(
                input=below.input,
                layout=below.layout,
                microbatch_size=node.microbatch_size,
                drop_last=node.drop_last,
            )
        case _:
            return node
