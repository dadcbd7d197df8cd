"""Fetch reads only the columns that some step uses."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.dataflow import flow_of
from zephon.planner.logical import Fetch, Node
from zephon.planner.sections import sections_of
from zephon.planner.tree import source_first, transform_up


def prune_columns(plan: Node) -> Node:
    """Name the columns that Fetch reads; whole rows only if they reach the top, or who asks."""
    flow = flow_of(sections_of(source_first(plan))[0].steps)

    def narrow(node: Node) -> Node:
        match node:
            case Fetch(columns=None):
                return replace(node, columns=flow.columns, payload=flow.rows, frame=flow.frame)
            case _:
                return node

    return transform_up(plan, narrow)
