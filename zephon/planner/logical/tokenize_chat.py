"""Conversations become tokens, and a mask of those that a model is to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.errors import PlanError
from zephon.planner.logical.node import at_least, field_name, flags, one_of
from zephon.planner.logical.tokenize import MakesTokens

SPAN_SOURCES = ("auto", "generation_tags", "prefix_diff", "substitution")
LOSS_SCOPES = ("all_assistant", "last_span", "after_last_user")
ENDS = ("eos", "bos_eos", "bos", "none")
NULL_FIELDS = ("drop", "keep")
_TAKEN = ("input_ids", "positions", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeChat(MakesTokens):
    """Render each conversation, encode the text, and mask what the assistant says.

    templates: name and text: of one for all rows, or of one for those without tools and one for the
    others; () where contents are joined without any. special_texts: role and text, or texts, of the
    tokenizer's special tokens, which templates see. template_digest: of both. template_kwargs:
    further variables of templates, as JSON. eos_token: text of the token that ends a row and,
    without a template, a turn; None: the tokenizer's. The other fields are those of the call.
    """

    call: ClassVar[str] = "tokenize_chat"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    told_elsewhere: ClassVar[frozenset[str]] = frozenset(
        {"input", "tokenizer", "tokenizer_id", "templates", "special_texts"}
    )
    field: str = "messages"
    max_length: int | None = None
    templates: tuple[tuple[str, str], ...] = ()
    special_texts: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    template_digest: str = ""
    template_kwargs: str = "{}"
    span_source: str = "auto"
    loss_scope: str = "all_assistant"
    tools_field: str | None = "tools"
    enable_thinking_field: str | None = "enable_thinking"
    mask_field_out: str = "loss_mask"
    special_tokens: str = "eos"
    eos_token: str | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    supervise_header: bool = False
    loss_weights: bool = False
    null_fields: str = "drop"
    parallelism: int = 4

    def __post_init__(self) -> None:
        call = "tokenize_chat"
        flags(call, self, "supervise_header", "loss_weights", "preserve_upstream_payload")
        one_of(call, "span_source", self.span_source, SPAN_SOURCES)
        one_of(call, "loss_scope", self.loss_scope, LOSS_SCOPES)
        one_of(call, "special_tokens", self.special_tokens, ENDS)
        one_of(call, "null_fields", self.null_fields, NULL_FIELDS)
        at_least(call, "parallelism", self.parallelism, 1)
        for name in ("field", "mask_field_out"):
            field_name(call, name, getattr(self, name))
        for name in ("tools_field", "enable_thinking_field"):
            if getattr(self, name) is not None:
                field_name(call, name, getattr(self, name))
        if self.mask_field_out in _TAKEN:
            raise PlanError(
                f"{call}: mask_field_out={self.mask_field_out!r} is the name of something else; "
                "pass another name; packing and to_training go by 'loss_mask'"
            )
        if self.max_length is not None:
            at_least(call, "max_length", self.max_length, 2)
        for name in ("bos_token_id", "eos_token_id"):
            if getattr(self, name) is not None:
                at_least(call, name, getattr(self, name), 0)
                self._check_end(name)
        if self.eos_token is not None and self.eos_token_id is not None:
            raise PlanError(f"{call}: eos_token and eos_token_id name the same token; pass one")
        if self.eos_token is not None and self.tokenizer is not None:
            raise PlanError(
                f"{call}: eos_token works with tokenizer_id only; set the token on the tokenizer "
                "object, or pass eos_token_id"
            )
        if not self.templates and self.span_source != "auto":
            raise PlanError(
                f"{call}: without a template there is but one way to find what the assistant says; "
                f"leave span_source={self.span_source!r} out, or apply a template"
            )
        if self.supervise_header and self.span_source == "generation_tags":
            raise PlanError(
                f"{call}: with span_source='generation_tags' the template says what is learned; "
                "leave supervise_header out, or pass span_source='prefix_diff'"
            )

    def _check_end(self, name: str) -> None:
        if name.removesuffix("_token_id") not in self.special_tokens:
            raise PlanError(
                f"tokenize_chat: {name}={getattr(self, name)} has no place under "
                f"special_tokens={self.special_tokens!r}; use 'bos_eos', or leave it out"
            )

    def keeps_rows(self) -> bool:
        """Never: a conversation of which nothing is learned is dropped."""
        return False

    def sees_rows(self) -> bool:
        """Always: messages have no single type."""
        return True

    def held_in(self) -> str:
        """NumPy arrays."""
        return "np"

    def written(self) -> tuple[tuple[str, str], ...]:
        """The mask, or the weights."""
        return ((self.mask_field_out, "float32" if self.loss_weights else "uint8"),)
