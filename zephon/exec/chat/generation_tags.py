"""What the assistant says, where the template itself marks it: ``{% generation %}``."""

from __future__ import annotations

from zephon.exec.chat.conversation import ASSISTANT, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.places_of_answers import otherwise, unused_letters
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import Marked, Span

_Found = list[tuple[int, int]]


def by_generation_tags(renderer: Renderer, conversation: Conversation, *, owned: bool) -> Marked:
    """Mark what stood between tags.

    Args:
        renderer: of the template.
        conversation: to render.
        owned: also say whose each span is: of the message with which it comes to a growing
            conversation; or, where the beginning of one is rendered otherwise, of the message
            whose text is in it.

    Raises:
        ChatFault: it cannot be rendered, or nobody can say whose a span is.
    """
    text, found = _marked(renderer, conversation)
    if not owned:
        return Marked(text, [Span(start, stop) for start, stop in found])
    owners = _owners_by_growth(renderer, conversation, text, found)
    if owners is None:
        owners = _owners_by_text(renderer, conversation, text, found)
    spans = [Span(start, stop, owner) for (start, stop), owner in zip(found, owners, strict=True)]
    return Marked(text, spans)


def _marked(
    renderer: Renderer, conversation: Conversation, stop: int | None = None, *, prompt: bool = False
) -> tuple[str, _Found]:
    """Render, without spans of nothing: of those nobody can say whose they are."""
    text, found = renderer.marked(conversation, stop, prompt=prompt)
    return text, [(start, end) for start, end in found if start < end]


def _owners_by_growth(
    renderer: Renderer, conversation: Conversation, text: str, found: _Found
) -> list[int] | None:
    """Say with which answer each span comes; None where that does not tell."""
    owners: list[int] = []
    for number, message in enumerate(conversation.messages):
        some = found
        if number + 1 < len(conversation.messages):
            try:
                # A prompt keeps away what is marked at the end of any text, as by Phi 3 EOS is.
                beginning, some = _marked(renderer, conversation, number + 1, prompt=True)
            except ChatFault:
                return None
            size = some[-1][1] if some else 0
            if some != found[: len(some)] or beginning[:size] != text[:size]:
                return None
        more = len(some) - len(owners)
        if more < 0 or (more and message["role"] != ASSISTANT):
            return None
        owners += [number] * more
    return owners


def _owners_by_text(
    renderer: Renderer, conversation: Conversation, text: str, found: _Found
) -> list[int]:
    """Say whose text each span has: what a message says is replaced by a letter, and it is there.

    A span without such a text is of the same message as the one that it touches.

    Raises:
        ChatFault: a span has text of two messages, of one that is no answer, or of none.
    """
    letter = unused_letters(text, 1)[0]
    owners = [-1] * len(found)
    for number, message in enumerate(conversation.messages):
        for other in otherwise(message, letter):
            messages = [*conversation.messages]
            messages[number] = other
            try:
                changed, some = _marked(renderer, conversation.with_messages(messages))
            except ChatFault:
                continue
            if len(some) != len(found):
                continue
            for at, (start, stop) in enumerate(some):
                if letter in changed[start:stop]:
                    if message["role"] != ASSISTANT or owners[at] not in (-1, number):
                        raise _unowned(number)
                    owners[at] = number
    for at in range(1, len(found)):  # the end of a turn may be marked for itself
        if owners[at] == -1 and found[at - 1][1] == found[at][0]:
            owners[at] = owners[at - 1]
    if -1 in owners:
        raise _unowned(len(conversation.messages) - 1)
    return owners


def _unowned(number: int) -> ChatFault:
    return ChatFault(
        f"the generation tags of the chat template do not mark the messages up to number {number} "
        "one after the other, so nobody can say which message a part of the text is of",
        "use loss_scope='all_assistant' without loss_weights, or mend the template",
    )
