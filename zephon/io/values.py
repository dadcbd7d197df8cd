"""Python values of one row: find one by its path, check it, and name its kind.

The slow way into a column, for rows in memory and for lines that the fast decoder refuses. Errors
say what is wrong with the value; where the row lies is added by whoever knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.exact_numbers import exactly
from zephon.io.fields import NUMBERS, Column, Field, merged_kind

_ABSENT = object()


def value_of(row: object, column: Column) -> Any:
    """Read one column of one row: a str, or an array of shape [values] of the column's dtype.

    Raises:
        DataError: the row is no object, or the value is absent, null or of another type.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be an object with fields, got {in_words(row)}")
    value = _find(row, column)
    if value is _ABSENT:
        if column.missing == "empty":
            return "" if column.kind == "text" else np.empty(0, column.dtype)
        instead = "name one of these, or pass missing_field='empty'"
        if column.kind in NUMBERS:
            instead = "aligned_fields can leave it out of packed rows"
        raise DataError(f"no field {column.path!r}; the row has {_names(row)}; {instead}")
    if value is None:
        raise _refused(column, "null")
    return _text(value, column) if column.kind == "text" else _list(value, column)


def fields_of(rows: Iterable[object]) -> tuple[Field, ...]:
    """List the top-level fields of some rows, in the order first seen; other rows are skipped.

    >>> fields_of([{"text": "a", "ids": []}, {"text": None, "ids": [1]}])
    (Field(name='text', kind='text'), Field(name='ids', kind='tokens'))
    """
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, Mapping):
            for name, value in row.items():
                kinds.setdefault(str(name), []).append(_kind(value))
    return tuple(Field(name, merged_kind(seen)) for name, seen in kinds.items())


def in_words(value: object) -> str:
    """Name the type of a value as JSON calls it.

    >>> in_words([1]), in_words(None), in_words(True), in_words(2.5)
    ('a list', 'null', 'a boolean', 'a number')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case np.ndarray():
            return f"an array of {value.dtype} with {value.ndim} axes"
        case _:
            return f"a {type(value).__name__}"


def _find(row: Mapping[str, Any], column: Column) -> Any:
    if column.path in row:
        return row[column.path]
    value: Any = row
    for name in column.path.split("."):
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise DataError(
                f"field {column.path!r}: an object was wanted around {name!r}, got "
                f"{in_words(value)}"
            )
        value = value.get(name, _ABSENT)
        if value is _ABSENT:
            return _ABSENT
    return value


def _text(value: Any, column: Column) -> str:
    if not isinstance(value, str):
        raise DataError(f"field {column.path!r} must be text, got {in_words(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise DataError(
            f"field {column.path!r} must be valid UTF-8, got {value[exc.start]!a} at character "
            f"{exc.start}: a lone surrogate, or a byte that is not UTF-8"
        ) from exc
    return value


def _list(value: Any, column: Column) -> NDArray[Any]:
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    kind = column.dtype.kind
    if isinstance(value, (list, tuple)):
        _check_items(value, column)
        value = _array(value, column)
    elif isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__array__"):
        raise _refused(column, in_words(value))
    else:
        value = np.asarray(value)
        if value.ndim != 1 or (value.dtype.kind not in _ARRAY_KINDS[kind] and value.size):
            raise _refused(column, in_words(value))
        value = value if value.size else value.astype(column.dtype)
    if kind == "b":
        return value.copy()
    made, wrong = exactly(value, column.dtype)
    if len(wrong):
        raise _refused(column, str(value[wrong[0]]))
    return made.copy() if made is value else made


_ARRAY_KINDS = {"i": "iu", "f": "iuf", "b": "b"}
"""Kinds of NumPy types whose values a column may hold, by the kind of the column's own."""


def _array(items: Sequence[Any], column: Column) -> NDArray[Any]:
    """Make an array of a checked list, wide enough for all that may be in it."""
    wide = {"i": np.int64, "f": np.float64, "b": np.bool_}[column.dtype.kind]
    try:
        return np.array(items, wide)
    except OverflowError:
        raise _refused(column, str(max(items, key=abs))) from None


def _check_items(items: Sequence[Any], column: Column) -> None:
    good = {"i": (int, np.integer), "f": _NUMBER, "b": (bool, np.bool_)}[column.dtype.kind]
    for kind in set(map(type, items)):
        if (kind is bool and column.dtype.kind != "b") or not issubclass(kind, good):
            odd = next(item for item in items if type(item) is kind)
            raise _refused(column, f"a list that holds {in_words(odd)}")


_NUMBER = (int, float, np.integer, np.floating)


def _refused(column: Column, got: str) -> DataError:
    return DataError(f"field {column.path!r} must be {column.wanted}, got {got}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "unknown"
        case str():
            return "text"
        case bool() | int() | float() | np.generic():
            return "scalar"
        case list() | tuple() | np.ndarray():
            return _list_kind(value)
        case bytes() | Mapping():
            return "other"
        case _:
            return _array_kind(value)


def _array_kind(value: object) -> str:
    """Name the kind of what may be an array of another library, such as a tensor."""
    if not hasattr(value, "__array__"):
        return "other"
    try:
        array = np.asarray(value)
    except Exception:  # the object is the user's, and so is what its code raises
        return "other"
    return "scalar" if not array.ndim else _list_kind(array)


def _list_kind(value: list[Any] | tuple[Any, ...] | NDArray[Any]) -> str:
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            return "other"
        return {"i": "tokens", "u": "tokens", "f": "numbers", "b": "numbers"}.get(
            value.dtype.kind, "other"
        )
    types = set(map(type, value))
    if not types:
        return "unknown"
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in types):
        return "tokens"
    if all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in types):
        return "numbers"
    return "other"


def _names(row: Mapping[str, Any]) -> str:
    names = [str(name) for name in row][:20]
    return ", ".join(names) if names else "no fields"
