"""Where an answer's own text stands in a rendering: something else is put there, and it differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.renderer import Renderer

# From the private use area, of which no text should have much; templates take them for letters.
_LETTERS = range(0xE000, 0xF8FF)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer's own text stands, characters [start, stop); and what does instead."""

    start: int
    stop: int
    instead: str


def placed(
    renderer: Renderer, conversation: Conversation, whole: str, number: int, letter: str
) -> tuple[Any, Place]:
    """Find where the text of one answer stands; also give the message that shows it."""
    for message, once in _otherwise(conversation.messages[number], letter):
        messages = [*conversation.messages]
        messages[number] = message
        other = renderer.text(conversation.with_messages(messages))
        if letter not in other or (once and other.count(letter) > 1):
            continue
        return message, between(whole, other)
    raise ChatFault(
        f"the chat template shows neither the content nor a tool call of message {number}",
        "mend the row, or mark answers in the template with {% generation %}",
    )


def between(whole: str, other: str) -> Place:
    """Say where two texts that begin and end in the same way differ."""
    start = shared(whole, other)
    longest = min(len(whole), len(other)) - start
    rest = shared(whole[::-1][:longest], other[::-1][:longest])
    return Place(start, len(whole) - rest, other[start : len(other) - rest])


def _otherwise(message: Any, letter: str) -> Iterator[tuple[Any, bool]]:
    """Give a message with another content, of the same form; then with other calls of tools.

    Each with whether it is right only where it shows once: a tool's name stands also with what the
    tool said.
    """
    blocks = isinstance(message.get("content"), list)
    yield {**message, "content": [{"type": "text", "text": letter}] if blocks else letter}, False
    match message.get("tool_calls"):
        case [{"function": {"name": _} as function} as call, *others]:
            text = isinstance(function.get("arguments"), str)
            arguments = letter if text else {letter: letter}
            for changed, once in (({"name": letter}, True), ({"arguments": arguments}, False)):
                other = {**call, "function": {**function, **changed}}
                yield {**message, "tool_calls": [other, *others]}, once
        case _:
            pass


def unused_letters(text: str, count: int) -> list[str]:
    """Give so many texts of one letter each that occur nowhere in a text."""
    used = set(text)
    unused = (chr(code) for code in _LETTERS if chr(code) not in used)
    letters = list(islice(unused, count))
    if len(letters) < count:
        raise ChatFault(
            f"the conversation has {count} answers and uses private characters itself, so none is "
            "left to stand for each answer",
            "pass span_source='prefix_diff', or a template with generation tags",
        )
    return letters


def shared(one: str, other: str) -> int:
    """Say how many characters two texts begin with in common.

    >>> shared("abcd", "abxd"), shared("", "a"), shared("ab", "ab")
    (2, 0, 2)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
