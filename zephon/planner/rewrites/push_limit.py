"""Where one row leaves for each row that is read, a limit says how far to read ahead."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import Batch, Fetch, Node
from zephon.planner.logical.batch import Take
from zephon.planner.tree import source_first, transform_up


def push_limit(plan: Node) -> Node:
    """Tell Fetch how many rows of a lane can be needed, up to a whole batch.

    Nothing moves past a step that reorders, drops or multiplies rows: it must have read what it
    would have read without a limit.
    """
    steps = source_first(plan)
    take = next((node for node in steps if isinstance(node, Take)), None)
    if take is None or not all(n.keeps_rows() and not n.reorders for n in steps):
        return plan
    batch = next((n.microbatch_size for n in steps if isinstance(n, Batch)), 1)
    rows = -(-take.rows // batch) * batch

    def tell(node: Node) -> Node:
        match node:
            case Fetch(limit=None):
                return replace(node, limit=rows)
            case _:
                return node

    return transform_up(plan, tell)
