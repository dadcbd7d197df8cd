"""Refuse expressions with categories, whose numbers tell what a process happened to meet before.

Polars gives a category its number when it meets the text first, so numbers, and hashes of them,
differ between processes. An Enum numbers its categories itself. Fields never hold categories, but
their texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import polars as pl

from zephon.errors import PlanError
from zephon.expressions.refusing import shown

_QUOTED = re.compile(r'"[^"]*"')
_NAME = "Categorical"


def check_categories(call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType]) -> None:
    """Refuse an expression of which any part is a Categorical.

    Args:
        call: the public call, for messages.
        expression: that has types over these columns.
        schema: the columns that it reads.

    Raises:
        PlanError: there is one; or categories are looked at where there are none, which Polars
            does not survive.
    """
    for part, inputs in _parts(expression):
        if any(map(_has_categories, _types(part, schema))):
            raise _refused(call, part)
        for each in inputs:
            if not str(part).startswith(f"{each}.cat."):
                continue
            types = _types(each, schema)
            if not all(isinstance(dtype, pl.Enum | pl.Categorical) for dtype in types):
                raise PlanError(
                    f"{call}: expected an Enum before .cat, {shown(each)} is "
                    f"{', '.join(map(str, types))}; use .str, or cast it to pl.Enum([...])"
                )
    if _NAME in _QUOTED.sub("", str(expression)):  # where parts cannot be asked, as in list.eval
        raise _refused(call, expression)


def _refused(call: str, part: pl.Expr) -> PlanError:
    return PlanError(
        f"{call}: expected no Categorical, whose numbers differ between processes, "
        f"{shown(part)} is one; use pl.String, or pl.Enum([...]) with all categories"
    )


def _parts(expression: pl.Expr) -> Iterator[tuple[pl.Expr, list[pl.Expr]]]:
    """Give an expression and all in it, each with what it is made of."""
    meta = expression.meta
    inputs: list[pl.Expr] = []
    if not meta.is_column() and not meta.is_literal():
        try:
            inputs = meta.pop()
        except pl.exceptions.PolarsError:
            inputs = []
    yield expression, inputs
    for each in inputs:
        yield from _parts(each)


def _types(part: pl.Expr, schema: Mapping[str, pl.DataType]) -> list[pl.DataType]:
    """Give the types of what a part gives; none if it has none by itself."""
    try:
        found = pl.LazyFrame(schema=dict(schema)).select(part).collect_schema()
    except pl.exceptions.PolarsError:
        return []
    return list(dict.fromkeys(found.dtypes()))


def _has_categories(dtype: object) -> bool:
    if isinstance(dtype, pl.List | pl.Array):
        return _has_categories(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return any(_has_categories(each.dtype) for each in dtype.fields)
    return isinstance(dtype, pl.Categorical)
