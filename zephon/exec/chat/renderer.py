"""Conversations to text, by the template that is right for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.sandbox import Template, TemplateFault, compile_template


class Renderer:
    """Some templates, and what all conversations tell them; any number of threads may render.

    Args:
        templates: name and text: of one, or of one for rows without tools and one for the others.
        fixed: variables that are the same for all.
    """

    def __init__(self, templates: Sequence[tuple[str, str]], fixed: Mapping[str, Any]) -> None:
        self._templates = [compile_template(text, name=name) for name, text in templates]
        self._fixed = {"documents": None, **fixed}

    def template(self, conversation: Conversation) -> Template:
        """Choose the template of a conversation: the one for tools, where it has some."""
        return self._templates[0 if conversation.tools is None else -1]

    @property
    def all_tagged(self) -> bool:
        """Whether every template says itself what the assistant says."""
        return all(template.has_generation_tags for template in self._templates)

    def text(
        self, conversation: Conversation, stop: int | None = None, *, prompt: bool = False
    ) -> str:
        """Render messages [0, stop), or all.

        Args:
            conversation: of which.
            stop: where to end.
            prompt: end with what comes before an answer.

        Raises:
            ChatFault: the template refuses it, or fails.
        """
        template = self.template(conversation)
        try:
            return template.render(self._variables(conversation, stop, prompt=prompt))
        except TemplateFault as exc:
            raise _fault(template, exc) from exc

    def marked(
        self, conversation: Conversation, stop: int | None = None
    ) -> tuple[str, list[tuple[int, int]]]:
        """Render messages, and say what stood between generation tags; raises as ``text``."""
        template = self.template(conversation)
        try:
            return template.render_marked(self._variables(conversation, stop, prompt=False))
        except TemplateFault as exc:
            raise _fault(template, exc) from exc

    def _variables(
        self, conversation: Conversation, stop: int | None, *, prompt: bool
    ) -> dict[str, Any]:
        messages = conversation.messages
        return {
            **self._fixed,
            **conversation.told,
            "messages": messages if stop is None else messages[:stop],
            "tools": conversation.tools,
            "add_generation_prompt": prompt,
        }


def _fault(template: Template, exc: TemplateFault) -> ChatFault:
    line = "" if exc.line is None else f", line {exc.line}"
    return ChatFault(
        f"the chat template {template.name!r}{line}: {exc.problem}", "mend the row or the template"
    )
