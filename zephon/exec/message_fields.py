"""Where in a row a list of messages lies: a field of some name, or a dotted path into objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zephon.errors import DataTypeError
from zephon.exec.bad_row import BadRow


def path_of(call: str, row: Any, field: str) -> tuple[str, ...]:
    """Say which names lead to a field; a field of exactly that name wins over a dotted path.

    Raises:
        BadRow: the row is no dict.
    """
    checked_row(call, row, field)
    return (field,) if field in row else tuple(field.split("."))


def checked_row(call: str, row: Any, field: str) -> Mapping[str, Any]:
    """Refuse what is no dict; ``field``: one that it should have."""
    if isinstance(row, Mapping):
        return row
    raise BadRow(
        call,
        f"a row must be a dict with a field {field!r}, got a {type(row).__name__}",
        "make dicts of the rows first, with map_transform",
        kind=DataTypeError,
    )


def found(row: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Say whether a row has a field, and give its value; a field of exactly that name wins.

    >>> found({"a": {"b": 1}}, "a.b"), found({"a.b": 2, "a": {}}, "a.b"), found({}, "a")
    ((True, 1), (True, 2), (False, None))
    """
    if path in row:
        return True, row[path]
    value: Any = row
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


def messages_at(call: str, row: Mapping[str, Any], field: str) -> list[Any]:
    """Give a new list of what a field holds.

    Raises:
        BadRow: there is no such field, or no list in it.
    """
    there, value = found(row, field)
    if not there:
        raise no_field(call, row, field)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        text = isinstance(value, str | bytes)
        way_out = "read its JSON with map_transform before" if text else "mend the row"
        raise BadRow(
            call,
            f"field {field!r} must be a list of messages, got a {type(value).__name__}",
            f"name another field, or {way_out}",
            kind=DataTypeError,
        )
    return list(value)


def no_field(call: str, row: Mapping[str, Any], field: str) -> BadRow:
    """Say that a row has no such field, and which it has."""
    names = ", ".join(str(each) for each in list(row)[:20]) or "no fields"
    return BadRow(call, f"no field {field!r}; the row has {names}", "name another field")


def with_messages(
    row: Mapping[str, Any], path: Sequence[str], messages: list[Any]
) -> dict[str, Any]:
    """Give the row with other messages; it shares everything else."""
    name, *rest = path
    return {**row, name: with_messages(row[name], rest, messages) if rest else messages}


def without_field(row: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Give the row without a field that it has; it shares everything else."""
    name, *rest = path
    if rest:
        return {**row, name: without_field(row[name], rest)}
    return {each: value for each, value in row.items() if each != name}
