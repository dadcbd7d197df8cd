"""What is wrong with a conversation, said by whoever finds it."""

from __future__ import annotations

from zephon.errors import DataError
from zephon.exec.bad_row import BadRow

CALL = "tokenize_chat"


class ChatFault(BadRow):
    """A conversation cannot be rendered or masked."""

    def __init__(self, problem: str, way_out: str, *, kind: type[DataError] = DataError) -> None:
        super().__init__(CALL, problem, way_out, kind=kind)
