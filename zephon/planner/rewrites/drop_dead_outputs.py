"""Only fields that somebody can see are built, and no mask that follows from lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zephon.planner.logical import MakesTokens, Node, Tokenize
from zephon.planner.tree import source_first, transform_up


def drop_dead_outputs(plan: Node) -> Node:
    """Stop what makes tokens from keeping payload that nobody sees, and from writing masks of ones.

    The fields that leave the top stay the same: an implied mask is written when it is looked at.
    """
    steps = source_first(plan)
    places = iter(range(len(steps)))  # nodes are rebuilt in the order in which rows meet them

    def narrow(node: Node) -> Node:
        later = steps[next(places) + 1 :]
        if isinstance(node, MakesTokens) and node.preserve_upstream_payload and not _seen(later):
            node = replace(node, preserve_upstream_payload=False)
        match node:
            case Tokenize(add_attention_mask=True, mask_implied=False, padding="none" | "longest"):
                return replace(node, mask_implied=True)
            case _:
                return node

    return transform_up(plan, narrow)


def _seen(later: Sequence[Node]) -> bool:
    """Say whether whole rows come to a step that looks at them, or to the top.

    A step that drops payload may itself look first: a packer measures rows by a function.
    """
    for node in later:
        if node.sees_rows():
            return True
        if not node.keeps_payload():
            return False
    return True
