"""What the assistant says, found by rendering again with something else in its place.

For templates of which the beginning of a conversation is not rendered as the beginning of the text:
Qwen 3 leaves out what was thought in earlier turns. One answer's text is replaced by letters that
occur nowhere, and what differs is where it stood. To that belong what introduces it, less what a
generation prompt says, and what ends its turn. All answers replaced at once must give the same text
around them; else the conversation is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zephon.exec.chat.conversation import ASSISTANT, USER, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.places_of_answers import (
    Place,
    placed,
    places_of_more,
    unused_letters,
)
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import Marked, Span
from zephon.exec.chat.turn_edges import begin_of, stop_of


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
    letters = unused_letters(whole, len(answers))
    replaced: dict[int, Any] = {}
    places: list[Place] = []
    for number, letter in zip(answers, letters, strict=True):
        replaced[number], place = placed(renderer, conversation, whole, number, letter)
        if place.instead.count(letter) > 1:
            raise _mixed(number)  # it is shown twice, and what stands between is not the answer's
        places.append(place)
    _check(renderer, conversation, whole, replaced, places)
    spans: list[Span] = []
    for number, place in zip(answers, places, strict=True):
        free = spans[-1].stop if spans else 0
        shown, letter = replaced[number], unused_letters(whole, 1)[0]
        more = [*places_of_more(renderer, conversation, whole, number, letter)]
        begin = begin_of(
            renderer, conversation, whole, number, place, shown, free, more, header=header
        )
        stop = stop_of(renderer, conversation, whole, number, place, ends, shown)
        if any(each.start < begin or each.stop > stop for each in more):
            raise _mixed(number)
        spans.append(Span(begin, stop, number))
    if spans:
        _check_others(renderer, conversation, whole, spans, letters[0])
    return Marked(whole, spans)


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


def _check_others(
    renderer: Renderer, conversation: Conversation, whole: str, spans: Sequence[Span], letter: str
) -> None:
    """Refuse what a tool says in the midst of an answer; some templates move it there."""
    for number, message in enumerate(conversation.messages):
        if message["role"] in (ASSISTANT, USER, "system") or not message.get("content"):
            continue
        try:
            _, place = placed(renderer, conversation, whole, number, letter)
        except ChatFault:
            continue  # it is not shown
        for span in spans:
            if place.start < span.stop and place.stop > span.start:
                raise _mixed(span.message)


def _mixed(number: int) -> ChatFault:
    return ChatFault(
        f"the chat template does not render the answers up to message {number} apart from the rest "
        "of the conversation, so they cannot be masked",
        "mark them in the template with {% generation %}",
    )
