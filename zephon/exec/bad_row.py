"""What a call on one row says of a row that it cannot take."""

from __future__ import annotations

from functools import partial
from typing import Any

from zephon.errors import DataError


class BadRow(Exception):
    """A row is bad, or a function of the user failed on it; the caller knows where it lies.

    step: the call. problem: what is wrong, to be followed by the place of the row. way_out: what
    to do, the end of the message. kind: which error to make of it, where it has no cause.
    """

    def __init__(
        self, step: str, problem: str, way_out: str, *, kind: type[DataError] = DataError
    ) -> None:
        super().__init__(step, problem, way_out)
        self.step = step
        self.problem = problem
        self.way_out = way_out
        self.kind = kind


def name_of_function(function: Any) -> str:
    """Say how messages call a function of the user."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__qualname__)
