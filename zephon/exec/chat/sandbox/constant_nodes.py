"""Which parts of a template are constants, with which an operation is one step."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes


def is_scalar(node: nodes.Expr) -> bool:
    """Whether a node is a constant that is compared in one step."""
    return isinstance(node, nodes.Const) and not isinstance(node.value, tuple | list | dict)


def is_number(node: nodes.Expr) -> bool:
    """Whether a node is a number."""
    return isinstance(node, nodes.Const) and isinstance(node.value, int | float)


def is_constant(node: nodes.Expr) -> bool:
    """Whether a node is a constant, or a list of such."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(map(is_scalar, node.items))
    return is_scalar(node)


def joined_constants(parts: Sequence[nodes.Expr]) -> list[nodes.Expr]:
    """Join texts that stand beside each other in a chain of ``+``."""
    joined: list[nodes.Expr] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            isinstance(part, nodes.Const)
            and isinstance(last, nodes.Const)
            and type(part.value) is str
            and type(last.value) is str
        ):
            joined[-1] = nodes.Const(last.value + part.value, lineno=last.lineno)
        else:
            joined.append(part)
    return joined
