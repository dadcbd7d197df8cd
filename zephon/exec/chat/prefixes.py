"""What the assistant says, as the difference between renders of growing prefixes.

An answer is what a conversation that ends with it has more than the one that ends before it and
waits for an answer.
"""

from __future__ import annotations

from zephon.exec.chat.conversation import USER, Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.renderer import Renderer, Turns
from zephon.exec.chat.spans import Marked, Span


def by_prefixes(renderer: Renderer, conversation: Conversation, *, header: bool) -> Marked | str:
    """Mark each answer.

    Args:
        renderer: of the template.
        conversation: to render.
        header: what introduces an answer belongs to it.

    Returns:
        The text with its spans; or, where it cannot be marked so, the reason.

    Raises:
        ChatFault: it, or a prefix of it, cannot be rendered.
    """
    answers = conversation.answers
    turns = renderer.turns(conversation, answers[0]) if answers else None
    if turns is not None:
        return _by_turns(turns, answers, header=header)
    whole = renderer.text(conversation)
    spans: list[Span] = []
    for number in answers:
        try:
            before = renderer.text(conversation, number, prompt=True)
            # Behind a user's message once is enough; behind a tool's, some templates never wait.
            known = spans and conversation.messages[number - 1]["role"] == USER
            bare = "" if known and not header else renderer.text(conversation, number)
            last = number + 1 == len(conversation.messages)
            after = whole if last else renderer.text(conversation, number + 1)
        except ChatFault as exc:
            return f"a part of the conversation cannot be rendered alone: {exc.problem}"
        if bare == before:
            return "it ignores add_generation_prompt"
        begin = len(bare if header else before)
        if not (whole.startswith(before) and whole.startswith(after) and len(after) >= begin):
            return f"the text up to message {number} is not how the whole text begins"
        spans.append(Span(begin, len(after), number))
    return Marked(whole, spans)


def _by_turns(turns: Turns, answers: list[int], *, header: bool) -> Marked | str:
    """Do the same with one rendering, of which it is known what fewer messages would give."""
    whole, places, behind, prompt = turns
    if behind == prompt:
        return "it ignores add_generation_prompt"
    spans: list[Span] = []
    for number in answers:
        begin = places[number] + len(behind if header else prompt)
        after = places[number + 1]
        if not (
            whole.startswith(prompt, places[number])
            and whole.startswith(behind, after)
            and after + len(behind) >= begin
        ):
            return f"the text up to message {number} is not how the whole text begins"
        spans.append(Span(begin, after + len(behind), number))
    return Marked(whole, spans)
