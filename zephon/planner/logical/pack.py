"""Documents become rows of at most ``max_length`` tokens, laid end to end or side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from zephon.errors import PlanError
from zephon.io.fields import TOKENS, Column, Field
from zephon.planner.logical.node import Measure, Node, at_least, flags, one_of

ALGORITHMS = ("first_fit", "best_fit", "wrap", "best_fit_wrap", "best_fit_decreasing")
CUTTING = ("wrap", "best_fit_wrap")
_WITH_BINS = ("first_fit", "best_fit")
WITH_POOL = ("best_fit_wrap", "best_fit_decreasing")
POOL = 1024
"""Documents that are looked at together, where nobody says how many."""

PAYLOADS = ("keep_list", "numpy_array", "torch_tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack(Node):
    """Put documents together into rows of at most ``max_length`` tokens.

    tokens_field: the field that holds the tokens, resolved, never "auto"; None: a function
    measures rows. aligned: columns of the source with one value a token, packed with them.
    passed_over: fields that cannot be packed, and why. without: fields that no row may have, since
    they would have to be packed, and no row was seen to have them. container: what the source
    holds lists in. domains: sets of components that share no row; None: all may.
    """

    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "passed_over", "without"})
    reorders: ClassVar[bool] = True
    max_length: int
    algorithm: str
    tokens_field: str | None
    aligned: tuple[Column, ...] = ()
    passed_over: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    container: str = "list"
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
    domains: tuple[tuple[str, ...], ...] | None = None
    parallelism: int = 4

    def __post_init__(self) -> None:
        call = self.call
        at_least(call, "max_length", self.max_length, 1)
        one_of(call, "algorithm", self.algorithm, ALGORITHMS)
        one_of(call, "flush_strategy", self.flush_strategy, ("fifo", "fullest"))
        one_of(call, "homogeneity", self.homogeneity, ("none", "full", "group"))
        if self.shuffle_strategy is not None:
            one_of(call, "shuffle_strategy", self.shuffle_strategy, ("random", "length"))
        at_least(call, "min_sequence_length", self.min_sequence_length, 0)
        at_least(call, "parallelism", self.parallelism, 1)
        counts = ("num_bins", "max_sequences_per_bin", "candidate_pool_size", "max_candidate_age")
        for name in counts:
            if getattr(self, name) is not None:
                at_least(call, name, getattr(self, name), 1)
        if self.shuffle_seed is not None and (
            isinstance(self.shuffle_seed, bool) or not isinstance(self.shuffle_seed, int)
        ):
            raise PlanError(f"{call}: shuffle_seed must be an integer, got {self.shuffle_seed!r}")
        if self.drop_oversized is not None:
            flags(call, self, "drop_oversized")
        self._check_company()

    def _check_company(self) -> None:
        """Refuse what has no meaning under the algorithm."""
        call, algorithm = self.call, self.algorithm
        if algorithm in _WITH_BINS and self.num_bins is None:
            raise PlanError(
                f"{call}: algorithm={algorithm!r} needs num_bins, the rows that may be open at a "
                "time; pass one, such as num_bins=32"
            )
        for name, where in (
            ("num_bins", _WITH_BINS),
            ("candidate_pool_size", WITH_POOL),
            ("max_candidate_age", WITH_POOL),
        ):
            if getattr(self, name) is not None and algorithm not in where:
                raise PlanError(
                    f"{call}: {name}={getattr(self, name)!r} has no meaning under "
                    f"algorithm={algorithm!r}, only under {' and '.join(where)}; leave it out"
                )
        if self.drop_oversized and algorithm in CUTTING:
            raise PlanError(
                f"{call}: drop_oversized=True has no meaning under algorithm={algorithm!r}, which "
                "cuts long documents; leave it out"
            )

    @property
    def refuses_oversized(self) -> bool:
        """Whether a document longer than a row is an error, not dropped."""
        return self.drop_oversized is False and self.algorithm not in CUTTING

    @property
    def pads(self) -> bool:
        """Whether rows may be shorter than ``max_length``."""
        return self.algorithm != "wrap" or self.max_sequences_per_bin is not None

    @property
    def loses_fields(self) -> bool:
        """Whether fields that are not packed are lost: of all documents, or of those it cuts."""
        return not self.keeps_payload() or self.algorithm in CUTTING

    def keeps_rows(self) -> bool:
        """Never: rows are made of several documents."""
        return False

    def reads(self) -> tuple[Column, ...]:
        """The token column and what is aligned with it, where they come from the source."""
        if self.tokens_field is None or super(Pack, self).token_fields():
            return ()
        tokens = Column(path=self.tokens_field, kind="tokens", without=self.without)
        return (tokens, *self.aligned)

    def token_fields(self) -> tuple[str, ...]:
        """The token field and what is aligned with it."""
        if self.tokens_field is None:
            return ()
        made = super(Pack, self).token_fields()
        return tuple(
            dict.fromkeys((self.tokens_field, *(column.path for column in self.aligned), *made))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFlat(Pack):
    """Lay documents end to end into rows of exactly ``max_length`` tokens."""

    call: ClassVar[str] = "pack_flat"
    pad_token_id: int | None = None
    emit_positions: bool = True

    def __post_init__(self) -> None:
        super(PackFlat, self).__post_init__()
        flags("pack_flat", self, "emit_positions")
        if self.pad_token_id is not None:
            at_least("pack_flat", "pad_token_id", self.pad_token_id, 0)
        elif self.pads:
            raise PlanError(
                f"pack_flat: algorithm={self.algorithm!r} pads rows, so it needs pad_token_id; "
                "pass the tokenizer's, it may equal its end-of-sequence id"
            )

    def keeps_payload(self) -> bool:
        """A packed row is no source row."""
        return False

    def fields(self) -> tuple[Field, ...]:
        """The token field, fields of the same length, positions."""
        names = (*self.token_fields(), *(("positions",) if self.emit_positions else ()))
        return tuple(Field(name, "tokens", TOKENS) for name in names)

    def knows_all_fields(self) -> bool:
        """Always."""
        return True

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Fields that reach this step and are in no packed row, and why."""
        below = () if self.input is None else self.input.outputs()
        why = dict(self.passed_over)
        return tuple(
            (name, why.get(name, "not one value a token"))
            for name in below
            if name not in self.outputs()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackSequences(Pack):
    """Put documents side by side, each as it is, into rows of at most ``max_length`` tokens.

    length_fn: measures a row instead of its tokens. pack_payloads: what becomes of a row's list
    of documents: one of ``PAYLOADS``, or a function of the list.
    """

    call: ClassVar[str] = "pack_sequences"
    length_fn: Callable[[Any], Any] | None = None
    pack_payloads: str | Callable[[list[Any]], Any] = "keep_list"

    def __post_init__(self) -> None:
        super(PackSequences, self).__post_init__()
        if not callable(self.pack_payloads):
            one_of("pack_sequences", "pack_payloads", self.pack_payloads, PAYLOADS)
        if self.length_fn is None:
            return
        if not callable(self.length_fn):
            raise PlanError(
                f"pack_sequences: length_fn must be a function of a row, got {self.length_fn!r}"
            )
        if self.algorithm in CUTTING:
            raise PlanError(
                f"pack_sequences: length_fn has no meaning under algorithm={self.algorithm!r}, "
                "which cuts documents by tokens; use first_fit, best_fit or best_fit_decreasing"
            )

    def measure(self) -> Measure | None:
        """The length of a row, where it is not its tokens."""
        if self.length_fn is None:
            return None
        return Measure(name="length", function=self.length_fn)

    def fields(self) -> tuple[Field, ...]:
        """One field."""
        return (Field("packed_samples", "other"),)

    def knows_all_fields(self) -> bool:
        """Always."""
        return True
