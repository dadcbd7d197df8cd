"""An expression, a step of several, and what files say of rows: values that compare and hash.

Polars is loaded when an expression is looked into: plans and files only carry these values.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over columns of known types.

    data: the expression as bytes, the same in every process. reads: columns that it looks at.
    name: of the column that it gives. type: of its values. chooses: selectors in it choose columns
    among ``reads``, and it may give several, one of them of that name.
    """

    data: bytes = field(repr=False)
    reads: tuple[str, ...]
    name: str
    type: pa.DataType
    chooses: bool = False

    def build(self) -> pl.Expr:
        """Give the Polars expression; one that chooses must see ``reads`` and no other columns."""
        return _built(self.data)

    @property
    def column(self) -> str | None:
        """The column whose values are handed on as they are, maybe under another name."""
        return None if self.chooses else _column(self.data, self.name)

    def __str__(self) -> str:
        text = _shown(self.data)
        if self.chooses and self.column is None:
            return f"{self.name} of {text}"
        return text


@dataclass(frozen=True, slots=True)
class ColumnStep:
    """One call over columns.

    kind: "filter", "select", "with_columns", "rename" or "drop". expressions: of the first three.
    names: (old, new) pairs of "rename"; names of "drop".
    """

    kind: str
    expressions: tuple[Expression, ...] = ()
    names: tuple[object, ...] = ()

    def __str__(self) -> str:
        if self.kind == "rename":
            inside = [f"{old} -> {new}" for old, new in renamed(self).items()]
        elif self.kind == "drop":
            inside = [str(name) for name in self.names]
        else:
            inside = [str(each) for each in self.expressions]
        return f"{self.kind}({', '.join(inside)})"


def renamed(step: ColumnStep) -> dict[str, str]:
    """Give new names by old ones of a step of kind "rename"."""
    return {str(old): str(new) for old, new in step.names}  # pyright: ignore[reportGeneralTypeIssues]


def changed_by(step: ColumnStep) -> set[str]:
    """Name the fields that are not what they were; one that is handed on as it is stays."""
    if step.kind == "rename":
        names = renamed(step)
        return {*names, *names.values()}
    return {each.name for each in step.expressions if each.column != each.name}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a file says of one column of some rows; None: it does not say, or not for sure.

    low, high: bounds, of the column's type, that no value but null and NaN is beyond. nulls: how
    many. rows: how many there are.
    """

    low: pa.Scalar | None
    high: pa.Scalar | None
    nulls: int | None
    rows: int


def can_name_a_column(name: str) -> bool:
    r"""Say whether Arrow and Polars take a name: they hold UTF-8 alone.

    >>> can_name_a_column("größe"), can_name_a_column("\ud800")
    (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def no_columns(rows: int) -> pa.RecordBatch:
    """Make a batch of so many rows that has no column: one made of none would have no rows.

    >>> no_columns(3).num_rows, no_columns(3).num_columns
    (3, 0)
    """
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["-"]).select([])


def polars_release() -> str:
    """Give the release of Polars, by whose rules expressions are bytes."""
    import polars as pl  # late: see _built

    return pl.__version__


@lru_cache(maxsize=1024)
def _built(data: bytes) -> pl.Expr:
    import polars as pl  # late: it takes 80 ms to import, and few pipelines have expressions

    return pl.Expr.deserialize(io.BytesIO(data))


@lru_cache(maxsize=1024)
def _column(data: bytes, name: str) -> str | None:
    import polars as pl  # late for the reason above

    expression = _built(data)
    roots = expression.meta.root_names()
    if expression.meta.is_column():
        return roots[0]
    if len(roots) == 1 and expression.meta.eq(pl.col(roots[0]).alias(name)):
        return roots[0]
    return None


_LONGEST = 120
_LITERAL = re.compile(r"\bdyn (?:int|float): ")
_OPERANDS = re.compile(r" (\S{1,2}) ")


@lru_cache(maxsize=1024)
def _shown(data: bytes) -> str:
    """Write an expression as one would write it in Python, as far as that is easy."""
    text = _in_python(_LITERAL.sub("", " ".join(str(_built(data)).split())))
    if text.startswith("(") and _closing(text, 0) == len(text) - 1:
        text = text[1:-1]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _in_python(text: str) -> str:
    """Write ``[(a) < (b)]`` as ``(a < b)``, at any depth."""
    done, place = [], 0
    while place < len(text):
        if text.startswith("[(", place):
            first, end = _closing(text, place + 1), _closing(text, place)
            sign = _OPERANDS.match(text, first + 1)
            if sign is not None and _closing(text, sign.end()) == end - 1:
                left, right = text[place + 2 : first], text[sign.end() + 1 : end - 1]
                done.append(f"({_in_python(left)} {sign.group(1)} {_in_python(right)})")
                place = end + 1
                continue
        done.append(text[place])
        place += 1
    return "".join(done)


def _closing(text: str, place: int) -> int:
    """Find the bracket that closes the one at ``place``; the end of the text if none does."""
    depth, quoted = 0, False
    for number in range(place, len(text)):
        sign = text[number]
        if sign == '"':
            quoted = not quoted
        elif not quoted:
            depth += (sign in "([") - (sign in ")]")
            if depth == 0:
                return number
    return len(text)
