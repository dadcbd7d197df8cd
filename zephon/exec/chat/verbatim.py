"""Conversations without a template: contents one after another."""

from __future__ import annotations

from typing import Any

from zephon.errors import DataTypeError
from zephon.exec.chat.conversation import ASSISTANT, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.spans import Marked, Span


def verbatim(conversation: Conversation, end: str) -> Marked:
    """Join the contents; the assistant's are its spans, and each ends with ``end``.

    Raises:
        ChatFault: a content is no text.
    """
    pieces: list[str] = []
    spans: list[Span] = []
    length = 0
    for number, message in enumerate(conversation.messages):
        content = _text(message.get("content", ""), number)
        if message["role"] == ASSISTANT:
            content += end
            spans.append(Span(length, length + len(content), number))
        pieces.append(content)
        length += len(content)
    return Marked("".join(pieces), spans)


def _text(content: Any, number: int) -> str:
    """Give the text of a content: itself, or its blocks joined."""
    if isinstance(content, str):
        return content
    match content:
        case list() if all(
            isinstance(block, dict) and isinstance(block.get("text"), str) for block in content
        ):
            return "".join(block["text"] for block in content)
        case _:
            raise ChatFault(
                f"message {number} must have a text or blocks of text as its content, got "
                f"{content!r:.80}",
                "without a template contents are joined as they are: mend the row, or apply one",
                kind=DataTypeError,
            )
