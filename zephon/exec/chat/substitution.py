"""What the assistant says, found by rendering again with something else in its place.

For templates of which the beginning of a conversation is not rendered as the beginning of the text:
Qwen 3 leaves out what was thought in earlier turns. One answer's text is replaced by letters that
occur nowhere, and what differs is where it stood. To that belong what introduces it, less what a
generation prompt says, and what ends its turn. All answers replaced at once must give the same text
around them; else the conversation is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import Marked, Span

# From the private use area, of which no text should have much; templates take them for letters.
_LETTERS = range(0xE000, 0xF8FF)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer's own text stands, characters [start, stop); and what does instead."""

    start: int
    stop: int
    instead: str


def by_substitution(
    renderer: Renderer, conversation: Conversation, ends: Sequence[str], *, header: bool
) -> Marked:
    """Mark each answer.

    Args:
        renderer: of the template.
        conversation: to render.
        ends: special tokens, one of which ends a turn.
        header: what introduces an answer belongs to it.

    Raises:
        ChatFault: it cannot be rendered, or not be taken apart.
    """
    whole = renderer.text(conversation)
    answers = conversation.answers
    letters = _unused(whole, len(answers))
    replaced: dict[int, Any] = {}
    places: list[Place] = []
    for number, letter in zip(answers, letters, strict=True):
        replaced[number], place = _place(renderer, conversation, whole, number, letter)
        places.append(place)
    _check(renderer, conversation, whole, replaced, places)
    spans: list[Span] = []
    for number, place in zip(answers, places, strict=True):
        free = spans[-1].stop if spans else 0
        begin = _begin(renderer, conversation, whole, number, place, free, header=header)
        stop = _stop(renderer, conversation, whole, number, place, ends)
        spans.append(Span(begin, stop, number))
    return Marked(whole, spans)


def _place(
    renderer: Renderer, conversation: Conversation, whole: str, number: int, letter: str
) -> tuple[Any, Place]:
    """Find where the text of one answer stands; also give the message that shows it."""
    for message in _otherwise(conversation.messages[number], letter):
        messages = [*conversation.messages]
        messages[number] = message
        other = renderer.text(conversation.with_messages(messages))
        if letter not in other:
            continue
        start = _shared(whole, other)
        longest = min(len(whole), len(other)) - start
        rest = _shared(whole[::-1][:longest], other[::-1][:longest])
        return message, Place(start, len(whole) - rest, other[start : len(other) - rest])
    raise ChatFault(
        f"the chat template shows neither the content nor a tool call of message {number}",
        "mend the row, or mark answers in the template with {% generation %}",
    )


def _otherwise(message: Any, letter: str) -> Iterator[Any]:
    """Give a message with another content, of the same form; then with another tool called."""
    blocks = isinstance(message.get("content"), list)
    yield {**message, "content": [{"type": "text", "text": letter}] if blocks else letter}
    match message.get("tool_calls"):
        case [{"function": {"name": _} as function} as call, *others]:
            other = {**call, "function": {**function, "name": letter}}
            yield {**message, "tool_calls": [other, *others]}
        case _:
            pass


def _check(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    replaced: dict[int, Any],
    places: Sequence[Place],
) -> None:
    """Refuse answers that do not stand apart from each other and from everything else."""
    messages = [replaced.get(n, message) for n, message in enumerate(conversation.messages)]
    pieces: list[str] = []
    end = 0
    for number, place in zip(replaced, places, strict=True):
        if place.start < end:
            raise _mixed(number)
        pieces += [whole[end : place.start], place.instead]
        end = place.stop
    if "".join([*pieces, whole[end:]]) != renderer.text(conversation.with_messages(messages)):
        raise _mixed(len(messages) - 1)


def _begin(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    number: int,
    place: Place,
    free: int,
    *,
    header: bool,
) -> int:
    """Say where an answer begins: behind what a generation prompt says, where that is found."""
    introduced = _prompt(renderer, conversation, number)
    at = whole.rfind(introduced, free, place.start) if introduced else -1
    if at < 0:
        return place.start
    return at if header else at + len(introduced)


def _prompt(renderer: Renderer, conversation: Conversation, number: int) -> str:
    """Give what a generation prompt adds before an answer; "" if it adds nothing."""
    try:
        bare = renderer.text(conversation, number)
        asked = renderer.text(conversation, number, prompt=True)
    except ChatFault:
        return ""
    return asked[len(bare) :] if asked.startswith(bare) else ""


def _stop(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    number: int,
    place: Place,
    ends: Sequence[str],
) -> int:
    """Say where a turn ends: as a conversation does that ends with it, or with a special token."""
    alone = conversation.with_messages(conversation.messages[: number + 1])
    try:
        text, prompted = renderer.text(alone), renderer.text(alone, prompt=True)
        tail = text[_place(renderer, alone, text, number, _unused(text, 1)[0])[1].stop :]
    except ChatFault:
        tail, prompted, text = "", "", ""
    here = whole[place.stop : place.stop + len(tail)]
    if tail and here == tail and text != prompted:
        return place.stop + len(tail)
    agreed = tail[: _shared(tail, here)] if tail else ""
    found = [at + len(end) for end in ends if (at := agreed.find(end)) >= 0]
    return place.stop + min(found, default=0)


def _unused(text: str, count: int) -> list[str]:
    """Give so many texts of one letter each that occur nowhere in a text."""
    used = set(text)
    letters = [chr(code) for code in _LETTERS if chr(code) not in used][:count]
    if len(letters) < count:
        raise ChatFault(
            f"the conversation has {count} answers and uses private characters itself, so none is "
            "left to stand for each answer",
            "pass span_source='prefix_diff', or a template with generation tags",
        )
    return letters


def _shared(one: str, other: str) -> int:
    """Say how many characters two texts begin with in common.

    >>> _shared("abcd", "abxd"), _shared("", "a"), _shared("ab", "ab")
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


def _mixed(number: int) -> ChatFault:
    return ChatFault(
        f"the chat template does not render the answers up to message {number} apart from the rest "
        "of the conversation, so they cannot be masked",
        "mark them in the template with {% generation %}",
    )
