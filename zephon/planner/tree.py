"""The only code that walks a chain of plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from zephon.planner.logical import Node
    from zephon.planner.physical import PhysicalNode

N = TypeVar("N", "Node", "PhysicalNode")


def top_first(plan: N) -> Iterator[N]:
    """Yield the nodes from the last call down to the source."""
    node: N | None = plan
    while node is not None:
        yield node
        node = node.input


def source_first(plan: N) -> list[N]:
    """Return the nodes in the order in which rows meet them."""
    return list(top_first(plan))[::-1]


def transform_up(plan: N, change: Callable[[N], N]) -> N:
    """Rebuild the chain from the source up, each node through ``change``.

    A node that ``change`` and everything below leave alone is the same object afterwards.
    """
    below = plan.input
    if below is not None:
        new = transform_up(below, change)
        if new is not below:
            plan = replace(plan, input=new)
    return change(plan)
