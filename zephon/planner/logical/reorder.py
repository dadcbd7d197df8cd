"""Documents, or packed rows, leave in another order than they come."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from zephon.errors import PlanError
from zephon.io.fields import Column
from zephon.planner.logical.node import Measure, Node, at_least, one_of

SHUFFLES = ("streaming", "block", "block_warmup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffle(Node):
    """Put what comes in random order, lane by lane; nothing is dropped.

    buffer_size: units held before any is random over so many. seed: with the lane and the step's
    place in the plan it decides the order. warmup_growth: of blocks under "block_warmup".
    """

    call: ClassVar[str] = "shuffle"
    reorders: ClassVar[bool] = True
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    buffer_size: int = 8192
    seed: int = 0
    algorithm: str = "streaming"
    warmup_growth: float = 1.5
    parallelism: int = 1

    def __post_init__(self) -> None:
        at_least("shuffle", "buffer_size", self.buffer_size, 1)
        at_least("shuffle", "parallelism", self.parallelism, 1)
        one_of("shuffle", "algorithm", self.algorithm, SHUFFLES)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise PlanError(f"shuffle: seed must be an integer, got {self.seed!r}")
        growth = self.warmup_growth
        if not _is_number(growth) or not 1 < growth < math.inf:
            raise PlanError(
                f"shuffle: warmup_growth must be a finite number above 1, got {growth!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureMixture(Node):
    """Reorder each lane so that what it gives follows the target as closely as the buffer allows.

    max_buffer_size: units held before the best of them are let go off target; None: never.
    weight_by: "tokens", "samples", "field" (the length of weight_field) or "function".
    weight_column: as which the field is read; None: it is looked up in whole rows.
    mixture: target by component; None: the work source's weights in force.
    """

    call: ClassVar[str] = "ensure_mixture"
    reorders: ClassVar[bool] = True
    how: ClassVar[frozenset[str]] = frozenset({"parallelism", "warn_tolerance"})
    max_buffer_size: int | None = 1000
    drain_target_ratio: float = 0.8
    obsolete_drain_rate: float = 0.1
    weight_by: str = "tokens"
    weight_field: str | None = None
    weight_column: Column | None = None
    weight_function: Callable[[Any], Any] | None = None
    warn_tolerance: float | None = None
    mixture: tuple[tuple[str, float], ...] | None = None
    parallelism: int = 1

    def __post_init__(self) -> None:
        call = "ensure_mixture"
        if self.max_buffer_size is not None:
            at_least(call, "max_buffer_size", self.max_buffer_size, 1)
        at_least(call, "parallelism", self.parallelism, 1)
        ratio, rate, tolerance = (
            self.drain_target_ratio, self.obsolete_drain_rate, self.warn_tolerance,
        )  # fmt: skip
        if not _is_number(ratio) or not 0 < ratio < 1:
            raise PlanError(f"{call}: drain_target_ratio must be between 0 and 1, got {ratio!r}")
        if not _is_number(rate) or not 0 <= rate <= 1:
            raise PlanError(f"{call}: obsolete_drain_rate must be from 0 to 1, got {rate!r}")
        if tolerance is not None and (not _is_number(tolerance) or not 0 <= tolerance <= 1):
            raise PlanError(f"{call}: warn_tolerance must be from 0 to 1, got {tolerance!r}")

    def measure(self) -> Measure | None:
        """The weight of a row, where it is neither its tokens nor one."""
        if self.weight_by in ("tokens", "samples"):
            return None
        return Measure(
            name="weight",
            function=self.weight_function,
            field=self.weight_field,
            column=self.weight_column is not None,
        )

    def reads(self) -> tuple[Column, ...]:
        """The field that weighs, where it is a column."""
        return () if self.weight_column is None else (self.weight_column,)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
