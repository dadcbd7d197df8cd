"""What runs: segments of stateless steps, a policy, an assembly; frozen nodes again."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.io.fields import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRows:
    """Read columns, and whole rows if ``payload``, for references; a step of a segment."""

    columns: tuple[Column, ...]
    payload: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeColumn:
    """Encode a text column into ``input_ids``; a step of a segment.

    keep_mask: write an ``attention_mask`` column. keep_payload: hand whole rows on.
    """

    tokenizer: object | None
    tokenizer_id: str | None
    split_special_tokens: bool
    field: str
    special_tokens: str
    bos_token_id: int | None
    eos_token_id: int | None
    max_length: int | None
    truncation: bool
    split_long_samples: bool
    padding: str
    keep_mask: bool
    keep_payload: bool


Step = FetchRows | TokenizeColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNode:
    """One stage of the running plan; ``input`` is the stage below."""

    input: PhysicalNode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(PhysicalNode):
    """Stateless steps that run as one task over a block of references.

    parallelism: tasks that may run at once; never reaches a step.
    """

    steps: tuple[Step, ...]
    parallelism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """Which fields a row has, and where they come from.

    tokens_field: holds the tokens; None: rows are whole source rows. aligned: further columns
    with one value a token. masks: fields that are 1 on tokens and 0 on padding, written when
    looked at. packed: rows are made of pieces of documents. pad_token_id: None: the tokenizer's.
    """

    tokens_field: str | None
    aligned: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    positions: bool = False
    packed: bool = False
    pad_token_id: int | None = None
    payload: bool = False
    container: str = "list"
    pad_to_longest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceEach(PhysicalNode):
    """Every document is a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceWrap(PhysicalNode):
    """Rows of ``max_length`` tokens out of one stream."""

    max_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleRows(PhysicalNode):
    """Gather each placed row into a buffer of its own."""

    layout: RowLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRows(PhysicalNode):
    """Copy ``microbatch_size`` gathered rows into one batch buffer."""

    microbatch_size: int
    drop_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleBatch(PhysicalNode):
    """Gather placed rows straight into the batch buffer: each token is copied once."""

    layout: RowLayout
    microbatch_size: int
    drop_last: bool
