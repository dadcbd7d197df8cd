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
from zephon.io.exact_numbers import exactly, rounded_if_integer
from zephon.io.exact_values import checked
from zephon.io.faults import NULLED
from zephon.io.fields import LOOKED_AT, Column, Field, merged_kind
from zephon.io.list_kinds import field_kind, in_words, look_at

_ABSENT = object()


def value_of(row: object, column: Column) -> Any:
    """Read one column of one row: a str, or an array of shape [values] of the column's dtype.

    A null text that drops its row raises with ``NULLED`` as all of its message.

    Of kind "any": a value as ``exact_values.checked`` gives it; None for null, or no field.

    Raises:
        DataError: the row is no object, or the value is absent, null or of another type.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be an object with fields, got {in_words(row)}")
    for name in column.without:
        if name in row and row[name] is not None:
            raise DataError(
                f"field {name!r} must be in the first {LOOKED_AT} rows of a dataset to be packed, "
                f"this row has it and they do not; name it with its type, as in "
                f"aligned_fields={{{name!r}: 'int64'}}, or pass aligned_fields=() to pack without "
                "it"
            )
    value = _find(row, column)
    if column.kind == "any":
        return _any(None if value is _ABSENT else value, column)
    if value is _ABSENT:
        if column.missing == "empty":
            return "" if column.kind == "text" else np.empty(0, column.dtype)
        if column.null != "error":
            return _null(column)
        text = f"no field {column.path!r}; the row has {_names(row)}"
        if column.kind == "text":
            text += "; name one of these, or pass missing_field='empty'"
        raise DataError(text)
    if value is None:
        return _null(column)
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


def raw_value_of(row: object, column: Column) -> Any:
    """Give the value of a column of kind "any" as it stands in the row; None if there is none.

    Raises:
        DataError: the row is no object, or a value on the way to a nested one is none.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be an object with fields, got {in_words(row)}")
    value = _find(row, column)
    return None if value is _ABSENT else value


def _any(value: Any, column: Column) -> Any:
    try:
        return checked(value, column.type)
    except DataError as exc:
        raise _refused(column, str(exc)) from exc


def _find(row: Mapping[str, Any], column: Column) -> Any:
    if column.path in row:
        return row[column.path]
    if column.named:
        return _ABSENT
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


def _null(column: Column) -> str:
    if column.null == "empty":
        return ""
    if column.null == "drop":
        raise DataError(NULLED)
    raise _refused(column, f"null{column.null_allowance}")


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
            allowance = column.allowance if value.dtype.kind == "f" and value.ndim == 1 else ""
            raise _refused(column, f"{in_words(value)}{allowance}")
        value = value if value.size else value.astype(column.dtype)
    if kind == "b":
        return value.copy()
    made, wrong = exactly(value, column.dtype)
    if len(wrong):
        allowance = column.allowance if value.dtype.kind == "f" else ""
        raise _refused(column, f"{value[wrong[0]]}{allowance}")
    return made.copy() if made is value else made


_ARRAY_KINDS = {"i": "iu", "f": "iuf", "b": "b"}
"""Kinds of NumPy types whose values a column may hold, by the kind of the column's own."""


def _array(items: Sequence[Any], column: Column) -> NDArray[Any]:
    """Make an array of a checked list, wide enough for all that may be in it.

    Raises:
        DataError: an integer is too large for that, or float64 would round it.
    """
    kind = column.dtype.kind
    wide = {"i": np.int64, "f": np.float64, "b": np.bool_}[kind]
    try:
        made = np.array(items, wide)
    except OverflowError:
        raise _refused(column, str(max(items, key=abs))) from None
    if kind == "f":
        for place in rounded_if_integer(made).tolist():
            item = items[place]
            if not isinstance(item, float | np.floating) and int(made[place]) != item:
                raise _refused(column, str(item))
    return made


def _check_items(items: Sequence[Any], column: Column) -> None:
    good = {"i": (int, np.integer), "f": _NUMBER, "b": (bool, np.bool_)}[column.dtype.kind]
    for kind in set(map(type, items)):
        if (kind is bool and column.dtype.kind != "b") or not issubclass(kind, good):
            odd = next(item for item in items if type(item) is kind)
            held = in_words(odd)
            if isinstance(odd, float | np.floating):
                held = f"{odd}{column.allowance}"
            raise _refused(column, f"a list that holds {held}")


_NUMBER = (int, float, np.integer, np.floating)


def _refused(column: Column, got: str) -> DataError:
    return DataError(f"field {column.path!r} must be {column.wanted}, got {got}")


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    found = look_at(value)
    return "scalar" if found.scalar else field_kind(found.kind)


def _names(row: Mapping[str, Any]) -> str:
    names = [str(name) for name in row][:20]
    return ", ".join(names) if names else "no fields"
