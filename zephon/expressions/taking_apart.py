"""Take a predicate apart: conjunctions, disjunctions, and comparisons of a column with constants.

A part is recognized by building it anew and asking Polars whether the two are the same expression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import polars as pl

from zephon.column_steps import Expression
from zephon.expressions.bounds import (
    COMPARE,
    AmongTest,
    Both,
    BoundTest,
    Either,
    NullTest,
    Test,
    Unknown,
    WholeTest,
)
from zephon.forks import polars_needed

_MOST_VALUES = 100
_CLOSED = ("both", "left", "right", "none")
_OF_ANY: tuple[Callable[[pl.Expr], pl.Expr], ...] = (
    pl.Expr.is_null, pl.Expr.is_not_null, pl.Expr.is_nan, pl.Expr.is_not_nan, pl.Expr.not_,
    lambda inner: inner.str.len_chars(), lambda inner: inner.str.len_bytes(),
    lambda inner: inner.list.len(),
)  # fmt: skip
_OF_TWO: tuple[Callable[[pl.Expr, pl.Expr], pl.Expr], ...] = (
    operator.and_, operator.or_, operator.xor, pl.Expr.eq_missing, pl.Expr.ne_missing,
    lambda first, second: first.str.starts_with(second),
    lambda first, second: first.str.ends_with(second),
)  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def test_of(predicate: Expression) -> Test:
    """Take a predicate apart."""
    return Unknown() if predicate.chooses else _taken_apart(predicate.build())


def cannot_raise(predicate: Expression) -> bool:
    """Say whether a predicate is made of comparisons and tests alone, which take every value.

    Arithmetic is not among them: decimals and times may be too large.
    """
    return not predicate.chooses and _takes_every_value(predicate.build())


def compares_literals(expression: pl.Expr) -> bool:
    """Say whether an expression is made of comparisons of columns with literals alone.

    Such a one surely looks at each row by itself; lists of values count as something else.
    """
    return _all_bounds(_taken_apart(expression)) and _ends_in_literals(expression)


def _all_bounds(test: Test) -> bool:
    if isinstance(test, Both | Either):
        return all(_all_bounds(part) for part in test.parts)
    return isinstance(test, BoundTest | NullTest | WholeTest)


def _ends_in_literals(expression: pl.Expr) -> bool:
    """Say whether all that reads no column is a literal, so that nothing is left to chance."""
    meta = expression.meta
    if meta.is_column() or meta.is_literal():
        return True
    return bool(meta.root_names()) and all(_ends_in_literals(inner) for inner in meta.pop())


def _takes_every_value(expression: pl.Expr) -> bool:
    meta = expression.meta
    if meta.is_column() or meta.is_literal():
        return True
    try:
        inputs = meta.pop()[::-1]
    except pl.exceptions.PolarsError:
        return False
    match inputs:
        case [inner]:
            name = meta.output_name(raise_if_undetermined=False) or ""
            made = [inner.alias(name), inner.struct.field(name), *(of(inner) for of in _OF_ANY)]
        case [first, second]:
            made = [compare(first, second) for compare in (*COMPARE.values(), *_OF_TWO)]
            if second.meta.is_literal():  # which has been tried already
                made += [first.is_in(second), first.str.contains(second)]
        case [column, lower, upper]:
            made = [column.is_between(lower, upper, closed=closed) for closed in _CLOSED]
        case _:
            made = []
    return any(map(meta.eq, made)) and all(map(_takes_every_value, inputs))


def _taken_apart(expression: pl.Expr) -> Test:
    meta = expression.meta
    if meta.is_column():
        return BoundTest(meta.root_names()[0], high=expression)
    if meta.is_literal():
        return Unknown()
    try:
        inputs = meta.pop()[::-1]
    except pl.exceptions.PolarsError:
        return Unknown()
    match inputs:
        case [inner]:
            return _of_one(expression, inner)
        case [first, second] if meta.eq(first & second):
            return Both((_taken_apart(first), _taken_apart(second)))
        case [first, second] if meta.eq(first | second):
            return Either((_taken_apart(first), _taken_apart(second)))
        case [first, second]:
            return _of_two(expression, first, second)
        case [column, lower, upper] if column.meta.is_column():
            return _between(expression, column, lower, upper)
        case _:
            return Unknown()


def _of_one(expression: pl.Expr, inner: pl.Expr) -> Test:
    meta = expression.meta
    if meta.eq(inner.alias(meta.output_name(raise_if_undetermined=False) or "")):
        return _taken_apart(inner)
    if not inner.meta.is_column():
        return Unknown()
    name = inner.meta.root_names()[0]
    if meta.eq(inner.is_null()):
        return NullTest(name, null=True)
    if meta.eq(inner.is_not_null()):
        return NullTest(name, null=False)
    if meta.eq(~inner):
        return BoundTest(name, low=expression)
    return Unknown()


def _of_two(expression: pl.Expr, first: pl.Expr, second: pl.Expr) -> Test:
    for sign, compare in COMPARE.items():
        if expression.meta.eq(compare(first, second)):
            if first.meta.is_column():
                return _compared(first, sign, second)
            return _compared(second, _TURNED[sign], first)
    if first.meta.is_column() and expression.meta.eq(first.is_in(second)):
        return _among(expression, first, second)
    return Unknown()


def _compared(column: pl.Expr, sign: str, constant: pl.Expr) -> Test:
    value = _constant(constant)
    if not column.meta.is_column() or value is None or len(value) != 1 or not _ordinary(value):
        return Unknown()
    name = column.meta.root_names()[0]
    test = _bounded(name, column, sign, constant)
    if not value.dtype.is_integer():
        return test
    return WholeTest(name, sign, int(value.item()), test)


def _bounded(name: str, column: pl.Expr, sign: str, constant: pl.Expr) -> BoundTest:
    expression = COMPARE[sign](column, constant)
    if sign in ("<", "<="):
        return BoundTest(name, low=expression)
    if sign in (">", ">="):
        return BoundTest(name, high=expression, large=True)
    if sign == "!=":
        return BoundTest(name, both=expression, large=True)
    return BoundTest(name, low=column <= constant, high=column >= constant)


def _between(expression: pl.Expr, column: pl.Expr, lower: pl.Expr, upper: pl.Expr) -> Test:
    for closed in _CLOSED:
        if not expression.meta.eq(column.is_between(lower, upper, closed=closed)):
            continue
        for end in (lower, upper):
            value = _constant(end)
            if value is None or len(value) != 1 or not _ordinary(value):
                return Unknown()
        # it may convert its three sides otherwise than a comparison does, so both must be false;
        # NaN is above each upper end, so it is never between
        return BoundTest(
            column.meta.root_names()[0],
            low=(column < upper if closed in ("left", "none") else column <= upper) | expression,
            high=(column > lower if closed in ("right", "none") else column >= lower) | expression,
        )
    return Unknown()


def _among(expression: pl.Expr, column: pl.Expr, constant: pl.Expr) -> Test:
    values = _constant(constant)
    if values is None:
        return Unknown()
    if isinstance(values.dtype, pl.List | pl.Array):
        values = values.explode()
    values = values.drop_nulls()
    if not 0 < len(values) <= _MOST_VALUES or not _ordinary(values):
        return Unknown()
    return AmongTest(column.meta.root_names()[0], values, expression)


def _constant(expression: pl.Expr) -> pl.Series | None:
    """Compute what reads no column; None: it does."""
    if expression.meta.root_names() or expression.meta.has_multiple_outputs():
        return None
    polars_needed()
    try:
        return pl.select(expression).to_series()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


def _ordinary(values: pl.Series) -> bool:
    """Say whether no value is null, NaN or a category, which comparisons have own rules for."""
    if values.null_count() or values.dtype.is_nested() or isinstance(values.dtype, pl.Categorical):
        return False
    return not (values.dtype.is_float() and values.is_nan().any())
