"""The only code that walks a chain of plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from zephon.io.fields import Column
from zephon.planner.logical import Node
from zephon.planner.physical import PhysicalNode

N = TypeVar("N", Node, PhysicalNode)


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


def columns_read(steps: Iterable[Node]) -> tuple[Column, ...]:
    """List the columns that steps read, each once, without all that a step wants it without."""
    found: dict[tuple[str, str, str], Column] = {}
    for column in (column for node in steps for column in node.reads()):
        key = (column.path, column.kind, column.missing)
        before = found.get(key, column)
        without = tuple(dict.fromkeys((*before.without, *column.without)))
        found[key] = replace(before, without=without)
    return tuple(found.values())


def whole_rows_needed(steps: list[Node]) -> bool:
    """Say whether whole rows pass all steps, or those below one that looks at whole rows."""
    reach = next((n for n, node in enumerate(steps) if not node.keeps_payload()), len(steps))
    return reach == len(steps) or any(
        measure is not None and measure.of_whole_rows
        for measure in (node.measure() for node in steps[: reach + 1])
    )
