"""What runs: segments of stateless steps, policies, an assembly; frozen nodes again.

The file is long because every physical node stands here, as a few fields and what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zephon.column_steps import ColumnStep, Expression
from zephon.io.fields import Column
from zephon.planner.logical.custom import CustomOp, Stateful
from zephon.planner.logical.functions import RowStep
from zephon.planner.logical.tokenize_chat import TokenizeChat


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRows:
    """Read columns, and whole rows if ``payload``, for references; a step of a segment.

    frame: columns of kind "any", for expressions. predicates: rows for which one is not true are
    dropped, before their other columns count. late_faults: a bad row is no error yet: later steps
    filter. limit: rows of a lane that can be needed; None: all.
    """

    columns: tuple[Column, ...]
    payload: bool
    frame: tuple[Column, ...] = ()
    predicates: tuple[Expression, ...] = ()
    late_faults: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How whole rows look after column steps: the row below without some fields, others renamed,
    and computed fields over it.

    below: there is a row below; else the computed fields are all. gone: fields of it that are left
    out. renamed: (old, new) pairs of those that stay. computed: columns of the frame.
    """  # noqa: D205

    below: bool
    gone: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    computed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeColumns:
    """Run column steps on the frame; a step of a segment.

    keep: columns of the frame that later steps use. shape: how whole rows look afterwards; None:
    nobody needs them. tokens: columns that tokenize made, put into the frame first. moved: typed
    columns whose path means something else afterwards, each with its new path; None: it has none.
    movable: no function has run before, so what is filtered here might have been filtered while
    reading. late_faults: as of ``FetchRows``.
    """

    steps: tuple[ColumnStep, ...]
    keep: tuple[str, ...]
    shape: Shape | None
    tokens: tuple[str, ...] = ()
    moved: tuple[tuple[str, str | None], ...] = ()
    movable: bool = True
    late_faults: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeColumns:
    """Make columns of the kinds that later steps read; a step of a segment.

    columns: each is taken from the frame where that has it, else from whole rows. keep_payload:
    hand whole rows on.
    """

    columns: tuple[Column, ...]
    keep_payload: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRows:
    """Call functions on whole rows, one after the other; a step of a segment.

    calls: what was called: each a node without its input. token_fields, masks, container: what
    earlier steps made as columns, and what rows hold it in.
    """

    calls: tuple[RowStep, ...]
    token_fields: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    container: str = "list"

    @property
    def parallelism(self) -> int:
        """Threads that may be inside at once: what the narrowest call allows."""
        return min(call.parallelism for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroups:
    """Call an operator of the user on the rows of each 64 draws; a step of a segment.

    op: without its input. The other fields are those of ``CallRows``.
    """

    op: CustomOp
    token_fields: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    container: str = "list"

    @property
    def parallelism(self) -> int:
        """Threads that may be inside at once."""
        return self.op.parallelism


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeConversation:
    """Render conversations and encode them, with a mask of what is learned; a step of a segment.

    node: what was called, without its input.
    """

    node: TokenizeChat

    @property
    def tokenizer(self) -> object | None:
        """The object, if one was given."""
        return self.node.tokenizer

    @property
    def tokenizer_id(self) -> str | None:
        """Or where it is."""
        return self.node.tokenizer_id

    @property
    def split_special_tokens(self) -> bool:
        """Never: templates write them."""
        return False

    @property
    def special_tokens(self) -> str:
        """Which stand at the ends of a row."""
        return self.node.special_tokens


MakesTokens = TokenizeColumn | TokenizeConversation


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRows:
    """Let a function of the user, or the length of a field, measure each row; a step of a segment.

    name: "length", a whole number that packing goes by; or "weight", a float that a mixture goes
    by. function: takes a row as a dict; None: ``field`` is measured. token_fields, masks,
    container: what of the dict earlier steps made, and what it is held in.
    """

    name: str
    function: Callable[[Any], Any] | None
    field: str | None
    token_fields: tuple[str, ...]
    masks: tuple[str, ...]
    container: str


Step = (
    FetchRows
    | ComputeColumns
    | TypeColumns
    | CallRows
    | CallGroups
    | TokenizeColumn
    | TokenizeConversation
    | MeasureRows
)


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

    tokens_field: holds the tokens; None: rows are whole source rows.
    aligned, aligned_kinds: further columns with one value a token, and the kind of each.
    masks: fields that are 1 on tokens and 0 on padding, written when looked at.
    max_length: tokens of a row at most; None: it is not known, since something else counts.
    packing: "flat", documents end to end and padding up to ``max_length``; "sequences",
        documents side by side; "none", every document is a row.
    pad_token_id: None: the tokenizer's.
    pack_payloads: what becomes of a row's documents under "sequences".
    max_document: a longer document is a bad row of ``max_document_call``; None: it is not.
    payload: rows hold the whole rows that they come from. metas: these say who they are.
    """

    tokens_field: str | None
    aligned: tuple[str, ...] = ()
    aligned_kinds: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    positions: bool = False
    packing: str = "none"
    max_length: int | None = None
    pad_token_id: int | None = None
    pack_payloads: Callable[[list[Any]], Any] | str | None = None
    max_document: int | None = None
    max_document_call: str = "pack_flat"
    payload: bool = False
    metas: bool = False
    container: str = "list"
    pad_to_longest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSplits(PhysicalNode):
    """All splits of a source row are one unit to the policies above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSplits(PhysicalNode):
    """Every split is a unit again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleUnits(PhysicalNode):
    """Put documents, or rows, in random order: a reservoir, or blocks of ``buffer_size``.

    stage: how many calls before it reorder.
    """

    algorithm: str
    buffer_size: int
    seed: int
    warmup_growth: float
    stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepMixture(PhysicalNode):
    """Reorder documents, or rows, so that the mixture is kept as closely as the buffer allows.

    weight_by: "tokens", "samples", or "weight", which a step measured. mixture: target by
    component; None: the work source's.
    """

    max_buffer_size: int | None
    drain_target_ratio: float
    obsolete_drain_rate: float
    weight_by: str
    warn_tolerance: float | None
    mixture: tuple[tuple[str, float], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderWindows(PhysicalNode):
    """Reorder each window of documents before packing: "random", or by "length".

    by_length: the measure "length" counts, not tokens. stage: how many calls before it reorder.
    """

    order: str
    seed: int
    stage: int
    by_length: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRows(PhysicalNode):
    """Lay documents into rows of ``max_length`` tokens.

    by_length: the measure "length" counts, not tokens. domains: sets of components that share no
    row; None: all may. The other fields are those of the call.
    """

    algorithm: str
    max_length: int
    num_bins: int | None = None
    max_sequences_per_bin: int | None = None
    min_sequence_length: int = 1
    flush_strategy: str = "fifo"
    candidate_pool_size: int | None = None
    max_candidate_age: int | None = None
    by_length: bool = False
    domains: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInOrder(PhysicalNode):
    """Give the rows below, in the order of their lane and 64 at a time, to an operator of the user.

    What it returns are the rows that the segment above begins with. op: without its input.
    layout: of the rows below. every: groups after which what it remembers is flushed and begun
    anew; 1: it remembers nothing; 0: it writes its memory down itself.
    """

    op: CustomOp | Stateful | RowStep
    layout: RowLayout
    every: int


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
