"""The call that makes tokens of conversations."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, Self

from zephon.errors import PlanError, WrongKindError
from zephon.planner import logical
from zephon.planner.logical.pack import Pack
from zephon.steps.description import Description, check_placement, path_text, whole

_CONTROLS = (
    "messages", "conversation", "tools", "add_generation_prompt",
    "continue_final_message", "tokenize", "return_dict", "return_tensors", "truncation", "padding",
    "max_length", "return_assistant_tokens_mask", "chat_template", "tokenizer_kwargs",
)  # fmt: skip


class ChatSteps(Description):
    """Conversations become tokens."""

    def tokenize_chat(
        self,
        tokenizer: object | None = None,
        tokenizer_id: str | None = None,
        *,
        eos_token: str | None = None,
        field: str = "messages",
        max_length: int | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        apply_chat_template: bool = True,
        span_source: str = "auto",
        loss_scope: str | None = None,
        loss_on_last_turn_only: bool | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        tools_field: str | None = "tools",
        enable_thinking_field: str | None = "enable_thinking",
        mask_field_out: str = "loss_mask",
        preserve_upstream_payload: bool = False,
        special_tokens: str = "eos",
        bos_token_id: int | None = None,
        eos_token_id: int | None = None,
        supervise_header: bool = False,
        loss_weights: bool = False,
        null_fields: str = "drop",
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Render conversations, encode them into ``input_ids``, and mask what is learned.

        The mask has 1 on tokens that the assistant says, among them the one that ends its turn. A
        token that lies partly outside counts as inside. A conversation of which nothing is learned,
        or of fewer than two tokens, is dropped and counted. Messages reach the template as they
        were written; it runs in a sandbox, and what it does is bounded.

        Args:
            tokenizer: a tokenizer object of ``tokenizers`` or ``transformers``.
            tokenizer_id: a directory with a tokenizer.json and, as a rule, chat templates.
            eos_token: text of the special token to use as the tokenizer's EOS.
            field: the messages, each a dict with a role; a dotted path reaches into nested rows.
            max_length: tokens of a row at most; what is longer is cut, its mask with it.
            chat_template: Jinja text, a file of it, or the name of one of the tokenizer's; None: of
                these "tool_use" for rows with tools, if it is there, else "default".
            apply_chat_template: False: contents are joined as they are, EOS after the assistant's.
            span_source: how to find what the assistant says: "generation_tags" of the template,
                "prefix_diff" (renders of growing prefixes), "substitution" (renders with one answer
                replaced), or "auto": the first of these that works.
            loss_scope: "all_assistant" if not given; "last_span", the last run of tokens;
                or "after_last_user".
            loss_on_last_turn_only: the old word for ``loss_scope="last_span"``.
            chat_template_kwargs: further variables of the template, of JSON values.
            tools_field: a row's tools; None: no row has any.
            enable_thinking_field: a row's ``enable_thinking``; None: no row has it.
            mask_field_out: the mask's name; packing and ``to_training`` go by "loss_mask".
            preserve_upstream_payload: keep the row's other fields.
            special_tokens: what stands at the ends of a row once, whether the template writes it or
                not: "eos", "bos", "bos_eos" or "none".
            bos_token_id: instead of the tokenizer's own.
            eos_token_id: instead of the tokenizer's own.
            supervise_header: learn also what introduces an answer, such as its role.
            loss_weights: the mask is float32, and a message's ``loss_weight`` is its value.
            null_fields: "drop" or "keep" keys of messages and tools that are null in a Parquet
                dataset, where all rows have the keys of all others.
            placement: "auto" or "local".
            parallelism: tasks that may run at once, 4 if not given.

        Raises:
            PlanError: an argument cannot be, or the template is no Jinja.
            TokenizerError: there is no template.
        """
        call = "tokenize_chat"
        check_placement(call, placement)
        self._refuse_after(call, logical.MakesTokens, Pack, logical.Batch)
        scope = _scope(loss_scope, loss_on_last_turn_only)
        tokenizer_id = None if tokenizer is not None else path_text(call, tokenizer_id)
        if tokenizer is None and tokenizer_id is None:
            raise PlanError(
                f"{call}: which tokens a conversation has is up to a tokenizer; pass tokenizer_id "
                "or tokenizer"
            )
        if not isinstance(apply_chat_template, bool):
            raise PlanError(
                f"{call}: apply_chat_template must be True or False, got {apply_chat_template!r}; "
                "pass one"
            )
        templates: tuple[tuple[str, str], ...] = ()
        texts: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
        if apply_chat_template:
            templates, texts = self._runs().chat_templates(tokenizer, tokenizer_id, chat_template)
        elif chat_template is not None:
            raise PlanError(
                f"{call}: chat_template means nothing with apply_chat_template=False; leave one out"
            )
        node = logical.TokenizeChat(
            input=self._node,
            tokenizer=tokenizer,
            tokenizer_id=tokenizer_id,
            eos_token=eos_token,
            field=field,
            max_length=whole(max_length),
            templates=templates,
            special_texts=texts,
            template_digest=self._runs().digest([[text for _, text in templates], texts]),
            template_kwargs=_variables(chat_template_kwargs),
            span_source=span_source,
            loss_scope=scope,
            tools_field=tools_field or None,
            enable_thinking_field=enable_thinking_field or None,
            mask_field_out=mask_field_out,
            preserve_upstream_payload=preserve_upstream_payload,
            special_tokens=special_tokens,
            bos_token_id=whole(bos_token_id),
            eos_token_id=whole(eos_token_id),
            supervise_header=supervise_header,
            loss_weights=loss_weights,
            null_fields=null_fields,
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        if templates:
            _check_spans(node, tagged=self._runs().is_tagged(node))
        return self._add(node)


def _scope(scope: str | None, last_turn_only: bool | None) -> str:
    if last_turn_only is None:
        return "all_assistant" if scope is None else scope
    if scope is not None:
        raise PlanError(
            "tokenize_chat: loss_scope and loss_on_last_turn_only say the same; pass loss_scope"
        )
    warnings.warn(
        "tokenize_chat: loss_on_last_turn_only is the old word for loss_scope='last_span'; pass "
        "that",
        FutureWarning,
        stacklevel=4,  # the caller of the pipeline's method
    )
    return "last_span" if last_turn_only else "all_assistant"


def _variables(given: Mapping[str, Any] | None) -> str:
    """Write further variables of templates as JSON."""
    if given is None:
        return "{}"
    if not isinstance(given, Mapping):
        raise WrongKindError(
            f"tokenize_chat: chat_template_kwargs must be a dict, got {given!r:.80}; pass one, "
            "of names and JSON values"
        )
    for name in given:
        if not isinstance(name, str):  # JSON would make a text of it
            raise WrongKindError(
                f"tokenize_chat: chat_template_kwargs must have names as its keys, got {name!r}; "
                "write a str"
            )
        if name in _CONTROLS:
            raise PlanError(
                f"tokenize_chat: chat_template_kwargs cannot set {name!r}, which is said "
                "elsewhere; leave it out"
            )
    try:
        return json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise PlanError(
            f"tokenize_chat: chat_template_kwargs must hold JSON values, since they are part of "
            f"the recipe: {exc}"
        ) from exc


def _check_spans(node: logical.TokenizeChat, *, tagged: bool) -> None:
    """Refuse what no template of the call can say, and warn where it must be found out."""
    if node.span_source == "generation_tags" and not tagged:
        raise PlanError(
            "tokenize_chat: span_source='generation_tags' needs a template with {% generation %}, "
            "and this one has none; pass span_source='auto'"
        )
    if tagged or node.span_source != "auto":
        return
    if node.loss_scope == "after_last_user":
        raise PlanError(
            "tokenize_chat: loss_scope='after_last_user' needs a template with {% generation %}; "
            "pass span_source='prefix_diff' or 'substitution' to do without"
        )
    warnings.warn(
        "tokenize_chat: the template marks nothing with {% generation %}, so what the assistant "
        "says is found by rendering parts of conversations; pass span_source='prefix_diff' or "
        "'substitution' to choose, and to be told no more",
        UserWarning,
        stacklevel=4,  # the caller of the pipeline's method
    )
