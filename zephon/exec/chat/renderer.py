"""Conversations to text, by the template that is right for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.faults import ChatFault
from zephon.exec.chat.sandbox import Template, TemplateFault, compile_template


class Turns(NamedTuple):
    """A text in which the first n messages end at ``places[n]``.

    behind, prompt: what stands behind the last message of any text, without and with a prompt.
    """

    text: str
    places: list[int]
    behind: str
    prompt: str


class Renderer:
    """Some templates, and what all conversations tell them; any number of threads may render.

    Args:
        templates: name and text: of one, or of one for rows without tools and one for the others.
        fixed: variables that are the same for all.
    """

    def __init__(self, templates: Sequence[tuple[str, str]], fixed: Mapping[str, Any]) -> None:
        self._templates = [compile_template(text, name=name) for name, text in templates]
        self._fixed = {"documents": None, **fixed}
        self._behind: dict[str, str] = {}

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

    def turns(self, conversation: Conversation, fewest: int) -> Turns | None:
        """Render all messages, and say what the text of fewer would be; raises nothing.

        Args:
            conversation: of which.
            fewest: messages that somebody will ask for.

        Returns:
            None: the template asks for later messages where it renders earlier ones, or fails.
        """
        template = self.template(conversation)
        if template.has_generation_tags:
            return None
        try:
            found = template.render_turns(self._variables(conversation, None, prompt=False))
            if found is None or found[2] > fewest:
                return None
            text, places, _ = found
            known = f"{conversation.tools is None} {sorted(conversation.told.items())!r}"
            if known not in self._behind:
                prompted = template.render_turns(self._variables(conversation, None, prompt=True))
                if prompted is None:
                    return None
                self._behind[known] = prompted[0][prompted[1][-1] :]
            return Turns(text, places, text[places[-1] :], self._behind[known])
        except TemplateFault:
            return None  # what is rendered next says so, with its line

    def marked(
        self, conversation: Conversation, stop: int | None = None, *, prompt: bool = False
    ) -> tuple[str, list[tuple[int, int]]]:
        """Render messages, and say what stood between generation tags; raises as ``text``."""
        template = self.template(conversation)
        try:
            return template.render_marked(self._variables(conversation, stop, prompt=prompt))
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
