"""A conversation to a text and what is learned of it, in the way that the call asks for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.generation_tags import by_generation_tags
from zephon.exec.chat.prefixes import by_prefixes
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import Marked, Span, in_scope
from zephon.exec.chat.substitution import by_substitution
from zephon.exec.chat.templates import chosen_template, find_templates
from zephon.exec.chat.verbatim import verbatim
from zephon.planner.logical import TokenizeChat


@dataclass(frozen=True, slots=True)
class Marker:
    """Renders and marks; any number of threads may.

    node: what was called. renderer: None: there is no template. end: text that ends an answer where
    there is none. ends: special tokens, one of which ends a turn in a template.
    """

    node: TokenizeChat
    renderer: Renderer | None
    end: str
    ends: Sequence[str]

    @classmethod
    def of(cls, node: TokenizeChat, *, end: str, ends: Sequence[str]) -> Marker:
        """Compile the templates of a call."""
        if not node.templates:
            return cls(node, None, end, ends)
        special = {role: s if isinstance(s, str) else [*s] for role, s in node.special_texts}
        fixed = {**special, **json.loads(node.template_kwargs)}
        if node.eos_token is not None:
            fixed["eos_token"] = node.eos_token
        return cls(node, Renderer(node.templates, fixed), end, ends)

    def marked(self, conversation: Conversation) -> tuple[str, list[Span]]:
        """Give the text of a conversation, and the spans of it that are learned.

        Raises:
            ChatFault: it cannot be rendered, or nobody can say what the assistant says.
        """
        if not conversation.messages:
            return "", []
        found = self._found(conversation)
        spans = [span for span in found.spans if span.start < span.stop]
        return found.text, in_scope(spans, self.node.loss_scope, conversation)

    def _found(self, conversation: Conversation) -> Marked:
        renderer, header = self.renderer, self.node.supervise_header
        if renderer is None:
            return verbatim(conversation, self.end)
        source = self.node.span_source
        if source == "auto":
            tagged = renderer.template(conversation).has_generation_tags and not header
            source = "generation_tags" if tagged else "auto"
        if source == "generation_tags":
            owned = self.node.loss_scope == "after_last_user" or self.node.loss_weights
            return by_generation_tags(renderer, conversation, owned=owned)
        if source != "substitution":
            marked = by_prefixes(renderer, conversation, header=header)
            if isinstance(marked, Marked):
                return marked
            if source == "prefix_diff":
                name = renderer.template(conversation).name
                raise ChatFault(
                    f"the chat template {name!r} cannot be masked by prefixes: {marked}",
                    "pass span_source='substitution', or mark answers in the template with "
                    "{% generation %}",
                )
        return by_substitution(renderer, conversation, self.ends, header=header)


def chat_templates(
    tokenizer: object | None, tokenizer_id: str | None, chat_template: Any
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str | tuple[str, ...]], ...]]:
    """Find the templates of a call, and the special tokens that they are told.

    Args:
        tokenizer: an object, or None.
        tokenizer_id: else where it is.
        chat_template: what was asked for; see ``tokenize_chat``.

    Returns:
        Name and text of each template: one, or one for rows with tools and one for the others;
        and role and text, or texts, of each special token.

    Raises:
        PlanError: there is no such template.
        TokenizerError: none was asked for, and the tokenizer has none.
    """
    found = find_templates(tokenizer_id, tokenizer)
    chosen = dict(chosen_template(found, chat_template, tools=tools) for tools in (False, True))
    special = {
        role: text if isinstance(text, str) else tuple(text)
        for role, text in found.special_tokens.items()
    }
    return tuple(chosen.items()), tuple(special.items())


def is_tagged(node: TokenizeChat) -> bool:
    """Say whether every template of a call marks what the assistant says; compiles them all."""
    return Renderer(node.templates, {}).all_tagged
