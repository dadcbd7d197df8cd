"""Text becomes tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.errors import NotYetError, PlanError
from zephon.io.fields import TOKENS, Column, Field
from zephon.planner.logical.node import Node, at_least, flags, one_of

SPECIAL_TOKENS = ("bos_eos", "bos", "eos", "none", "tokenizer_default")
PADDINGS = ("none", "longest", "max_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakesTokens(Node):
    """After this step, rows have tokens in ``input_ids``, and perhaps columns aligned with them."""

    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "tokenizer", "tokenizer_id"})
    tokenizer: object | None = None
    tokenizer_id: str | None = None
    preserve_upstream_payload: bool = False

    def held_in(self) -> str:
        """What records hold tokens in: "list", "np" or "pt"."""
        raise NotImplementedError

    def written(self) -> tuple[tuple[str, str], ...]:
        """Columns beside the ids that are built, each a name and a kind of ``zephon.io.fields``."""
        raise NotImplementedError

    def implied(self) -> tuple[str, ...]:
        """Fields that are 1 on every token, so that no column of them is built."""
        return ()

    def keeps_payload(self) -> bool:
        """Only when asked to."""
        return self.preserve_upstream_payload

    def token_fields(self) -> tuple[str, ...]:
        """The ids, what is written beside them, and what is implied."""
        return ("input_ids", *(name for name, _ in self.written()), *self.implied())

    def fields(self) -> tuple[Field, ...]:
        """Token fields, after the kept payload."""
        made = {"input_ids": Field("input_ids", "tokens", TOKENS)}
        for name, kind in self.written():
            what = "tokens" if kind == "int32" else "numbers"
            made[name] = Field(name, what, Column(name, kind).type)
        made |= {name: Field(name, "tokens", TOKENS) for name in self.implied()}
        below = super(MakesTokens, self).fields() if self.preserve_upstream_payload else ()
        return (*(field for field in below if field.name not in made), *made.values())

    def knows_all_fields(self) -> bool:
        """Where nothing else is kept."""
        return not self.preserve_upstream_payload or super(MakesTokens, self).knows_all_fields()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenize(MakesTokens):
    """Encode a text field; a document longer than ``max_length`` may become several rows.

    mask_implied: the attention mask follows from lengths alone, so no column of it is built.
    """

    call: ClassVar[str] = "tokenize"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "use_fast", "mask_implied"})
    field: str
    missing_field: str = "error"
    add_attention_mask: bool = True
    max_length: int | None = None
    padding: str = "none"
    truncation: bool = False
    return_tensors: str | None = None
    split_long_samples: bool = False
    split_special_tokens: bool = False
    use_fast: bool = True
    special_tokens: str = "bos_eos"
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    parallelism: int = 4
    mask_implied: bool = False

    def __post_init__(self) -> None:
        flags(
            "tokenize", self, "add_attention_mask", "truncation", "split_long_samples",
            "split_special_tokens", "use_fast", "preserve_upstream_payload",
        )  # fmt: skip
        one_of("tokenize", "missing_field", self.missing_field, ("error", "empty"))
        one_of("tokenize", "special_tokens", self.special_tokens, SPECIAL_TOKENS)
        one_of("tokenize", "padding", self.padding, PADDINGS)
        at_least("tokenize", "parallelism", self.parallelism, 1)
        if not isinstance(self.field, str) or not self.field:
            raise PlanError(f"tokenize: field must be a column name, got {self.field!r}")
        if self.return_tensors == "tf":
            raise NotYetError("tokenize: return_tensors='tf' is not there yet; use 'np' or 'pt'")
        if self.return_tensors not in (None, "np", "pt"):
            raise PlanError(
                f"tokenize: return_tensors must be None, 'np' or 'pt', got {self.return_tensors!r}"
            )
        self._check_lengths()
        self._check_ids()

    def _check_lengths(self) -> None:
        if self.max_length is not None:
            at_least("tokenize", "max_length", self.max_length, 1)
        wants = [
            name
            for name, on in (
                ("split_long_samples=True", self.split_long_samples),
                ("padding='max_length'", self.padding == "max_length"),
                ("truncation=True", self.truncation),
            )
            if on
        ]
        if wants and self.max_length is None:
            raise PlanError(f"tokenize: {wants[0]} needs max_length; pass one")
        if self.split_long_samples and self.truncation:
            raise PlanError(
                "tokenize: split_long_samples keeps every token and truncation drops some; "
                "choose one of them"
            )
        brackets = {"bos_eos": 2, "bos": 1, "eos": 1}.get(self.special_tokens, 0)
        if self.truncation and self.max_length is not None and self.max_length < brackets:
            raise PlanError(
                f"tokenize: truncation to max_length={self.max_length} leaves no room for the "
                f"{brackets} special tokens of special_tokens={self.special_tokens!r}; raise "
                "max_length, or pass special_tokens='none'"
            )

    def _check_ids(self) -> None:
        for name in ("bos_token_id", "eos_token_id"):
            value = getattr(self, name)
            if value is None:
                continue
            at_least("tokenize", name, value, 0)
            if self.special_tokens in ("none", "tokenizer_default"):
                raise PlanError(
                    f"tokenize: {name}={value} has no place under "
                    f"special_tokens={self.special_tokens!r}; use 'bos_eos', 'bos' or 'eos'"
                )

    def keeps_rows(self) -> bool:
        """Unless long documents are split."""
        return not self.split_long_samples

    def reads(self) -> tuple[Column, ...]:
        """The text column."""
        return (Column(path=self.field, kind="text", missing=self.missing_field),)

    def held_in(self) -> str:
        """Lists, unless other containers are asked for."""
        return self.return_tensors or "list"

    def written(self) -> tuple[tuple[str, str], ...]:
        """The attention mask, where it has zeros."""
        return (("attention_mask", "int32"),) if self._has_mask(implied=False) else ()

    def implied(self) -> tuple[str, ...]:
        """The attention mask, where it has none."""
        return ("attention_mask",) if self._has_mask(implied=True) else ()

    def _has_mask(self, *, implied: bool) -> bool:
        return self.add_attention_mask and self.mask_implied == implied
