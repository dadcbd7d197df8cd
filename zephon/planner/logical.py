"""A pipeline is a chain of frozen nodes: one a call, source at the bottom, each holding its input.

A node holds what the call said and checks it; what rules must know about a node is a fact on its
class. ``how`` names the fields that change speed alone: they are no part of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.errors import NotYetError, PlanError, nearest
from zephon.io.fields import Column, Field

TOKEN_FIELDS = ("input_ids", "tokens", "token_ids", "ids")
SPECIAL_TOKENS = ("bos_eos", "bos", "eos", "none", "tokenizer_default")
PADDINGS = ("none", "longest", "max_length")
ALGORITHMS = ("wrap", "first_fit", "best_fit", "best_fit_wrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a pipeline; ``input`` is the step below, None at the source."""

    call: ClassVar[str]  # the public call that makes this node
    reorders: ClassVar[bool] = False
    how: ClassVar[frozenset[str]] = frozenset()
    input: Node | None = None

    def reads(self) -> tuple[Column, ...]:
        """Columns of the source's rows that this step uses."""
        return ()

    def keeps_rows(self) -> bool:
        """Whether one row leaves for each row that comes."""
        return True

    def keeps_payload(self) -> bool:
        """Whether whole source rows pass through this step."""
        return True

    def outputs(self) -> tuple[str, ...]:
        """Names of the fields that leave this step."""
        return () if self.input is None else self.input.outputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadComponent:
    """What is known of one component before a row is read.

    share: normalized weight. fields_complete: no row has other fields than ``fields``.
    """

    name: str
    dataset: str
    share: float
    shards: int
    rows: int
    bytes: int
    fields: tuple[Field, ...]
    fields_complete: bool
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Node):
    """Read rows of the mixture, in the order of the work source.

    columns: typed columns to read; None: nobody has asked yet, so whole rows are read too.
    payload: whole rows are read.
    """

    call: ClassVar[str] = "Pipeline"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "max_batch", "columns", "payload"})
    components: tuple[ReadComponent, ...]
    columns: tuple[Column, ...] | None = None
    payload: bool = True
    parallelism: int = 4
    max_batch: int = 64

    def __post_init__(self) -> None:
        _at_least("fetch_parallelism", "parallelism", self.parallelism, 1)
        _at_least("fetch_parallelism", "max_batch", self.max_batch, 1)

    def outputs(self) -> tuple[str, ...]:
        """Fields of all components, in order of first appearance."""
        return tuple(dict.fromkeys(f.name for c in self.components for f in c.fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch(Node):
    """Warm the shard cache ahead of reading; moves no row."""

    call: ClassVar[str] = "prefetch"
    how: ClassVar[frozenset[str]] = frozenset({"buffer_size", "parallelism"})
    buffer_size: int = 1024
    parallelism: int = 4

    def __post_init__(self) -> None:
        _at_least("prefetch", "buffer_size", self.buffer_size, 1)
        _at_least("prefetch", "parallelism", self.parallelism, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenize(Node):
    """Encode a text field; a document longer than ``max_length`` may become several rows.

    mask_implied: the attention mask follows from lengths alone, so no column of it is built.
    """

    call: ClassVar[str] = "tokenize"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "use_fast", "mask_implied"})
    tokenizer: object | None
    tokenizer_id: str | None
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
    preserve_upstream_payload: bool = False
    special_tokens: str = "bos_eos"
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    parallelism: int = 4
    mask_implied: bool = False

    def __post_init__(self) -> None:
        _one_of("tokenize", "missing_field", self.missing_field, ("error", "empty"))
        _one_of("tokenize", "special_tokens", self.special_tokens, SPECIAL_TOKENS)
        _one_of("tokenize", "padding", self.padding, PADDINGS)
        _at_least("tokenize", "parallelism", self.parallelism, 1)
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
            _at_least("tokenize", "max_length", self.max_length, 1)
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
                f"{brackets} special tokens of special_tokens={self.special_tokens!r}"
            )

    def _check_ids(self) -> None:
        for name in ("bos_token_id", "eos_token_id"):
            value = getattr(self, name)
            if value is None:
                continue
            _at_least("tokenize", name, value, 0)
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

    def keeps_payload(self) -> bool:
        """Only when asked to."""
        return self.preserve_upstream_payload

    def outputs(self) -> tuple[str, ...]:
        """Token fields, after the kept payload."""
        below = super(Tokenize, self).outputs() if self.preserve_upstream_payload else ()
        made = ("input_ids", "attention_mask") if self.add_attention_mask else ("input_ids",)
        return tuple(dict.fromkeys((*below, *made)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFlat(Node):
    """Lay documents end to end into rows of exactly ``max_length`` tokens.

    tokens_field: the field that holds the tokens; resolved, never "auto".
    """

    call: ClassVar[str] = "pack_flat"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    max_length: int
    algorithm: str
    tokens_field: str
    num_bins: int | None = None
    max_sequences_per_bin: int | None = None
    drop_oversized: bool | None = None
    min_sequence_length: int = 1
    shuffle_strategy: str | None = None
    shuffle_seed: int | None = None
    flush_strategy: str = "fifo"
    candidate_pool_size: int | None = None
    max_candidate_age: int | None = None
    homogeneity: str = "none"
    groups: object | None = None
    pad_token_id: int | None = None
    emit_positions: bool = True
    parallelism: int = 4

    def __post_init__(self) -> None:
        _at_least("pack_flat", "max_length", self.max_length, 1)
        _one_of("pack_flat", "algorithm", self.algorithm, ALGORITHMS)
        if self.algorithm != "wrap":
            raise NotYetError(
                f"pack_flat: algorithm={self.algorithm!r} is not there yet; use algorithm='wrap'"
            )
        _one_of("pack_flat", "flush_strategy", self.flush_strategy, ("fifo", "fullest"))
        _one_of("pack_flat", "homogeneity", self.homogeneity, ("none", "full", "group"))
        if self.shuffle_strategy is not None:
            _one_of("pack_flat", "shuffle_strategy", self.shuffle_strategy, ("random", "length"))
        _at_least("pack_flat", "min_sequence_length", self.min_sequence_length, 0)
        _at_least("pack_flat", "parallelism", self.parallelism, 1)
        if self.pad_token_id is not None:
            _at_least("pack_flat", "pad_token_id", self.pad_token_id, 0)
        self._check_wrap()

    def _check_wrap(self) -> None:
        """Refuse what has no place under ``wrap``, and what is not there yet."""
        for name in ("num_bins", "candidate_pool_size", "max_candidate_age"):
            if getattr(self, name) is not None:
                raise PlanError(
                    f"pack_flat: {name}={getattr(self, name)!r} has no meaning under "
                    "algorithm='wrap', which keeps one open row; leave it out"
                )
        if self.drop_oversized:
            raise PlanError(
                "pack_flat: drop_oversized=True has no meaning under algorithm='wrap', which cuts "
                "long documents; leave it out"
            )
        if self.groups is not None and self.homogeneity != "group":
            raise PlanError("pack_flat: groups needs homogeneity='group'")
        later = {
            "max_sequences_per_bin": None, "shuffle_strategy": None, "homogeneity": "none",
        }  # fmt: skip
        for name, neutral in later.items():
            if getattr(self, name) != neutral:
                raise NotYetError(
                    f"pack_flat: {name}={getattr(self, name)!r} is not there yet; leave it out"
                )

    def keeps_rows(self) -> bool:
        """Never: rows are cut out of the stream."""
        return False

    def reads(self) -> tuple[Column, ...]:
        """The token column, where it comes from the source."""
        if any(isinstance(node, Tokenize) for node in _below(self)):
            return ()
        return (Column(path=self.tokens_field, kind="tokens"),)

    def keeps_payload(self) -> bool:
        """A packed row is no source row."""
        return False

    def outputs(self) -> tuple[str, ...]:
        """The token field, fields of the same length, positions."""
        mask = ("attention_mask",) if "attention_mask" in self._made_below() else ()
        return (self.tokens_field, *mask, *(("positions",) if self.emit_positions else ()))

    def _made_below(self) -> tuple[str, ...]:
        return next(
            (node.outputs() for node in _below(self) if isinstance(node, Tokenize)),
            (),
        )

    def left_out(self) -> tuple[str, ...]:
        """Fields that reach this step and are in no packed row."""
        below = () if self.input is None else self.input.outputs()
        return tuple(name for name in below if name not in self.outputs())


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Node):
    """Put ``microbatch_size`` rows together."""

    call: ClassVar[str] = "batch"
    how: ClassVar[frozenset[str]] = frozenset({"microbatch_size"})
    microbatch_size: int
    drop_last: bool = True

    def __post_init__(self) -> None:
        _at_least("batch", "microbatch_size", self.microbatch_size, 1)


def find_token_field(below: Node, asked: str) -> str:
    """Say which field holds the tokens that ``below`` delivers.

    Args:
        below: the step under the one that packs.
        asked: a field's name, or "auto": the first of ``TOKEN_FIELDS`` that is there.

    Raises:
        PlanError: there is none, or it does not hold lists of integers.
    """
    known = below.outputs()
    made = any(isinstance(node, Tokenize) for node in (below, *_below(below)))
    if asked == "auto":
        found = next((name for name in TOKEN_FIELDS if name in known), None)
        if found is None:
            raise PlanError(
                f"pack_flat: no token field ({', '.join(TOKEN_FIELDS)}); the fields are "
                f"{', '.join(known) or 'unknown'}; call tokenize first, or name tokens_field"
            )
        asked = found
    if made:
        if asked != "input_ids":
            raise PlanError(f"pack_flat: tokens_field must be 'input_ids', got {asked!r}")
        return asked
    check_reads((Column(path=asked, kind="tokens"),), below, "pack_flat")
    return asked


def check_reads(columns: tuple[Column, ...], below: Node, call: str) -> None:
    """Refuse columns that a component is known not to have, or to have with another type.

    Raises:
        PlanError: names the call, the dataset, and the fields that there are.
    """
    fetch = next(node for node in (below, *_below(below)) if isinstance(node, Fetch))
    for column in columns:
        for component in fetch.components:
            _check_column(column, component, call)


def _check_column(column: Column, component: ReadComponent, call: str) -> None:
    fields = {f.name: f for f in component.fields}
    field = fields.get(column.path) or fields.get(column.path.split(".")[0])
    if field is None:
        if component.fields_complete and column.missing == "error":
            raise PlanError(
                f"{call}: no field {column.path!r} in dataset {component.dataset!r}; "
                f"{nearest(column.path, fields)}"
            )
        return
    if not component.fields_complete or field.name != column.path:
        return
    kinds = {"text": "text", "tokens": "lists of integers", "numbers": "lists of numbers"}
    if field.kind not in (column.kind, "unknown"):
        raise PlanError(
            f"{call}: field {column.path!r} of dataset {component.dataset!r} must hold "
            f"{kinds[column.kind]}, it holds {kinds.get(field.kind, field.kind)}"
        )


def _below(node: Node) -> list[Node]:
    chain = []
    while node.input is not None:
        node = node.input
        chain.append(node)
    return chain


def _one_of(call: str, name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PlanError(f"{call}: {name}={value!r} is unknown; {nearest(str(value), known)}")


def _at_least(call: str, name: str, value: object, bound: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < bound:
        raise PlanError(f"{call}: {name} must be an integer of at least {bound}, got {value!r}")
