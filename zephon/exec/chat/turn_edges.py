"""Where an answer's turn begins and ends around its own text, which substitution has found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zephon.exec.chat.conversation import ASSISTANT, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.places_of_answers import Place, between, placed, shared, unused_letters
from zephon.exec.chat.renderer import Renderer


def begin_of(
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
    bare, asked = _before(renderer, conversation, number)
    introduced = asked[len(bare) :] if asked.startswith(bare) else ""
    if introduced and whole.startswith(asked) and free <= len(bare) and len(asked) <= place.start:
        return len(bare if header else asked)
    at = whole.rfind(introduced, free, place.start) if introduced else -1
    if at >= 0:
        return at if header else at + len(introduced)
    begin = place.start - _head_of_call(renderer, conversation, whole, number, place)
    if not header:
        return begin
    # Some prompts say more than what introduces an answer, such as that it thinks.
    said = whole[free:begin]
    sizes = range(min(len(said), len(introduced)), 0, -1)
    return begin - next((n for n in sizes if said.endswith(introduced[:n])), 0)


def _head_of_call(
    renderer: Renderer, conversation: Conversation, whole: str, number: int, place: Place
) -> int:
    """Measure what stands between the beginning of an answer and the name of the tool it calls.

    It is what the answer has before the name that another answer without a call has not.
    """
    if not conversation.messages[number].get("tool_calls"):
        return 0
    alone = conversation.with_messages(conversation.messages[: number + 1])
    try:
        text = renderer.text(alone)
        letter = unused_letters(text, 1)[0]
        plain = {"role": ASSISTANT, "content": letter}
        messages = [*conversation.messages[:number], plain]
        begin = shared(text, renderer.text(conversation.with_messages(messages)))
        start = placed(renderer, alone, text, number, letter)[1].start
    except ChatFault:
        return 0
    head = text[begin:start]
    return len(head) if whole.endswith(head, 0, place.start) else 0


def _before(renderer: Renderer, conversation: Conversation, number: int) -> tuple[str, str]:
    """Render what is before an answer, without and with a generation prompt; "" if refused."""
    try:
        return (
            renderer.text(conversation, number),
            renderer.text(conversation, number, prompt=True),
        )
    except ChatFault:
        return "", ""


def stop_of(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    number: int,
    place: Place,
    ends: Sequence[str],
    shown: Any,
) -> int:
    """Say where a turn ends: as a conversation does that ends with it, or with a special token.

    ``shown`` is the message that showed the place, to be found there too.
    """
    alone = conversation.with_messages(conversation.messages[: number + 1])
    other = conversation.with_messages([*conversation.messages[:number], shown])
    behind = whole[place.stop :]
    try:
        text, prompted = renderer.text(alone), renderer.text(alone, prompt=True)
        tail = text[between(text, renderer.text(other)).stop :]
    except ChatFault:
        return place.stop + _other_end(renderer, conversation, number, behind, "", ends)
    if behind.startswith(tail) and text != prompted:
        return place.stop + len(tail)
    agreed = tail[: shared(tail, behind)]
    found = [at + len(end) for end in ends if (at := agreed.find(end)) >= 0]
    if found or not tail:
        return place.stop + min(found, default=0)
    return place.stop + _other_end(renderer, conversation, number, behind, agreed, ends)


def _other_end(
    renderer: Renderer,
    conversation: Conversation,
    number: int,
    behind: str,
    agreed: str,
    ends: Sequence[str],
) -> int:
    """Measure up to the special token that ends a turn in the middle, if another does at the end.

    It stands where the turns begin to differ, or behind white space; what also introduces an answer
    is none.
    """
    latest = max(len(agreed), len(behind) - len(behind.lstrip()))
    there = [(at, -len(end), end) for end in ends if 0 <= (at := behind.find(end)) <= latest]
    if not there:
        return 0
    at, size, end = min(there)
    bare, asked = _before(renderer, conversation, number)
    return 0 if asked.removeprefix(bare).lstrip().startswith(end) else at - size
