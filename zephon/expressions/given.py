"""What a call over columns was given becomes expressions, or is refused where it was called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from zephon.column_steps import ColumnStep, Expression, can_name_a_column
from zephon.errors import PlanError, nearest
from zephon.expressions.arrow_types import arrow_type, polars_type
from zephon.expressions.choosing import chosen, outputs
from zephon.expressions.refusing import fitting, shown
from zephon.expressions.row_by_row import check_rows, written_down

_EXAMPLE = "such as pl.col('score') > 0.5"

Known = Sequence[tuple[str, pa.DataType | None]]
"""Names and types of fields; None: nobody knows the type."""


def expression_step(
    call: str,
    given: Iterable[object],
    fields: Known,
    complete: bool,
    why: Callable[[str], str],
    named: Mapping[str, object] | None = None,
) -> ColumnStep:
    """Make a step of kind "filter", "select" or "with_columns"; arguments as of ``resolve``."""
    return ColumnStep(call, resolve(call, given, fields, complete, why, named))


def resolve(
    call: str,
    given: Iterable[object],
    fields: Known,
    complete: bool,
    why: Callable[[str], str],
    named: Mapping[str, object] | None = None,
) -> tuple[Expression, ...]:
    """Make expressions of what a call was given.

    Args:
        call: "filter", "select" or "with_columns".
        given: expressions, and names of columns but for "filter"; or iterables of these.
        fields: those that are known here.
        complete: rows have no other fields.
        why: says why nobody knows the type of a field, and what to do.
        named: expressions by the name of what they give.

    Raises:
        PlanError: something is no expression, reads a field that is not there or of unknown type,
            fits no types, looks past its row, calls Python, or gives no boolean to "filter"; or two
            give one name; or there is none.
    """
    types = {
        name: None if dtype is None else polars_type(dtype)
        for name, dtype in fields
        if can_name_a_column(name)
    }
    arrow = dict(fields)

    def reason(name: str) -> str:
        dtype = arrow.get(name)
        if dtype is None:
            return f"the type of field {name!r} is not known; {why(name)}"
        return (
            f"Polars cannot hold field {name!r}, which is {dtype}; drop the field before, or read "
            "it with map_transform"
        )

    found: list[Expression] = []
    known = {name: dtype for name, dtype in types.items() if dtype is not None}
    for expression in _expressions(call, given, named or {}):
        with fitting(call, expression, known):
            found += _made(call, expression, types, arrow, complete, reason)
    if not found:
        way_out = f"write one, {_EXAMPLE}" if call == "filter" else "name a column"
        raise PlanError(f"{call}: expected at least one expression, got none; {way_out}")
    names = [each.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and call != "filter":
        raise PlanError(
            f"{call}: two expressions give {twice!r}; name one of them with .alias(...)"
        )
    return tuple(found)


def _expressions(
    call: str, given: Iterable[object], named: Mapping[str, object]
) -> Iterator[pl.Expr]:
    for each in given:
        if call == "filter" and _is_mask(each):
            raise PlanError(
                "filter: expected a Polars expression, got values of a mask "
                f"({type(each).__name__}), which belong to no rows here; write a condition on "
                f"fields, {_EXAMPLE}"
            )
        if isinstance(each, Iterable) and not isinstance(each, str | bytes | Mapping | pl.Expr):
            yield from (_expression(call, item) for item in each)
        else:
            yield _expression(call, each)
    for name, each in named.items():
        yield _expression(call, each).alias(_sure_name(call, name))


def _sure_name(call: str, name: str) -> str:
    if not can_name_a_column(name):
        raise PlanError(f"{call}: a name must be UTF-8, got {name!r}; read it with map_transform")
    return name


def _is_mask(given: Any) -> bool:
    """Say whether something holds a value for each of some rows, as a mask does."""
    if isinstance(given, pl.Series | np.ndarray | pa.Array | pa.ChunkedArray):
        return True
    several = isinstance(given, list | tuple) and len(given) > 0
    return several and all(isinstance(each, bool | np.bool_) for each in given)


def _expression(call: str, given: Any) -> pl.Expr:
    if isinstance(given, pl.Expr):
        return given
    if isinstance(given, str) and call != "filter":
        return pl.col(_sure_name(call, given))
    wanted = "a Polars expression" if call == "filter" else "a Polars expression or a column's name"
    way_out = f"write one, {_EXAMPLE}"
    if isinstance(given, bool | np.bool_):
        way_out = "join conditions with & and |, not with `and`, `or` or a chain of comparisons"
    elif call == "filter" and given is None:
        way_out = "leave the call out to keep all rows"
    elif call != "filter" and (isinstance(given, int | float | bytes) or given is None):
        way_out = f"for a constant pass pl.lit({given!r})"
    raise PlanError(f"{call}: expected {wanted}, got {given!r}; {way_out}")


def _made(
    call: str,
    expression: pl.Expr,
    types: Mapping[str, pl.DataType | None],
    arrow: Mapping[str, pa.DataType | None],
    complete: bool,
    why: Callable[[str], str],
) -> list[Expression]:
    data = written_down(call, expression)
    reads = tuple(dict.fromkeys(expression.meta.root_names()))
    for name in reads:
        _check_field(call, name, types, complete, why)
    several = expression.meta.has_multiple_outputs()
    if several:
        reads = chosen(call, expression, types, complete, why)
        if expression.meta.is_column_selection():
            found = [_made(call, pl.col(name), types, arrow, complete, why) for name in reads]
            return [made for each in found for made in each]
    schema = {name: _sure(types, name) for name in reads}
    found = outputs(call, expression, schema)
    check_rows(call, expression, schema, several=several)
    made = []
    for name, dtype in found.items():
        if call == "filter" and dtype != pl.Boolean:
            raise PlanError(
                f"filter: expected a boolean expression, {shown(expression)} gives {dtype}; "
                "compare it with something"
            )
        given = arrow_type(dtype)
        if given is None:
            raise PlanError(
                f"{call}: {shown(expression)} gives {dtype}, which Arrow does not hold; cast it"
            )
        each = Expression(data, reads, name, given, several)
        column = each.column
        kept = None if column is None else arrow[column]  # handed on as it is
        made.append(each if kept is None else Expression(data, reads, name, kept))
    return made


def _sure(types: Mapping[str, pl.DataType | None], name: str) -> pl.DataType:
    return types[name] or pl.Null()


def _check_field(
    call: str,
    name: str,
    types: Mapping[str, pl.DataType | None],
    complete: bool,
    why: Callable[[str], str],
) -> None:
    if name not in types:
        raise PlanError(f"{call}: {_no_field(name, types, complete)}")
    if types.get(name) is None:
        raise PlanError(f"{call}: {why(name)}")


def _no_field(name: str, types: Mapping[str, pl.DataType | None], complete: bool) -> str:
    """Say that nobody knows a field, which one is meant, and what to do."""
    head, *inside = name.split(".")
    if inside and isinstance(types.get(head), pl.Struct):
        path = "".join(f".struct.field({each!r})" for each in inside)
        return f"no field {name!r}; what is inside an object is pl.col({head!r}){path}"
    if complete:
        return f"no field {name!r}; {nearest(name, types)}"
    return (
        f"no field {name!r} is known; {nearest(name, types)}; a field that few rows have is "
        "declared with schema="
    )
