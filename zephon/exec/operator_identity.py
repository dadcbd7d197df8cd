"""What an operator of the user is, as JSON values: its class by source, and what it was given.

Methods of its class, and of those that this derives from below ``BaseOp``, are told like functions;
what ``__init__`` kept on the instance, like what a function closes over.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from zephon.exec.function_identity import identity_of, identity_of_value
from zephon.ops import BaseOp


def identity_of_operator(op: BaseOp) -> dict[str, Any]:
    """Describe an instance, as it is where the pipeline is described."""
    kept = {name: value for name, value in vars(op).items() if name != "stage_info"}
    return {
        "operator": type(op).plan_identity(),
        "methods": _methods(type(op)),
        "kept": {name: identity_of_value(value) for name, value in sorted(kept.items())},
    }


def _methods(kind: type) -> dict[str, Any]:
    """Describe the functions that a class has of its own or of its user's classes, by name."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if each in BaseOp.__mro__:
            continue
        for name, value in vars(each).items():
            function = _function(value)
            if function is not None:
                found[name] = identity_of(function)
    return dict(sorted(found.items()))


def _function(value: Any) -> FunctionType | None:
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    return value if isinstance(value, FunctionType) else None
