"""Rows become batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
