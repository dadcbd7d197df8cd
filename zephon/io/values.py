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
from zephon.io.fields import Column, Field, merged_kind

_ABSENT = object()
_INT32 = np.iinfo(np.int32)


def value_of(row: object, column: Column) -> Any:
    """Read one column of one row: a str, or an int32 array of shape [tokens].

    Raises:
        DataError: the row is no object, or the value is absent, null or of another type.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be an object with fields, got {in_words(row)}")
    value = _find(row, column)
    if value is _ABSENT:
        if column.missing == "empty":
            return "" if column.kind == "text" else np.empty(0, np.int32)
        raise DataError(
            f"no field {column.path!r}; the row has {_names(row)}; name one of these, or pass "
            "missing_field='empty'"
        )
    if value is None:
        raise DataError(f"field {column.path!r} must be {column.wanted}, got null")
    return _text(value, column) if column.kind == "text" else _tokens(value, column)


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


def _tokens(value: Any, column: Column) -> NDArray[np.int32]:
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        _check_integers(value, column)
        low, high = min(value, default=0), max(value, default=0)
    elif isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__array__"):
        raise DataError(f"field {column.path!r} must be {column.wanted}, got {in_words(value)}")
    else:
        value = np.asarray(value)
        if value.ndim != 1 or (value.dtype.kind not in "iu" and value.size):
            raise DataError(f"field {column.path!r} must be {column.wanted}, got {in_words(value)}")
        low, high = (value.min(), value.max()) if value.size else (0, 0)
    if low < _INT32.min or high > _INT32.max:
        raise DataError(
            f"field {column.path!r} must be {column.wanted}, got "
            f"{int(low if low < _INT32.min else high)}"
        )
    return np.array(value, dtype=np.int32)


def _check_integers(items: Sequence[Any], column: Column) -> None:
    for kind in set(map(type, items)):
        if kind is bool or not issubclass(kind, (int, np.integer)):
            odd = next(item for item in items if type(item) is kind)
            raise DataError(
                f"field {column.path!r} must be {column.wanted}, got a list that holds "
                f"{in_words(odd)}"
            )


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
        case _:
            return "other"


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
