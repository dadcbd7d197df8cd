"""Refuse expressions that look past one row, at chance, or into Python.

Polars says of a node of an expression whether it works row by row, and says so of a sum that holds
a mean: so every node is asked. Some nodes cannot be asked without a schema, and old versions cannot
be asked at all; so each expression is also computed on small made-up rows, together and one by one,
and twice: what differs is refused.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import polars as pl

from zephon.errors import PlanError
from zephon.expressions.arrow_types import plain

_IN_PYTHON = (b"PLPYFN", b"PLPYUDF", b"cloudpickle")
_ROWS = 24
_FAILURES = (Exception, pl.exceptions.PanicException)  # a panic is no Exception


def written_down(call: str, expression: pl.Expr) -> bytes:
    """Give an expression as bytes.

    Raises:
        PlanError: a Python function is in it.
    """
    try:
        data = expression.meta.serialize()
    except (pl.exceptions.PolarsError, ImportError) as exc:
        raise PlanError(
            f"{call}: {shown(expression)} cannot be written down ({first_line(exc)}); use "
            "map_transform for what Python must do"
        ) from exc
    if any(mark in data for mark in _IN_PYTHON):
        raise PlanError(
            f"{call}: expected an expression that Polars computes by itself, {shown(expression)} "
            "calls a Python function; use map_transform"
        )
    return data


def check_rows(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType], *, several: bool
) -> None:
    """Refuse an expression that does not look at each row by itself.

    Args:
        call: the public call, for messages.
        expression: whose types are known to fit.
        schema: the columns that it reads, in order; those that selectors choose from.
        several: selectors are in it, or it gives several columns.

    Raises:
        PlanError: a value of it depends on other rows, or on chance.
    """
    odd, sure = _asked(expression, several)
    if odd is not None:
        raise _not_by_row(call, expression, odd)
    rows = _made_up(schema)
    with warnings.catch_warnings():  # of what is deprecated, which is told where it runs
        warnings.simplefilter("ignore")
        alike = _alike(rows, expression, sure)
    if alike is False or (alike is None and not sure):
        raise _not_by_row(call, expression, expression)


def _alike(rows: pl.DataFrame, expression: pl.Expr, sure: bool) -> bool | None:
    """Say whether rows give the same together, again, turned around and one by one.

    Rows of which one alone cannot be computed are left out; None: then none is left. One that gives
    none or several is an answer too, unless Polars is sure that it is not so.
    """
    single = [_computed(rows[place : place + 1], expression) for place in range(_ROWS)]
    good = [place for place, found in enumerate(single) if found is not None and len(found) == 1]
    if not sure and len(good) < sum(found is not None for found in single):
        return False
    if not good:
        return None
    some = rows[good]
    whole, again, turned = (_computed(each, expression) for each in (some, some, some[::-1]))
    if whole is None or again is None or turned is None:
        return False
    apart = pl.concat([found for found in single if found is not None and len(found) == 1])
    return whole.equals(again) and whole.equals(apart) and whole.equals(turned[::-1])


def shown(expression: pl.Expr) -> str:
    """Write an expression on one line."""
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_line(problem: BaseException) -> str:
    """Give the first line of what an exception says."""
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


def _not_by_row(call: str, expression: pl.Expr, odd: pl.Expr) -> PlanError:
    inside = "" if odd is expression else f" in {shown(expression)}"
    return PlanError(
        f"{call}: expected an expression that looks at each row by itself, {shown(odd)}{inside} "
        "does not give the same row by row; compute it before, or use a function"
    )


def _asked(expression: pl.Expr, several: bool) -> tuple[pl.Expr | None, bool]:
    """Ask every node: which one does not work row by row, if one says so, and whether all said."""
    meta = expression.meta
    if meta.is_literal():
        return None, len(pl.select(expression)) == 1
    by_row = _says_row_by_row(expression, several)
    if by_row is False:
        return expression, True
    sure = by_row is True
    if meta.is_column():
        return None, sure
    try:
        inputs = meta.pop()
    except pl.exceptions.PolarsError:
        return None, False
    for each in inputs:
        if by_row is None and not each.meta.root_names() and not _many(each):
            continue  # maybe works on the values of one list, or the fields of one struct
        odd, also = _asked(each, _many(each))
        if odd is not None:
            return odd, True
        sure &= also
    return None, sure


def _says_row_by_row(expression: pl.Expr, several: bool) -> bool | None:
    """Ask one node; None: it cannot be asked."""
    meta = expression.meta
    if several or not hasattr(meta, "is_row_separable"):
        return None
    try:
        same_length = meta.is_length_preserving() or meta.is_scalar()
        return meta.is_row_separable() and same_length
    except pl.exceptions.PolarsError:  # it needs to know its columns
        return None


def _many(expression: pl.Expr) -> bool:
    return expression.meta.has_multiple_outputs()


def _computed(rows: pl.DataFrame, expression: pl.Expr) -> pl.DataFrame | None:
    """Compute on some rows; None: it raises."""
    try:
        found = rows.select(pl.struct(expression).alias("found"))
        # categories of two frames cannot be compared in old versions
        found = found.cast({"found": plain(found.dtypes[0])})
    except _FAILURES:
        return None
    if len(found) == 1 and len(rows) != 1:
        found = pl.concat([found] * len(rows)) if len(rows) else found[:0]
    return found


def _made_up(schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Make rows that repeat values, have nulls, and combine values of columns differently."""
    columns = [
        pl.Series(name, _cycled(_values(dtype), 1 + number % 6), dtype=dtype, strict=False)
        for number, (name, dtype) in enumerate(schema.items())
    ]
    return pl.DataFrame(columns) if columns else pl.DataFrame({"": [0] * _ROWS})


def _cycled(values: Sequence[Any], step: int) -> list[Any]:
    return [values[place * step % len(values)] for place in range(_ROWS)]


_DAY = datetime.datetime(2020, 2, 29, 12, 30)
_TEXTS = (
    "b", "a", "", None, "a", "10", "2020-02-29", "29/02/2020", "2020-02-29T12:30:00", '{"a": 1}',
    "7", "1.5", "c",
)  # fmt: skip


@lru_cache(maxsize=256)
def _values(dtype: pl.DataType) -> tuple[Any, ...]:
    """List values of a type, small ones: some functions make as many as a number says.

    A prime number of them, so that every step through them meets all.
    """
    if isinstance(dtype, pl.List | pl.Array):
        inner = _values(dtype.inner)  # pyright: ignore[reportArgumentType]
        if isinstance(dtype, pl.Array):
            size = dtype.size
            made = [[inner[(n + k) % len(inner)] for k in range(size)] for n in range(6)]
            return (*made, None)
        return (inner, [], inner[:1], None, inner[1:3] * 20, inner[::-1], inner[:1])
    if isinstance(dtype, pl.Struct):
        parts = [(each.name, _values(each.dtype)) for each in dtype.fields]  # pyright: ignore[reportArgumentType]
        return (
            *({name: found[(n + k) % len(found)] for k, (name, found) in enumerate(parts)}
              for n in range(10)),
            None,
        )  # fmt: skip
    if isinstance(dtype, pl.Boolean):
        return (True, False, None, True, True, False, False)
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return _TEXTS
    if isinstance(dtype, pl.Binary):
        return (b"b", b"a", b"", None, b"a", b"10", b"\xff")
    if isinstance(dtype, pl.Date | pl.Datetime):
        days = [_DAY + datetime.timedelta(days=40 * n, seconds=7 * n) for n in (3, 0, 1, 1, 5, 9)]
        return (*(day.date() if isinstance(dtype, pl.Date) else day for day in days), None)
    if isinstance(dtype, pl.Time):
        return (*(datetime.time(hour, hour) for hour in (3, 0, 1, 1, 5, 9)), None)
    if isinstance(dtype, pl.Duration):
        return (*(datetime.timedelta(hours=hour) for hour in (3, 0, 1, 1, 5, 9)), None)
    if isinstance(dtype, pl.Decimal):
        return (*(Decimal(number) for number in (3, 0, 1, 1, 5, 9)), None)
    if dtype.is_float():
        return (3.5, 0.0, 1.0, None, 1.0, float("nan"), 9.0, -2.0, 0.25, float("inf"), 2.0)
    if dtype.is_integer():
        return (3, 0, 1, None, 1, 5, 9)
    return (None,)
