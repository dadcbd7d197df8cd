"""Where rows come from: the source of a plan, and what warms its cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.column_steps import Expression
from zephon.io.fields import Column, Field, joined_fields
from zephon.planner.logical.node import Node, at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadComponent:
    """What is known of one component before a row is read.

    share: normalized weight; None: the work source decides as it goes. fields_complete: every row
    has all ``fields`` and no other; all_named: no row has other fields than these. told_by: the
    file that told of the shards; "" where they were looked at.
    """

    name: str
    dataset: str
    share: float | None
    shards: int
    rows: int
    bytes: int
    fields: tuple[Field, ...]
    fields_complete: bool
    all_named: bool = False
    passed_over: tuple[str, ...] = ()
    told_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Node):
    """Read rows of the mixture, in the order of the work source.

    components: what is known of each component that is ever drawn.
    decided_by: the class of a work source that decides shares as it goes.
    columns: typed columns to read; None: nobody has asked yet, so whole rows are read too.
    payload: whole rows are read.
    frame: columns of any type that expressions read.
    predicates: only rows for which all are true are read; the others are lost.
    limit: rows of a lane that can be needed, so that no more are read ahead; None: all.
    parallelism: reading tasks that may run at once. max_batch: accepted, without effect.
    """

    call: ClassVar[str] = "Pipeline"
    how: ClassVar[frozenset[str]] = frozenset(
        {"parallelism", "max_batch", "columns", "payload", "frame", "predicates", "limit"}
    )
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "components", "decided_by"})
    components: tuple[ReadComponent, ...]
    decided_by: str | None = None
    columns: tuple[Column, ...] | None = None
    payload: bool = True
    frame: tuple[Column, ...] = ()
    predicates: tuple[Expression, ...] = ()
    limit: int | None = None
    parallelism: int = 4
    max_batch: int = 64

    def __post_init__(self) -> None:
        at_least("fetch_parallelism", "parallelism", self.parallelism, 1)
        at_least("fetch_parallelism", "max_batch", self.max_batch, 1)

    def keeps_rows(self) -> bool:
        """Unless rows are filtered while they are read."""
        return not self.predicates

    def fields(self) -> tuple[Field, ...]:
        """Fields of all components, in order of first appearance."""
        return joined_fields([c.fields for c in self.components])

    def knows_all_fields(self) -> bool:
        """Where that is known of every component."""
        return all(c.all_named for c in self.components)


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
