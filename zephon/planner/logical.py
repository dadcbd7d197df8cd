"""A pipeline is a chain of frozen nodes: one a call, source at the bottom, each holding its input.

A node holds what the call said and checks it; what rules must know about a node is a fact on its
class. ``how`` names the fields that change speed alone: they are no part of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.errors import NotYetError, PlanError, nearest
from zephon.io.fields import Column, Field

SPECIAL_TOKENS = ("bos_eos", "bos", "eos", "none", "tokenizer_default")
PADDINGS = ("none", "longest", "max_length")
ALGORITHMS = ("wrap", "first_fit", "best_fit", "best_fit_wrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a pipeline; ``input`` is the step below, None at the source."""

    call: ClassVar[str]  # the public call that makes this node
    reorders: ClassVar[bool] = False
    how: ClassVar[frozenset[str]] = frozenset()
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input"})  # in the recipe, not by this
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

    def token_fields(self) -> tuple[str, ...]:
        """Fields with one value a token that this step or one below makes."""
        return () if self.input is None else self.input.token_fields()

    def outputs(self) -> tuple[str, ...]:
        """Names of the fields that leave this step."""
        return () if self.input is None else self.input.outputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadComponent:
    """What is known of one component before a row is read.

    share: normalized weight; None: the work source decides as it goes. fields_complete: no row has
    other fields than ``fields``.
    """

    name: str
    dataset: str
    share: float | None
    shards: int
    rows: int
    bytes: int
    fields: tuple[Field, ...]
    fields_complete: bool
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Node):
    """Read rows of the mixture, in the order of the work source.

    components: what is known of each component that is ever drawn.
    decided_by: the class of a work source that decides shares as it goes.
    columns: typed columns to read; None: nobody has asked yet, so whole rows are read too.
    payload: whole rows are read.
    parallelism: reading tasks that may run at once. max_batch: accepted, without effect.
    """

    call: ClassVar[str] = "Pipeline"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "max_batch", "columns", "payload"})
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "components", "decided_by"})
    components: tuple[ReadComponent, ...]
    decided_by: str | None = None
    columns: tuple[Column, ...] | None = None
    payload: bool = True
    parallelism: int = 4
    max_batch: int = 64

    def __post_init__(self) -> None:
        at_least("fetch_parallelism", "parallelism", self.parallelism, 1)
        at_least("fetch_parallelism", "max_batch", self.max_batch, 1)

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
        at_least("prefetch", "buffer_size", self.buffer_size, 1)
        at_least("prefetch", "parallelism", self.parallelism, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenize(Node):
    """Encode a text field; a document longer than ``max_length`` may become several rows.

    mask_implied: the attention mask follows from lengths alone, so no column of it is built.
    """

    call: ClassVar[str] = "tokenize"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "use_fast", "mask_implied"})
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "tokenizer", "tokenizer_id"})
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

    def keeps_payload(self) -> bool:
        """Only when asked to."""
        return self.preserve_upstream_payload

    def token_fields(self) -> tuple[str, ...]:
        """The ids, and their mask if it is asked for."""
        return ("input_ids", "attention_mask") if self.add_attention_mask else ("input_ids",)

    def outputs(self) -> tuple[str, ...]:
        """Token fields, after the kept payload."""
        below = super(Tokenize, self).outputs() if self.preserve_upstream_payload else ()
        return tuple(dict.fromkeys((*below, *self.token_fields())))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFlat(Node):
    """Lay documents end to end into rows of exactly ``max_length`` tokens.

    tokens_field: the field that holds the tokens; resolved, never "auto". aligned: further
    fields of the source with one integer a token, packed with them.
    """

    call: ClassVar[str] = "pack_flat"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    max_length: int
    algorithm: str
    tokens_field: str
    aligned: tuple[str, ...] = ()
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
        at_least("pack_flat", "max_length", self.max_length, 1)
        flags("pack_flat", self, "emit_positions")
        one_of("pack_flat", "algorithm", self.algorithm, ALGORITHMS)
        if self.algorithm != "wrap":
            raise NotYetError(
                f"pack_flat: algorithm={self.algorithm!r} is not there yet; use algorithm='wrap'"
            )
        one_of("pack_flat", "flush_strategy", self.flush_strategy, ("fifo", "fullest"))
        one_of("pack_flat", "homogeneity", self.homogeneity, ("none", "full", "group"))
        if self.shuffle_strategy is not None:
            one_of("pack_flat", "shuffle_strategy", self.shuffle_strategy, ("random", "length"))
        at_least("pack_flat", "min_sequence_length", self.min_sequence_length, 0)
        at_least("pack_flat", "parallelism", self.parallelism, 1)
        if self.pad_token_id is not None:
            at_least("pack_flat", "pad_token_id", self.pad_token_id, 0)
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
            raise PlanError(
                f"pack_flat: groups needs homogeneity='group', got {self.homogeneity!r}; leave "
                "groups out"
            )
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
        """The token column and what is aligned with it, where they come from the source."""
        if super(PackFlat, self).token_fields():
            return ()
        names = (self.tokens_field, *self.aligned)
        return tuple(Column(path=name, kind="tokens") for name in names)

    def keeps_payload(self) -> bool:
        """A packed row is no source row."""
        return False

    def outputs(self) -> tuple[str, ...]:
        """The token field, fields of the same length, positions."""
        return (*self.token_fields(), *(("positions",) if self.emit_positions else ()))

    def token_fields(self) -> tuple[str, ...]:
        """The token field and what is aligned with it."""
        made = super(PackFlat, self).token_fields()
        return tuple(dict.fromkeys((self.tokens_field, *self.aligned, *made)))

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
        at_least("batch", "microbatch_size", self.microbatch_size, 1)
        flags("batch", self, "drop_last")


def one_of(call: str, name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a word that is not known; names the call, the argument and the nearest word."""
    if value not in known:
        raise PlanError(f"{call}: {name}={value!r} is unknown; {nearest(str(value), known)}")


def at_least(call: str, name: str, value: object, bound: int) -> None:
    """Refuse what is no integer of at least ``bound``; names the call and the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < bound:
        raise PlanError(f"{call}: {name} must be an integer of at least {bound}, got {value!r}")


def flags(call: str, node: Node, *names: str) -> None:
    """Refuse what is neither True nor False; names the call and the argument."""
    for name in names:
        if not isinstance(getattr(node, name), bool):
            raise PlanError(
                f"{call}: {name} must be True or False, got {getattr(node, name)!r}; pass one"
            )
