"""Columns by name: what a dataset has (Field) and what a plan asks for (Column)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from zephon.errors import PlanError, nearest

TEXT = pa.large_string()
TOKENS = pa.large_list(pa.int32())

_TYPES: dict[str, pa.DataType] = {"text": TEXT, "tokens": TOKENS}
_MISSING = ("error", "empty")


@dataclass(frozen=True, slots=True)
class Field:
    """What is known of one top-level column before any row is read.

    name: the column; leaves of nested columns are not listed.
    kind: "text", "tokens" (lists of integers), "numbers" (lists of floats or booleans),
        "scalar", "other", or "unknown" (only nulls or empty lists were seen).
    """

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column that a plan reads. What is read never holds nulls.

    path: a top-level name, or "a.b": field b inside the object a. A top-level column whose
        own name is "a.b" wins.
    kind: "text" (``TEXT``) or "tokens" (``TOKENS``).
    missing: what a row without the field means, "error" or "empty" ("" or []). A null is
        always an error of its row.

    >>> Column("text", "text").type
    DataType(large_string)
    """

    path: str
    kind: str
    missing: str = "error"

    def __post_init__(self) -> None:
        if self.kind not in _TYPES:
            raise PlanError(f"column {self.path!r}: no kind {self.kind!r}; {_near(self.kind)}")
        if self.missing not in _MISSING:
            raise PlanError(
                f"column {self.path!r}: missing must be 'error' or 'empty', got "
                f"{self.missing!r}; {nearest(str(self.missing), _MISSING)}"
            )

    @property
    def type(self) -> pa.DataType:
        """The Arrow type that is read, whatever the files hold."""
        return _TYPES[self.kind]

    @property
    def wanted(self) -> str:
        """What a good value is, in words, for error messages."""
        return "text" if self.kind == "text" else "a list of 32-bit integers"


def merged_kind(kinds: list[str]) -> str:
    """Name the kind of a column from the kinds seen in several places.

    >>> merged_kind(["unknown", "tokens"]), merged_kind(["text", "tokens"])
    ('tokens', 'other')
    """
    seen = set(kinds) - {"unknown"}
    if not seen:
        return "unknown"
    return seen.pop() if len(seen) == 1 else "other"


def _near(kind: object) -> str:
    return nearest(str(kind), _TYPES)
