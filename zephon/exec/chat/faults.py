"""What is wrong with a conversation, said by whoever finds it."""

from __future__ import annotations

from zephon.errors import DataError


class ChatFault(Exception):
    """A conversation cannot be rendered or masked; the caller knows where it lies.

    problem: what is wrong, to be followed by the place of the row. way_out: what to do, the end of
    the message. kind: which error to make of it.
    """

    def __init__(self, problem: str, way_out: str, *, kind: type[DataError] = DataError) -> None:
        super().__init__(problem, way_out)
        self.problem = problem
        self.way_out = way_out
        self.kind = kind
