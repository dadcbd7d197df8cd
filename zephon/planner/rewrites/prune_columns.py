"""Fetch reads only the columns that some step uses."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import Fetch, Node
from zephon.planner.tree import columns_read, source_first, transform_up, whole_rows_needed


def prune_columns(plan: Node) -> Node:
    """Name the columns that Fetch reads; whole rows only if they reach the top, or who asks."""
    steps = source_first(plan)[1:]
    columns = columns_read(steps)
    payload = whole_rows_needed(steps)

    def narrow(node: Node) -> Node:
        match node:
            case Fetch(columns=None):
                return replace(node, columns=columns, payload=payload)
            case _:
                return node

    return transform_up(plan, narrow)
