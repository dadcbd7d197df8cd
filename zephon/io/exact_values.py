"""Python values as Arrow columns of any type, strictly: nothing is what it was not.

Text is no number, a boolean no integer, a float no integer; an integer is a fine float where a
float is that integer. Values of the plain types of Python are looked at by the set of their types
and handed to Arrow whole; only where that fails is each looked at by itself.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.column_types import is_binary, is_list, is_text, may_become
from zephon.io.exact_cast import exact_cast
from zephon.io.list_kinds import in_words

_EXCERPT = 60  # letters of a text in a message
_BITS = 200  # of an integer in a message
_REFUSED = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError)


def exact_column(values: Sequence[Any], dtype: pa.DataType) -> pa.Array | None:
    """Make a column of values at once; None if one is in doubt.

    >>> exact_column([1, None, 2.5], pa.float64()).to_pylist(), exact_column(["1"], pa.int8())
    ([1.0, None, 2.5], None)
    """
    if not _fits(values, dtype):
        return None
    try:
        made, bad = exact_cast(pa.array(values, _wide(dtype)), dtype)
    except _REFUSED:
        return None
    return None if len(bad) else made


def checked_column(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Make a column of values that ``checked`` gave."""
    wide = pa.array(values, _wide(dtype))
    return wide if wide.type == dtype else wide.cast(dtype)  # Arrow spoils nulls in lists in casts


def checked(value: Any, dtype: pa.DataType) -> Any:
    """Give a value as Arrow takes it for a type, if it is one of that type.

    Raises:
        DataError: it is not; says what it is, such as "text '5'".
    """
    types = pa.types
    if value is None:
        return None
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    good: Any = None
    if types.is_boolean(dtype):
        good = value if isinstance(value, bool) else None
    elif types.is_integer(dtype):
        good = _integer(value, dtype)
    elif types.is_floating(dtype):
        good = _float(value, dtype)
    elif is_text(dtype):
        good = _text(value)
    elif is_binary(dtype):
        good = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
    elif is_list(dtype):
        items = _items(value)
        good = None if items is None else [checked(item, dtype.value_type) for item in items]
    elif types.is_struct(dtype):
        good = _fields(value, dtype)
    else:
        good = _as_arrow_has_it(value, dtype)
    if good is None:
        raise DataError(shown(value))
    return good


def shown(value: object) -> str:
    """Say what a value is in a message, long ones shortened.

    >>> shown("5"), shown(True), shown([1])
    ("text '5'", 'the boolean True', 'a list: [1]')
    """
    match value:
        case bool():
            return f"the boolean {value}"
        case int() if value.bit_length() > _BITS:
            return f"an integer of {value.bit_length()} bits"
        case str() if len(value) > _EXCERPT:
            return f"text {value[:_EXCERPT]!r}..."
        case str():
            return f"text {value!r}"
        case int() | float() | Decimal() | date() | time() | timedelta() | np.generic():
            return f"{value}"
        case list() | tuple() | dict():
            return f"{in_words(value)}: {reprlib.repr(value)}"
        case _:
            return in_words(value)


def _fits(values: Sequence[Any], dtype: pa.DataType) -> bool:
    """Say whether the types of values are such that Arrow makes no others of them."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    types = pa.types
    if not kinds:
        return True
    if is_list(dtype):
        if not kinds <= {list, tuple}:
            return False
        return _fits(list(chain.from_iterable(filter(None, values))), dtype.value_type)
    if types.is_struct(dtype):
        there = [value for value in values if value is not None]
        inner = {field.name: field.type for field in dtype}
        return (
            kinds == {dict}
            and all(value.keys() <= inner.keys() for value in there)
            and all(_fits([v.get(name) for v in there], each) for name, each in inner.items())
        )
    for known, good in _QUICK:
        if known(dtype):
            return kinds <= good
    return False


_QUICK = (
    (pa.types.is_boolean, {bool}),
    (pa.types.is_integer, {int}),
    (pa.types.is_floating, {int, float}),
    (is_text, {str}),
    (is_binary, {bytes}),
)


def _wide(dtype: pa.DataType) -> pa.DataType:
    """Give the type with float64 for other floats: Arrow rounds to those without a word."""
    if pa.types.is_floating(dtype):
        return pa.float64()
    if is_list(dtype):
        return pa.large_list(_wide(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, _wide(field.type)) for field in dtype])
    return dtype


def _integer(value: Any, dtype: pa.DataType) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    signed = pa.types.is_signed_integer(dtype)
    low = -(1 << (dtype.bit_width - 1)) if signed else 0
    return int(value) if low <= value < low + (1 << dtype.bit_width) else None


def _float(value: Any, dtype: pa.DataType) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    if isinstance(value, int) and (made in (np.inf, -np.inf) or int(made) != value):
        return None
    with np.errstate(over="ignore"):
        narrow = float(np.dtype(dtype.to_pandas_dtype()).type(made))
    return made if narrow == made or made != made else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise DataError(
            f"text with {value[exc.start]!a} at character {exc.start}, which is no UTF-8"
        ) from exc
    return value


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        return None
    if not hasattr(value, "__array__"):
        return None
    array = np.asarray(value)
    if not array.ndim:
        return None
    return list(array) if array.dtype.kind in "mM" or array.ndim > 1 else array.tolist()


def _fields(value: Any, dtype: pa.DataType) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    inner = {field.name: field.type for field in dtype}
    for name in value:
        if name not in inner:
            raise DataError(f"an object with {name!r}, which that type lacks")
    made: dict[str, Any] = {}
    for name, each in inner.items():
        try:
            made[name] = checked(value.get(name), each)
        except DataError as exc:
            raise DataError(f"an object whose {name!r} is {exc}") from exc
    return made


def _as_arrow_has_it(value: Any, dtype: pa.DataType) -> pa.Scalar | None:
    """Let Arrow take dates, times and decimals, in their own type first."""
    if isinstance(value, str | bool | float):
        return None
    try:
        own = pa.array(np.array([value]) if isinstance(value, np.generic) else [value])
        made, bad = exact_cast(own, dtype) if may_become(own.type, dtype) else (None, ())
    except _REFUSED:
        return None
    return None if made is None or len(bad) else made[0]
