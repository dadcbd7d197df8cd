"""Which columns an expression with selectors chooses, where it is called.

Selectors choose among all columns of a frame; a running plan has only some of them. So an
expression with selectors says which columns it must see to choose as it did among all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from zephon.errors import PlanError
from zephon.expressions.refusing import fitting, shown

_STAND_INS = (
    pl.Null(), pl.Int64(), pl.UInt8(), pl.Float64(), pl.String(), pl.Boolean(), pl.Binary(),
    pl.Date(), pl.Datetime("us"), pl.Duration("us"), pl.Time(), pl.List(pl.String()),
    pl.List(pl.Int64()), pl.Struct({"a": pl.Int64()}),
)  # fmt: skip


def outputs(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType]
) -> dict[str, pl.DataType]:
    """Name the columns that an expression gives, with their types.

    Raises:
        PlanError: it does not fit the columns; says what Polars says.
    """
    with fitting(call, expression, schema):
        return dict(pl.LazyFrame(schema=dict(schema)).select(expression).collect_schema())


def chosen(
    call: str,
    expression: pl.Expr,
    fields: Mapping[str, pl.DataType | None],
    complete: bool,
    why: Callable[[str], str],
) -> tuple[str, ...]:
    """List the columns that an expression with selectors must see, in the order of the fields.

    Args:
        call: the public call, for messages.
        expression: gives several columns, or takes them.
        fields: what is known; None: of no known type.
        complete: there are no other fields.
        why: says that a type is not known, why, and what to do.

    Raises:
        PlanError: it might choose a field that nobody knows, or whose type nobody knows, or one
            whose name is a pattern.
    """
    _check_unknown(call, expression, fields, why)
    schema = {name: dtype or pl.Null() for name, dtype in fields.items()}
    wanted = outputs(call, expression, schema)
    leaves = _selections(expression)
    names = set(expression.meta.root_names())
    for leaf in leaves or ():
        found = list(outputs(call, leaf, schema))
        names.update(found)
        if not complete and not _by_name(leaf, found):
            leaves = None
    if leaves is None and not complete:
        raise PlanError(
            f"{call}: {shown(expression)} chooses among all fields, and rows may have others than "
            f"{', '.join(fields)}; name the fields"
        )
    if expression.meta.is_column_selection():
        reads = list(wanted)
    else:
        reads = [name for name in fields if name in names]
        if leaves is None or wanted != _tried(expression, {name: schema[name] for name in reads}):
            reads = list(fields)
    for name in reads:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise PlanError(
                f"{call}: {shown(expression)} chooses field {name!r}, a name that Polars takes for "
                "a pattern; rename the field before"
            )
        if fields[name] is None:
            raise PlanError(f"{call}: {why(name)}")
    return tuple(reads)


def _check_unknown(
    call: str,
    expression: pl.Expr,
    fields: Mapping[str, pl.DataType | None],
    why: Callable[[str], str],
) -> None:
    """Refuse what chooses otherwise if a field has another type than it might have."""
    schema = {name: dtype or pl.Null() for name, dtype in fields.items()}
    first = _tried(expression, schema)
    for name, dtype in fields.items():
        if dtype is not None:
            continue
        for stand_in in _STAND_INS:
            found = _tried(expression, {**schema, name: stand_in})
            if found is None or first is None or list(found) != list(first):
                raise PlanError(f"{call}: {why(name)}")


def _tried(expression: pl.Expr, schema: Mapping[str, pl.DataType]) -> dict[str, pl.DataType] | None:
    try:
        return outputs("", expression, schema)
    except PlanError:
        return None


def _selections(expression: pl.Expr) -> Sequence[pl.Expr] | None:
    """List the selectors in an expression; None: nobody can tell."""
    if not expression.meta.has_multiple_outputs():
        return []
    if expression.meta.is_column_selection():
        return [expression]
    try:
        inputs = expression.meta.pop()
    except pl.exceptions.PolarsError:
        return None
    found = [_selections(each) for each in inputs]
    if any(each is None for each in found):
        return None
    return [leaf for each in found if each is not None for leaf in each]


def _by_name(leaf: pl.Expr, names: list[str]) -> bool:
    return bool(names) and leaf.meta.eq(pl.col(names))
