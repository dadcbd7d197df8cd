"""Operators of the user: they see groups of records, and may remember."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from zephon.planner.logical.functions import InPython

GROUP = 64
"""Records that an operator of the user sees together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOp(InPython):
    """An operator that takes lists of records: functions, or an instance of ``BaseOp``.

    instance: None: the functions below are the operator. accumulator: makes what forms groups.
    """

    call: ClassVar[str] = "add_op"
    makes_metas: ClassVar[bool] = True
    name: str
    instance: Any = None
    process_many: Callable[..., Any] | None = None
    process_one: Callable[..., Any] | None = None
    accumulator: Callable[..., Any] | None = None
    preserves_cursor_order: bool = True
    calibration_replayable: bool = False
    batch_shape_sensitive: bool = False
    requires_serial_state: bool = False
    indexable: bool = False
    validation_samples: Any = None
    fingerprint: str | None = None
    remembers: bool = False
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "validation_samples"})

    def keeps_rows(self) -> bool:
        """Never sure."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stateful(InPython):
    """A transformation with a state of its own in each lane.

    snapshot, restore: write the state as JSON values, and read it; both or none. Without them the
    state is flushed and begun anew every so many records, so that it can be made again.
    """

    call: ClassVar[str] = "stateful_transform"
    makes_metas: ClassVar[bool] = True
    name: str
    init_state: Callable[[], Any]
    push: Callable[..., Any]
    flush: Callable[..., Any] | None = None
    should_flush: Callable[..., Any] | None = None
    transform: Callable[..., Any] | None = None
    snapshot: Callable[[Any], Any] | None = None
    restore: Callable[[Any], Any] | None = None
    indexable: bool = False
    preserves_cursor_order: bool = True
    fingerprint: str | None = None
    parallelism: int = 1

    def keeps_rows(self) -> bool:
        """Never sure."""
        return False
