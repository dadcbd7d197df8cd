"""What every node of a plan is, and how its arguments are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from zephon.errors import PlanError, WrongKindError, nearest
from zephon.io.fields import Column, Field

LARGEST = 2**31 - 1
"""The largest number that a step takes; positions in a row are 32-bit integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number that is made of each row as it is at a step.

    name: "length", a whole number; or "weight", a float. function: takes the row as a dict; None:
    the length of ``field`` is the number. column: the field is read as a column of its own.
    """

    name: str
    function: Callable[[Any], Any] | None = None
    field: str | None = None
    column: bool = False

    @property
    def of_whole_rows(self) -> bool:
        """Whether whole rows must be read for it."""
        return not self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a pipeline; ``input`` is the step below, None at the source."""

    call: ClassVar[str]  # the public call that makes this node
    reorders: ClassVar[bool] = False
    takes_rows: ClassVar[bool] = False  # looks at whole rows as Python values
    makes_metas: ClassVar[bool] = False  # rows that leave say themselves who they are
    on_batches: ClassVar[bool] = False  # works on what is delivered, so it is no part of the recipe
    is_barrier: ClassVar[bool] = False  # nothing moves across
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

    def measure(self) -> Measure | None:
        """What this step must know of each whole row, beside its tokens."""
        return None

    def sees_rows(self) -> bool:
        """Whether this step looks at whole rows, as a function of the user does."""
        measure = self.measure()
        return self.takes_rows or (measure is not None and measure.of_whole_rows)

    def token_fields(self) -> tuple[str, ...]:
        """Fields with one value a token that this step or one below makes."""
        return () if self.input is None else self.input.token_fields()

    def fields(self) -> tuple[Field, ...]:
        """What is known of the fields that leave this step."""
        return () if self.input is None else self.input.fields()

    def knows_all_fields(self) -> bool:
        """Whether rows that leave this step have no other fields."""
        return self.input is not None and self.input.knows_all_fields()

    def outputs(self) -> tuple[str, ...]:
        """Names of the fields that leave this step, as far as they are known."""
        return tuple(field.name for field in self.fields())


def one_of(call: str, name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a word that is not known; names the call, the argument and the nearest word."""
    if value not in known:
        raise PlanError(f"{call}: {name}={value!r} is unknown; {nearest(str(value), known)}")


def at_least(call: str, name: str, value: object, bound: int) -> None:
    """Refuse what is no integer of at least ``bound``; names the call and the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < bound:
        raise PlanError(f"{call}: {name} must be an integer of at least {bound}, got {value!r}")
    if value > LARGEST:
        raise PlanError(f"{call}: {name} must be at most {LARGEST:,}, got {value!r}")


def field_name(call: str, name: str, value: object) -> None:
    """Refuse what is no name of a field; names the call and the argument."""
    if not isinstance(value, str) or not value:
        kind = PlanError if isinstance(value, str) else WrongKindError
        raise kind(f"{call}: {name} must be the name of a field, got {value!r:.80}; pass one")


def flags(call: str, node: Node, *names: str) -> None:
    """Refuse what is neither True nor False; names the call and the argument."""
    for name in names:
        if not isinstance(getattr(node, name), bool):
            raise PlanError(
                f"{call}: {name} must be True or False, got {getattr(node, name)!r}; pass one"
            )
