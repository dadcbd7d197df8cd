"""Refuse expressions that look past one row, at chance, into Python, or at Polars' version.

Polars says of a node of an expression whether it works row by row, and says so of a sum that holds
a mean: so every node is asked. Some nodes cannot be asked without a schema, and old versions cannot
be asked at all; so each expression is also computed on small made-up rows, together and one by one,
and twice: what differs is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import polars as pl

from zephon.errors import PlanError
from zephon.expressions.arrow_types import plain
from zephon.expressions.categories import check_categories
from zephon.expressions.made_up import ROWS, made_up
from zephon.expressions.refusing import first_line, fitting, shown
from zephon.expressions.taking_apart import compares_literals

_IN_PYTHON = (b"PLPYFN", b"PLPYUDF", b"cloudpickle")
_HASH = b"function\x81\xa4Hash"  # the call itself, which no text looks like


def written_down(call: str, expression: pl.Expr) -> bytes:
    """Give an expression as bytes.

    Raises:
        PlanError: a Python function is in it, or what versions of Polars compute differently.
    """
    try:
        data = expression.meta.serialize()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ImportError) as exc:
        raise PlanError(
            f"{call}: {shown(expression)} cannot be written down ({first_line(exc)}); use "
            "map_transform for what Python must do"
        ) from exc
    if any(mark in data for mark in _IN_PYTHON):
        raise PlanError(
            f"{call}: expected an expression that Polars computes by itself, {shown(expression)} "
            "calls a Python function; use map_transform"
        )
    if _HASH in data:
        raise PlanError(
            f"{call}: expected an expression that every version of Polars computes alike, "
            f"{shown(expression)} calls hash(), which promises that of none; hash in "
            "map_transform, with hashlib"
        )
    return data


def check_rows(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType], *, several: bool
) -> None:
    """Refuse an expression that does not look at each row by itself, or never works.

    Args:
        call: the public call, for messages.
        expression: that has types over these columns.
        schema: the columns that it reads, in order; those that selectors choose from.
        several: selectors are in it, or it gives several columns.

    Raises:
        PlanError: a value of it depends on other rows, on chance, or on what this process met
            before; its type depends on values; or Polars computes it of no values of these types.
    """
    with fitting(call, expression, schema):  # after a panic, told on the terminal, nothing more
        rows = made_up(schema)
        with warnings.catch_warnings():  # of what is deprecated, which is told where it runs
            warnings.simplefilter("ignore")
            simple = not several and compares_literals(expression)
            if simple and _computed(rows, expression) is not None:
                return  # what is asked below takes most of the time of a call
        odd, sure = _asked(expression, several)
        if odd is not None:
            raise _not_by_row(call, expression, odd)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_categories(call, expression, schema)
            alike = _alike(call, rows, expression, sure)
            if alike is None and _computed(rows, expression) is None:
                for nulls in ([], [None]):  # what cannot be computed even of these
                    few = pl.DataFrame(dict.fromkeys(schema, nulls), schema=dict(schema))
                    few.select(expression)
            if alike and _computed(rows[:0], expression) is None:
                # by whether a value is there it is of another type, so all nulls would raise too
                pl.DataFrame(schema=dict(schema)).select(expression)
    if alike is False or (alike is None and not sure):
        raise _not_by_row(call, expression, expression)


def _alike(call: str, rows: pl.DataFrame, expression: pl.Expr, sure: bool) -> bool | None:
    """Say whether rows give the same together, again, turned around and one by one.

    Rows of which one alone cannot be computed are left out; None: then none is left. One that gives
    none or several is an answer too, unless Polars is sure that it is not so.

    Raises:
        PlanError: single rows give values of different types.
    """
    single = [_computed(rows[place : place + 1], expression) for place in range(ROWS)]
    good = [place for place, found in enumerate(single) if found is not None and len(found) == 1]
    if not sure and len(good) < sum(found is not None for found in single):
        return False
    if not good:
        return None
    alone = [found for found in single if found is not None and len(found) == 1]
    types = list(dict.fromkeys(found.dtypes[0] for found in alone))
    if len(types) > 1:
        raise _not_one_type(call, expression, types)
    some = rows[good]
    whole, again, turned = (_computed(each, expression) for each in (some, some, some[::-1]))
    if whole is None or again is None or turned is None:
        return False
    apart = pl.concat(alone)
    return whole.equals(again) and whole.equals(apart) and whole.equals(turned[::-1])


def _not_one_type(call: str, expression: pl.Expr, types: Sequence[pl.DataType]) -> PlanError:
    """Say that rows give different types, each a struct of what the expression gives."""
    inside = [[f.dtype for f in each.fields] for each in types if isinstance(each, pl.Struct)]
    odd = [pair for pair in zip(*inside[:2], strict=False) if pair[0] != pair[1]] or [types]
    return PlanError(
        f"{call}: expected an expression that gives one type, {shown(expression)} gives "
        f"{odd[0][0]} for some rows and {odd[0][1]} for others; name what is inside an object "
        "with .struct.field(...), or use a function"
    )


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
    except Exception:  # whatever it is, these rows cannot be computed
        return None
    if len(found) == 1 and len(rows) != 1:
        found = pl.concat([found] * len(rows)) if len(rows) else found[:0]
    return found
