"""Values that a filter makes when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zephon.exec.chat.sandbox.budget import DEEPEST_CALL, Budget, TemplateFault


class Late:
    """Values that are made when they are asked for, once; true even if there are none."""

    __slots__ = ("_budget", "_values")

    def __init__(self, budget: Budget, values: Iterator[Any]) -> None:
        self._budget = budget
        self._values = values

    def __iter__(self) -> Late:
        return self

    def __next__(self) -> Any:
        budget = self._budget
        budget.charge(8)
        budget.depth += 1  # the values may be made of others that are made late
        if budget.depth > DEEPEST_CALL:
            raise TemplateFault(f"more than {DEEPEST_CALL} filters are inside each other")
        try:
            return next(self._values)
        finally:
            budget.depth -= 1
