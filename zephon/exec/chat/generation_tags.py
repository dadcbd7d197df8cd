"""What the assistant says, where the template itself marks it: ``{% generation %}``."""

from __future__ import annotations

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import Marked, Span


def by_generation_tags(renderer: Renderer, conversation: Conversation, *, owned: bool) -> Marked:
    """Mark what stood between tags.

    Args:
        renderer: of the template.
        conversation: to render.
        owned: also say whose each span is: of a prefix of the conversation, as many spans must be
            there as of its messages, and lie where they do in the whole.

    Raises:
        ChatFault: it cannot be rendered, or nobody can say whose a span is.
    """
    text, found = renderer.marked(conversation)
    if not owned:
        return Marked(text, [Span(start, stop) for start, stop in found])
    spans: list[Span] = []
    for number in conversation.answers:
        before = len(spans)
        some = found
        if number + 1 < len(conversation.messages):
            some = renderer.marked(conversation, number + 1)[1]
        if len(some) < before or len(some) > len(found):
            raise _unowned(number)
        spans += [Span(*each, number) for each in found[before : len(some)]]
    if len(spans) != len(found):
        raise _unowned(len(conversation.messages) - 1)
    return Marked(text, spans)


def _unowned(number: int) -> ChatFault:
    return ChatFault(
        f"the generation tags of the chat template do not mark the messages up to number {number} "
        "one after the other, so nobody can say which message a part of the text is of",
        "use loss_scope='all_assistant' without loss_weights, or mend the template",
    )
