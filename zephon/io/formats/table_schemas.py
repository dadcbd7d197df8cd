"""What schemas of tables have at a dotted path, whether a plan can read it, and all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from zephon.errors import DatasetError, nearest
from zephon.io.column_types import may_become
from zephon.io.field_types import FoundType, TypesSeen
from zephon.io.fields import Column, Field, can_hold, merged_kind
from zephon.io.formats.arrow_columns import kind_of_type, numbers_of_type


def type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Give the type at a dotted path; None if there is nothing at it."""
    if path in schema.names:
        return schema.field(path).type
    first, *inner = path.split(".")
    if first not in schema.names:
        return None
    dtype = schema.field(first).type
    for name in inner:
        if not pa.types.is_struct(dtype) or dtype.get_field_index(name) < 0:
            return None
        dtype = dtype.field(name).type
    return dtype


def type_of(schema: pa.Schema, column: Column) -> pa.DataType | None:
    """Give the type that a schema has for a column; None if there is nothing to read."""
    if column.named and column.path not in schema.names:
        return None
    return type_at(schema, column.path)


def types_of_schemas(schemas: Iterable[tuple[str, pa.Schema]]) -> dict[str, FoundType]:
    """Join the types of columns over some schemas, each with the place that has it."""
    seen = TypesSeen()
    for place, schema in schemas:
        names = Counter(schema.names)
        for field in schema:
            if names[field.name] > 1:
                why = f"{place} has {names[field.name]} columns of that name"
                seen.add_odd(field.name, f"{why}; rewrite the file with distinct names")
            seen.add(field.name, field.type, place)
    return seen.found()


def fields_of_schemas(schemas: Sequence[pa.Schema]) -> tuple[tuple[Field, ...], bool]:
    """Join the columns of some schemas; the second says whether every one has every column."""
    kinds: dict[str, list[str]] = {}
    for schema in schemas:
        for field in schema:
            kinds.setdefault(field.name, []).append(kind_of_type(field.type))
    fields = tuple(Field(name, merged_kind(seen)) for name, seen in kinds.items())
    return fields, all(set(schema.names) == set(kinds) for schema in schemas)


def check_column(dataset: str, shard: str, schema: pa.Schema, column: Column) -> None:
    """Refuse a column that a shard does not have, or not in the wanted type.

    Raises:
        DatasetError: names shard and column, and what there is.
    """
    where, path = f"dataset {dataset!r}, shard {shard!r}", column.path
    there = ", ".join(schema.names)
    first = path if column.named or path in schema.names else path.split(".")[0]
    if schema.names.count(first) > 1:
        raise DatasetError(
            f"{where}: column {first!r} must be there once, got {schema.names.count(first)} "
            f"columns of that name; rewrite the file with distinct names"
        )
    bar = None if column.named else _bar(schema, path)
    if bar and not (column.kind == "any" and pa.types.is_null(bar[1])):
        raise DatasetError(
            f"{where}: column {path!r} must lie in structs, got {bar[1]} at {bar[0]!r}; the "
            f"columns are {there}"
        )
    dtype = type_of(schema, column)
    if dtype is None:
        if column.missing == "error" and column.kind != "any":
            raise DatasetError(
                f"{where}: no column {path!r}; it has {there} ({nearest(path, schema.names)})"
            )
        return
    if column.kind == "any":
        readable = may_become(dtype, column.type)
    elif column.kind == "text":
        readable = kind_of_type(dtype) in ("text", "bytes") or pa.types.is_null(dtype)
    else:
        readable = can_hold(column.kind, numbers_of_type(dtype))
    if not readable:
        way_out = f"name another of {there}, or {column.remedy('rewrite the column')}"
        if column.kind == "any":
            way_out = (
                "leave it out of schema=, or give the type that the file has there, and convert it "
                "with an expression"
            )
        raise DatasetError(
            f"{where}: column {path!r} must be {column.wanted}, got {dtype}; {way_out}"
        )


def check_declared_columns(
    dataset: str,
    there: Sequence[tuple[str, pa.Schema]],
    columns: Sequence[Column],
    check: Callable[[str, str, pa.Schema, Column], None] = check_column,
) -> None:
    """Refuse columns that no shard has, or that one has in a type that cannot be read so.

    Args:
        dataset: its name, for messages.
        there: shards by name, of each different schema one.
        columns: what the user says there is.
        check: refuses a column that a shard has in no readable type.

    Raises:
        DatasetError: names the column, and what there is.
    """
    for column in columns:
        for name, schema in there:
            check(dataset, name, schema, column)
        if there and all(type_of(schema, column) is None for _, schema in there):
            names = dict.fromkeys(name for _, schema in there for name in schema.names)
            raise DatasetError(
                f"dataset {dataset!r}: schema must name columns, got {column.path!r}, which no "
                f"shard has; {nearest(column.path, names)}"
            )


def check_whole_rows(dataset: str, shard: str, schema: pa.Schema) -> None:
    """Refuse whole rows of a shard in which one column would hide another.

    Raises:
        DatasetError: two columns have one name; names shard and column.
    """
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise DatasetError(
            f"dataset {dataset!r}, shard {shard!r}: whole rows must have columns of distinct "
            f"names, got {schema.names.count(twice)} named {twice!r}; rewrite the file, or read "
            f"others alone with select()"
        )


def _bar(schema: pa.Schema, path: str) -> tuple[str, pa.DataType] | None:
    """Find what on the way to a nested leaf is no struct, and so bars it."""
    parts = path.split(".")
    if path in schema.names:
        return None
    for stop in range(1, len(parts)):
        prefix = ".".join(parts[:stop])
        dtype = type_at(schema, prefix)
        if dtype is not None and not pa.types.is_struct(dtype):
            return prefix, dtype
    return None
