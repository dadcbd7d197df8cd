"""Columns by name: what a dataset has (Field, Seen) and what a plan asks for (Column)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.errors import PlanError, nearest
from zephon.io.column_types import joined_all

TEXT = pa.large_string()
TOKENS = pa.large_list(pa.int32())

_TYPES: dict[str, pa.DataType] = {
    "text": TEXT,
    "tokens": TOKENS,
    "int32": TOKENS,
    "int64": pa.large_list(pa.int64()),
    "float32": pa.large_list(pa.float32()),
    "float64": pa.large_list(pa.float64()),
    "bool": pa.large_list(pa.uint8()),  # Arrow's own booleans are bits, which NumPy cannot view
    "uint8": pa.large_list(pa.uint8()),  # booleans that rows hold as numbers; of no source
}
_WANTED = {
    "text": "text",
    "tokens": "a list of 32-bit integers",
    "int32": "a list of 32-bit integers",
    "int64": "a list of 64-bit integers",
    "float32": "a list of numbers that float32 holds",
    "float64": "a list of numbers",
    "bool": "a list of booleans",
    "uint8": "a list of booleans",
}
NUMBERS = ("int32", "int64", "float32", "float64", "bool")
"""Kinds of columns with one value a token beside the tokens, by the type of their values."""

LOOKED_AT = 64
"""Rows of a dataset that say what it has, where no footer does."""

_FLOAT64_HOLDS = ("int32", "int64", "float32")
_MISSING = ("error", "empty")


@dataclass(frozen=True, slots=True)
class Field:
    """What is known of one top-level column before any row is read.

    name: the column; leaves of nested columns are not listed.
    kind: "text", "tokens" (lists of integers), "numbers" (lists of floats or booleans),
        "scalar", "bytes" (which may be text), "other", or "unknown" (only nulls or empty lists
        were seen).
    type: the one Arrow type in which every shard's values can be read; None: nobody knows, or
        there is none. Left out where ``find_type`` is given, it is found when it is asked for.
    find_type: gives the type of a field of this name.
    declared: somebody said that it is there; then "a.b" may be field b inside the object a.
    """

    name: str
    kind: str
    type: pa.DataType | None = field(default=None, compare=False, repr=False)
    find_type: Callable[[str], pa.DataType | None] | None = field(
        default=None, compare=False, repr=False
    )
    declared: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.type is None and self.find_type is not None:
            object.__delattr__(self, "type")

    def __getattr__(self, name: str) -> Any:
        if name != "type" or self.find_type is None:
            raise AttributeError(f"Field has no attribute {name!r}")
        found = self.find_type(self.name)
        object.__setattr__(self, "type", found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Field, (self.name, self.kind, self.type, None, self.declared)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the first rows of a dataset have in one field.

    kind: the narrowest of ``NUMBERS`` that holds all values; "" where only nulls or empty lists
        were seen; None if something else than plain lists of numbers is among them.
    lengths: values of each row looked at; -1 for a row without a list.
    container: what holds the values of a row: "list", "tuple", "np" or "pt".
    odd: where ``kind`` is None, what else is there, as a sentence: "row 3 has text".
    """

    kind: str | None
    lengths: tuple[int, ...]
    container: str = "list"
    odd: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One column that a plan reads. What is read never holds nulls, but of kind "any".

    path: a top-level name, or "a.b": field b inside the object a. A top-level column whose
        own name is "a.b" wins.
    named: the path is a top-level name, whatever dots it has.
    kind: "text" (``TEXT``), "tokens" (``TOKENS``), or one of ``NUMBERS``: lists of values of that
        type, none of which is changed by it; booleans are read as bytes of 0 and 1.
    missing: what a row without the field means, "error" or "empty" ("" or []). A null is
        always an error of its row.
    null: of kind "text", what a null means, and a row without the field where that is an error:
        "error"; "empty", that is ""; or "drop", a row that is left out and is not bad.
    without: top-level fields that a row must not have, unless as null. For what would be lost if
        it came late: formats whose footers list all fields need not look.
    values: of kind "any", the Arrow type that is read; such a column keeps nulls, and a row without
        the field holds null.

    >>> Column("text", "text").type
    DataType(large_string)
    """

    path: str
    kind: str
    missing: str = "error"
    without: tuple[str, ...] = ()
    values: pa.DataType | None = None
    named: bool = False
    null: str = "error"

    def __post_init__(self) -> None:
        if self.kind not in _TYPES and not (self.kind == "any" and self.values is not None):
            raise PlanError(f"column {self.path!r}: no kind {self.kind!r}; {_near(self.kind)}")
        if self.missing not in _MISSING:
            raise PlanError(
                f"column {self.path!r}: missing must be 'error' or 'empty', got "
                f"{self.missing!r}; {nearest(str(self.missing), _MISSING)}"
            )

    @property
    def type(self) -> pa.DataType:
        """The Arrow type that is read, whatever the files hold."""
        return _TYPES[self.kind] if self.values is None else self.values

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the values of a list."""
        return np.dtype("int32" if self.kind in ("text", "tokens") else self.kind)

    @property
    def wanted(self) -> str:
        """What a good value is, in words, for error messages."""
        return f"a value of type {self.values}" if self.kind == "any" else _WANTED[self.kind]

    @property
    def way_out(self) -> str:
        """What else than mending a bad row can be done, in words; "" if nothing."""
        if self.kind not in NUMBERS:
            return ""
        return "leave the field out of packed rows with aligned_fields"

    @property
    def null_allowance(self) -> str:
        """What would take a null, as a clause; "" if nothing."""
        return ", which null_text='drop' or 'empty' takes" if self.kind == "text" else ""

    @property
    def allowance(self) -> str:
        """What would take a float that this column does not hold, as a clause; "" if nothing."""
        if self.kind not in _FLOAT64_HOLDS:
            return ""
        return f", which aligned_fields={{{self.path!r}: 'float64'}} takes"

    def remedy(self, mend: str) -> str:
        """Join how the data can be mended and the way out to the end of an error message."""
        return f"{mend}, or {self.way_out}" if self.way_out else mend


def merged_kind(kinds: list[str]) -> str:
    """Name the kind of a column from the kinds seen in several places.

    Lists of integers beside lists of other numbers are lists of numbers, and text beside bytes is
    bytes.

    >>> merged_kind(["unknown", "tokens"]), merged_kind(["text", "tokens"])
    ('tokens', 'other')
    """
    seen = set(kinds) - {"unknown"}
    if not seen:
        return "unknown"
    if seen == {"tokens", "numbers"}:
        return "numbers"
    if seen == {"text", "bytes"}:
        return "bytes"
    return seen.pop() if len(seen) == 1 else "other"


def widened(kinds: Iterable[str]) -> str | None:
    """Name the narrowest of ``NUMBERS`` that holds what all of some hold; None if none does.

    Integers beside floats become float64; booleans stand beside nothing else. "" stands for no
    value at all, and comes back if there is nothing else.

    >>> widened(["int32", "", "float32"]), widened(["float32"]), widened(["bool", "int32"])
    ('float64', 'float32', None)
    """
    seen = set(kinds) - {""}
    if len(seen) <= 1:
        return seen.pop() if seen else ""
    if "bool" in seen:
        return None
    return "int64" if seen == {"int32", "int64"} else "float64"


def can_hold(wanted: str, found: str | None) -> bool:
    """Say whether a column of one kind may hold values of another; each value is looked at then.

    Args:
        wanted: a column's kind, but "text".
        found: one of ``NUMBERS``; "" for no value; None for anything else.
    """
    if found is None or "bool" in (wanted, found):
        return found in ("", wanted)
    return wanted in ("float32", "float64") or not found.startswith("float")


def joined_fields(parts: Sequence[Sequence[Field]]) -> tuple[Field, ...]:
    """Join the fields of several datasets, in order of first appearance.

    >>> joined_fields([[Field("a", "text")], [Field("b", "scalar"), Field("a", "unknown")]])
    (Field(name='a', kind='text'), Field(name='b', kind='scalar'))
    """
    found: dict[str, list[Field]] = {}
    for field_ in (each for fields in parts for each in fields):
        found.setdefault(field_.name, []).append(field_)
    return tuple(
        Field(
            name,
            merged_kind([each.kind for each in same]),
            find_type=partial(_joined_type, same),
            declared=any(each.declared for each in same),
        )
        for name, same in found.items()
    )


def _near(kind: object) -> str:
    return nearest(str(kind), _TYPES)


def _joined_type(fields: Sequence[Field], name: str) -> pa.DataType | None:
    types = [each.type for each in fields]
    known = [dtype for dtype in types if dtype is not None]
    return joined_all(known) if len(known) == len(types) else None
