"""What messages about expressions say: the expression on one line, and what Polars says of it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping

import polars as pl

from zephon.errors import PlanError, nearest


def shown(expression: pl.Expr) -> str:
    """Write an expression on one line."""
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_line(problem: BaseException) -> str:
    """Give the first line of what an exception says; with the reason, where it only leads there."""
    lines = [line.strip() for line in str(problem).strip().splitlines()]
    if not lines:
        return type(problem).__name__
    if lines[0].endswith(":"):
        why = next((line for line in lines if line.startswith("error: ")), "")
        return f"{lines[0]} {why.removeprefix('error: ')}".rstrip(": ")
    return lines[0]


@contextlib.contextmanager
def fitting(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType]
) -> Generator[None, None, None]:
    """Let Polars look at an expression over columns of these types.

    Raises:
        PlanError: Polars raised, or panicked; says what it says.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as exc:
        raise does_not_fit(call, expression, schema, exc) from exc


def does_not_fit(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType], problem: BaseException
) -> PlanError:
    """Say that an expression cannot be computed over columns of these types, and why."""
    if isinstance(problem, pl.exceptions.StructFieldNotFoundError):
        return _no_struct_field(call, expression, schema, first_line(problem))
    return PlanError(
        f"{call}: {shown(expression)} does not fit the fields {', '.join(schema)}: "
        f"{first_line(problem)}; mend the expression, or cast a field"
    )


def _no_struct_field(
    call: str, expression: pl.Expr, schema: Mapping[str, pl.DataType], name: str
) -> PlanError:
    read = {each: schema[each] for each in expression.meta.root_names() if each in schema}
    inside = dict.fromkeys(each for dtype in read.values() for each in _names_in(dtype))
    if inside:
        return PlanError(
            f"{call}: {shown(expression)} reads {name!r}, which no object in {', '.join(read)} "
            f"has; {nearest(name, inside)}"
        )
    told = ", ".join(f"{each} is {dtype}" for each, dtype in read.items())
    return PlanError(
        f"{call}: {shown(expression)} reads {name!r} of an object, but there is none: {told}; "
        "take the objects out of a list with .list, or name another field"
    )


def _names_in(dtype: pl.DataType) -> Iterator[str]:
    """Name the fields of structs, at any depth."""
    inner: Iterable[object] = ()
    if isinstance(dtype, pl.Struct):
        yield from (each.name for each in dtype.fields)
        inner = [each.dtype for each in dtype.fields]
    elif isinstance(dtype, pl.List | pl.Array):
        inner = [dtype.inner]
    for each in inner:
        if isinstance(each, pl.DataType):
            yield from _names_in(each)
