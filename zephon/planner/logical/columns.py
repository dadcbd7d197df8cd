"""Columns are computed, chosen, renamed or dropped, and rows filtered, by expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zephon.column_steps import ColumnStep
from zephon.io.fields import Field
from zephon.planner.logical.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns(Node):
    """Run column steps in order, each on what the one before it made.

    steps: one a call; neighbouring calls may be joined. made: the fields that leave, with types.
    complete: rows that leave have no other fields.
    """

    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"input", "made", "complete"})
    steps: tuple[ColumnStep, ...]
    made: tuple[Field, ...]
    complete: bool

    @property
    def call(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The call that added the last of the steps."""
        return self.steps[-1].kind

    def keeps_rows(self) -> bool:
        """Unless a step filters."""
        return all(step.kind != "filter" for step in self.steps)

    def fields(self) -> tuple[Field, ...]:
        """What the last step gives."""
        return self.made

    def knows_all_fields(self) -> bool:
        """Where the last step said so."""
        return self.complete
