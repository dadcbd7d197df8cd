"""A conversation in one of the formats that people have, as a list of messages in a field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zephon.batches.own_copies import own_copy
from zephon.errors import told
from zephon.exec.bad_row import BadRow, name_of_function
from zephon.exec.message_fields import with_messages, without_field
from zephon.exec.operators.chat_formats import CALL, Path, conversation_of
from zephon.planner.logical.functions import ROLE_WORDS, NormalizeChat


class Normalizer:
    """``normalize_chat``, as a call on a row; any number of threads may call it at once."""

    def __init__(self, node: NormalizeChat) -> None:
        self._node = node
        self._words = {**ROLE_WORDS, **dict(node.roles)}
        self._on_block = None if node.on_block is None else node.on_block.function

    def __call__(self, row: Any) -> dict[str, Any]:
        """Give the row with its messages; it shares all other values with the row that came.

        Raises:
            BadRow: the row holds no conversation of the format; or, with the cause, the function
                for blocks failed.
        """
        node = self._node
        messages, sources = conversation_of(row, node.format, node.field, self._words)
        if self._on_block is not None:
            for at, message in enumerate(messages):
                if isinstance(message.get("content"), list | tuple):
                    content = _blocks(message["content"], at, self._on_block)
                    messages[at] = {**message, "content": content}
        return self._with(row, messages, sources)

    def _with(
        self, row: Mapping[str, Any], messages: list[dict[str, Any]], sources: list[Path]
    ) -> dict[str, Any]:
        """Put the messages in their field; let go of what they are made of."""
        out, kept = self._node.field_out, dict(row)
        if sources[0] in ((out,), tuple(out.split("."))):
            kept = with_messages(row, sources[0], messages)
            sources = sources[1:]
            placed = True
        elif (out,) not in sources and row.get(out) is not None:
            raise BadRow(
                CALL,
                f"the row must have no field {out!r} yet, and it has",
                "pass field_out= another name, or rename or drop the field before",
            )
        else:
            placed = False
        if not self._node.keep_source:
            for path in sources:
                kept = without_field(kept, path)
        return kept if placed else {**kept, out: messages}


def _blocks(content: Any, at: int, function: Callable[[Any], Any]) -> list[Any]:
    """Give the blocks of a message, those that are not text as the user's function makes them."""
    made = []
    for number, block in enumerate(content):
        if isinstance(block, str) or (isinstance(block, Mapping) and block.get("type") == "text"):
            made.append(block)
            continue
        where = f"for block {number} of message {at}"
        try:
            instead = function(own_copy(block))  # a function before may have shared it out
        except Exception as exc:  # the function is the user's, and so is what it raises
            problem = f"the function {name_of_function(function)!r} raised {told(exc)}, {where}"
            raise BadRow(CALL, problem, "mend the function or the row") from exc
        if isinstance(instead, str):
            instead = {"type": "text", "text": instead}
        if not isinstance(instead, Mapping):
            problem = (
                f"the function {name_of_function(function)!r} must return a block or text, got a "
                f"{type(instead).__name__}, {where}"
            )
            error = BadRow(CALL, problem, "return a dict, or what to say in its place")
            error.__cause__ = TypeError(problem)  # the function is to blame, not the row
            raise error
        made.append(instead)
    return made
