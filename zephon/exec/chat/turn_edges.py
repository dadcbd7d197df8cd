"""Where an answer's turn begins and ends around its own text, which substitution has found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zephon.exec.chat.conversation import ASSISTANT, THOUGHTS, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.places_of_answers import Place, between, shared, unused_letters
from zephon.exec.chat.renderer import Renderer


def begin_of(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    number: int,
    place: Place,
    shown: Any,
    free: int,
    more: Sequence[Place],
    *,
    header: bool,
) -> int:
    """Say where an answer begins: behind what a generation prompt says, where that is found.

    ``shown`` is the message that showed the place; ``more`` are places of what else it says. What
    was thought may stand before the content, where a prompt says that nothing was.
    """
    first = min([place.start, *(each.start for each in more if each.start >= free)])
    bare, asked = _before(renderer, conversation, number)
    introduced = asked[len(bare) :] if asked.startswith(bare) else ""
    if introduced and whole.startswith(asked) and free <= len(bare) and len(asked) <= first:
        return len(bare if header else asked)
    at = whole.rfind(introduced, free, first) if introduced else -1
    if at >= 0:
        return at if header else at + len(introduced)
    begin = min(
        first, place.start - _head_of_call(renderer, conversation, whole, number, place, shown)
    )
    if not header:
        return begin
    # Some prompts say more than what introduces an answer, such as that it thinks.
    said = whole[free:begin]
    sizes = range(min(len(said), len(introduced)), 0, -1)
    return begin - next((n for n in sizes if said.endswith(introduced[:n])), 0)


def _head_of_call(
    renderer: Renderer,
    conversation: Conversation,
    whole: str,
    number: int,
    place: Place,
    shown: Any,
) -> int:
    """Measure what stands between the beginning of an answer and the name of the tool it calls.

    It is what the answer has before the name that another answer without a call has not.
    """
    if not conversation.messages[number].get("tool_calls"):
        return 0

    def alone(message: Any) -> str:
        if isinstance(message, dict):  # thoughts may be left out where more is said behind them
            message = {name: value for name, value in message.items() if name not in THOUGHTS}
        messages = [*conversation.messages[:number], message]
        return renderer.text(conversation.with_messages(messages))

    try:
        text = alone(conversation.messages[number])
        letter = unused_letters(text, 1)[0]
        begin = shared(text, alone({"role": ASSISTANT, "content": letter}))
        start = between(text, alone(shown)).start
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
    if behind.startswith(tail):
        # Without a prompt the text ends with the turn, if the template ever waits to be asked.
        bare, asked = _before(renderer, conversation, number) if text == prompted else ("", "")
        if text != prompted or bare != asked:
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
