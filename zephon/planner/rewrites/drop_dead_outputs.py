"""Tokenize builds only fields that somebody can see, and no mask that follows from lengths."""

from __future__ import annotations

from dataclasses import replace

from zephon.planner.logical import Node, Tokenize
from zephon.planner.tree import source_first, transform_up


def drop_dead_outputs(plan: Node) -> Node:
    """Stop tokenize from keeping payload that a later step drops, and from writing masks of ones.

    The fields that leave the top stay the same: an implied mask is written when it is looked at.
    """
    steps = source_first(plan)
    dropped = any(not node.keeps_payload() for node in steps)
    # A function that measures rows may look at anything.
    dropped &= not any(m.of_whole_rows for m in (n.measure() for n in steps) if m is not None)

    def narrow(node: Node) -> Node:
        match node:
            case Tokenize(preserve_upstream_payload=True) if dropped:
                return narrow(replace(node, preserve_upstream_payload=False))
            case Tokenize(add_attention_mask=True, mask_implied=False, padding="none" | "longest"):
                return replace(node, mask_implied=True)
            case _:
                return node

    return transform_up(plan, narrow)
