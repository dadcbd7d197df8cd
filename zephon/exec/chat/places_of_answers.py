"""Where an answer's own text stands in a rendering: something else is put there, and it differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from zephon.exec.chat.conversation import THOUGHT, Conversation
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
    for message, once in _in_order(conversation.messages[number], letter):
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


def places_of_more(
    renderer: Renderer, conversation: Conversation, whole: str, number: int, letter: str
) -> Iterator[Place]:
    """Find what else of an answer is shown: what was thought, and the first and the last call."""
    for other in _thinking_and_calling(conversation.messages[number], letter):
        messages = [*conversation.messages]
        messages[number] = other
        text = renderer.text(conversation.with_messages(messages))
        if letter in text:
            yield between(whole, text)


def otherwise(message: Any, letter: str) -> Iterator[Any]:
    """Give a message with a letter in place of its content, its thoughts, or a call."""
    yield _saying(message, letter)
    yield from _thinking_and_calling(message, letter)


def _in_order(message: Any, letter: str) -> Iterator[tuple[Any, bool]]:
    """Give a message with another content, of the same form; and with other calls of tools.

    Each with whether it is right only where it shows once: a tool's name stands also with what the
    tool said. Calls come first where there is no content, since some templates write one elsewhere.
    """
    content = message.get("content")
    if content:
        yield _saying(message, letter), False
    yield from _calling(message, letter, 0)
    if not content:
        yield _saying(message, letter), False


def _saying(message: Any, letter: str) -> Any:
    blocks = isinstance(message.get("content"), list)
    return {**message, "content": [{"type": "text", "text": letter}] if blocks else letter}


def _thinking_and_calling(message: Any, letter: str) -> Iterator[Any]:
    if THOUGHT in message:
        yield {**message, "thinking": letter, THOUGHT: letter}
    for at in (0, -1):
        yield from [changed for changed, _ in _calling(message, letter, at)][-1:]


def _calling(message: Any, letter: str, at: int) -> Iterator[tuple[Any, bool]]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return
    match calls[at]:
        case {"function": {"name": _} as function} as call:
            text = isinstance(function.get("arguments"), str)
            arguments = letter if text else {letter: ""}
            for changed, once in (({"name": letter}, True), ({"arguments": arguments}, False)):
                others = [*calls]
                others[at] = {**call, "function": {**function, **changed}}
                yield {**message, "tool_calls": others}, once
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
