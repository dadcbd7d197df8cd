"""Calls on rows that hold a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from zephon.errors import PlanError, WrongKindError
from zephon.planner import logical
from zephon.planner.logical.pack import Pack
from zephon.steps.description import (
    Description,
    check_fingerprint,
    check_function,
    check_placement,
    whole,
)


class ConversationSteps(Description):
    """Conversations as lists of messages, and parts of them."""

    def normalize_chat(
        self,
        *,
        format: str,  # noqa: A002 - the word that people have for it
        field: str | None = None,
        field_out: str = "messages",
        roles: Mapping[str, str] | None = None,
        on_block: Callable[[Any], Any] | None = None,
        keep_source: bool = False,
        fingerprint: str | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Make a list of messages, with ``role`` and ``content``, of a conversation.

        Words for roles become these, and any other is an error of its row: ``system``,
        ``developer``, ``user``, ``assistant``, ``tool`` and ``function`` stay; ``human`` is the
        user; ``gpt``, ``chatgpt`` and ``function_call`` are the assistant; ``observation`` is a
        tool. Everything else goes over as it is: contents of any type, and further keys of
        messages, such as ``name``, ``tool_calls`` or ``loss_weight``.

        The row keeps its other fields; those that the messages are made of are gone.

        Args:
            format: "messages": a list in ``messages``, which is checked.
                "sharegpt": a list in ``conversations`` of messages with ``from`` and ``value``; a
                text in the row's ``system`` comes first.
                "alpaca": the user says ``instruction`` and, after a blank line, ``input``, without
                one that is empty, and the assistant ``output``; a text in ``system`` comes first,
                then the pairs of user and assistant in ``history``.
                "prompt_completion": two texts, of the user and the assistant, in ``prompt`` and
                ``completion``; or two lists of messages, which are joined.
                "auto": the one whose fields a row has, where null is as good as absent; a row with
                fields of none, or of more than one, is refused.
            field: where a list of messages lies, if elsewhere; a dotted path reaches into nested
                rows.
            field_out: where the messages go; a field of that name that is no source is refused.
            roles: words for roles beside those above, as ``{"bot": "assistant"}``; they win.
            on_block: called with a copy of every block of a content that is no text; returns a
                block, or a text, to put in its place. It must depend on its block alone.
            keep_source: keep the fields that the messages are made of, too.
            fingerprint: what a checkpoint knows ``on_block`` by, as for ``map_transform``.
            placement: "auto" or "local".
            parallelism: workers that may do it at once, 4 if not given.

        Raises:
            TypeError: ``on_block`` cannot be called, or gives a coroutine or generator.
            PlanError: another argument cannot be, or rows are packed already.
        """
        call = "normalize_chat"
        check_placement(call, placement)
        check_fingerprint(call, fingerprint)
        self._refuse_after(call, Pack, logical.Batch)
        if on_block is not None:
            check_function(call, on_block, "on_block")
        elif fingerprint is not None:
            raise PlanError(f"{call}: fingerprint is of on_block; pass both, or neither")
        return self._add(
            logical.NormalizeChat(
                input=self._node,
                format=format,
                field=field,
                field_out=field_out,
                roles=_words(call, roles),
                on_block=None
                if on_block is None
                else logical.RowFunction(function=on_block, fingerprint=fingerprint),
                keep_source=keep_source,
                parallelism=4 if parallelism is None else whole(parallelism),
            )
        )

    def expand_chat(
        self,
        *,
        field: str = "messages",
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Make a row of each user turn that was answered: the conversation up to the next one.

        Several rows of one conversation are its children, numbered by the user turn. A conversation
        in which nothing is answered is dropped.

        Args:
            field: the messages; a dotted path reaches into nested rows.
            placement: "auto" or "local".
            parallelism: workers that may do it at once, 4 if not given.

        Raises:
            PlanError: an argument cannot be, or rows are packed already.
        """
        check_placement("expand_chat", placement)
        self._refuse_after("expand_chat", Pack, logical.Batch)
        return self._add(
            logical.ExpandChat(
                input=self._node,
                field=field,
                parallelism=4 if parallelism is None else whole(parallelism),
            )
        )


def _words(call: str, roles: object) -> tuple[tuple[str, str], ...]:
    """Give pairs in an order of their own."""
    if roles is None:
        return ()
    if not isinstance(roles, Mapping):
        raise WrongKindError(
            f"{call}: roles must be a dict of words and their roles, got {roles!r:.80}; pass one, "
            "as {'bot': 'assistant'}"
        )
    odd = [word for word in roles if not isinstance(word, str) or not word]
    if odd:
        raise PlanError(f"{call}: roles must have words as keys, got {odd[0]!r:.80}; write a text")
    return tuple(sorted(roles.items()))
