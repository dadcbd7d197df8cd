"""Fetch reads only the columns that some step uses."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import Fetch, Node
from zephon.planner.tree import source_first, transform_up


def prune_columns(plan: Node) -> Node:
    """Name the columns that Fetch reads; whole rows are read only if they reach the top."""
    steps = source_first(plan)[1:]
    columns = tuple(dict.fromkeys(column for node in steps for column in node.reads()))
    payload = all(node.keeps_payload() for node in steps)

    def narrow(node: Node) -> Node:
        match node:
            case Fetch(columns=None):
                return replace(node, columns=columns, payload=payload)
            case _:
                return node

    return transform_up(plan, narrow)
