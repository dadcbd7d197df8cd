"""Rows become batches; what comes after that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from zephon.planner.logical.node import Node, at_least, flags


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MapBatch(Node):
    """Call a function on each delivered batch; what it does is no part of what lanes hold.

    drop_none: a batch for which it returns None is dropped; else it passes as it was.
    """

    call: ClassVar[str] = "map_batch"
    on_batches: ClassVar[bool] = True
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    function: Callable[[Any], Any]
    drop_none: bool = True
    fingerprint: str | None = None
    parallelism: int = 1

    def __post_init__(self) -> None:
        at_least("map_batch", "parallelism", self.parallelism, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(Node):
    """Stop after some rows, counted over all ranks."""

    call: ClassVar[str] = "take"
    on_batches: ClassVar[bool] = True
    rows: int

    def __post_init__(self) -> None:
        at_least("take", "n", self.rows, 1)
