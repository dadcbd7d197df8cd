"""What an operator of the user is, as JSON values: its class by source, and what it was given.

What its class says in its body, and those that this derives from below ``BaseOp``: methods are told
like functions, values like what a function closes over. So is what ``__init__`` kept.
"""

from __future__ import annotations

from typing import Any

from zephon.exec.function_identity import identity_of_value, members_of
from zephon.ops import BaseOp


def identity_of_operator(op: BaseOp) -> dict[str, Any]:
    """Describe an instance, as it is where the pipeline is described."""
    kept = {name: value for name, value in vars(op).items() if name != "stage_info"}
    return {
        "operator": type(op).plan_identity(),
        "methods": members_of(k for k in reversed(type(op).__mro__) if k not in BaseOp.__mro__),
        "kept": {name: identity_of_value(value) for name, value in sorted(kept.items())},
    }
