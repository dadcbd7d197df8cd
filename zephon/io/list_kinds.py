"""Which numbers a Python value holds, in the words of ``fields.NUMBERS``; one rule for all rows.

Whatever a value's own code raises counts as no list: looking at a user's object is safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTES_OF_INT32 = {"i": 4, "u": 2}  # the widest integers that int32 holds


@dataclass(frozen=True, slots=True)
class Found:
    """What one value is, if it is a list.

    kind: one of ``NUMBERS``; "" for an empty list or null; None for anything else.
    length: of the list; -1 where it is none.
    container: "list", "tuple", "np" or "pt"; None where it is no list.
    odd: what it holds in words, where ``kind`` is None.
    scalar: it is one number or boolean.
    """

    kind: str | None
    length: int = -1
    container: str | None = None
    odd: str = ""
    scalar: bool = False


NOTHING = Found("")
"""Null, or no value at all."""


def look_at(value: object) -> Found:
    """Say which numbers a value holds.

    >>> look_at((1, 2)).kind, look_at([True, 2]).odd
    ('int64', 'a list that holds a boolean and a number')
    """
    try:
        return _look_at(value)
    except Exception:  # the value is the user's, and so is what its code raises
        return Found(None, odd=f"a {type(value).__name__} that cannot be read")


def field_kind(numbers: str | None) -> str:
    """Name the kind of a ``fields.Field`` of lists, from what ``NUMBERS`` calls them.

    >>> field_kind("int32"), field_kind("bool"), field_kind(""), field_kind(None)
    ('tokens', 'numbers', 'unknown', 'other')
    """
    if not numbers:
        return "other" if numbers is None else "unknown"
    return "tokens" if numbers in ("int32", "int64") else "numbers"


def in_words(value: object) -> str:
    """Name the type of a value as JSON calls it.

    >>> in_words([1]), in_words(None), in_words(True), in_words(2.5)
    ('a list', 'null', 'a boolean', 'a number')
    """
    match value:
        case None:
            return "null"
        case bool() | np.bool_():
            return "a boolean"
        case int() | float() | np.integer() | np.floating():
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


def _look_at(value: object) -> Found:
    if value is None:
        return NOTHING
    if isinstance(value, list | tuple):
        container = "tuple" if isinstance(value, tuple) else "list"
        return _found(_kind_of_items(value), value, container)
    if isinstance(value, bool | int | float | np.generic):
        return Found(None, odd=in_words(value), scalar=True)
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__array__"):
        return Found(None, odd=in_words(value))
    array = np.asarray(value)
    if array.ndim != 1:
        return Found(None, odd=in_words(array), scalar=not array.ndim)
    container = "pt" if type(value).__module__.split(".")[0] == "torch" else "np"
    if array.dtype == object:
        items = array.tolist()
        return _found(_kind_of_items(items), items, container)
    return _found(_kind_of_dtype(array.dtype) if len(array) else "", array, container)


def _found(kind: str | None, items: Sequence[Any] | NDArray[Any], container: str) -> Found:
    if kind is not None:
        return Found(kind, len(items), container)
    if isinstance(items, np.ndarray):
        return Found(kind, len(items), container, in_words(items))
    one_of_each = {type(item): item for item in reversed(items)}
    odd = list(dict.fromkeys(map(in_words, reversed(one_of_each.values()))))
    strange = [words for words in odd if words not in ("a boolean", "a number")]
    told = " and ".join(strange[:1] or odd)
    return Found(kind, len(items), container, f"a list that holds {told}")


def _kind_of_items(items: Sequence[Any]) -> str | None:
    types = set(map(type, items))
    if not types:
        return ""
    booleans = {kind for kind in types if issubclass(kind, (bool, np.bool_))}
    if booleans:
        return "bool" if booleans == types else None
    if all(issubclass(kind, (int, np.integer)) for kind in types):
        return "int64"
    if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in types):
        return "float64"
    return None


def _kind_of_dtype(dtype: np.dtype[Any]) -> str | None:
    match dtype.kind:
        case "b":
            return "bool"
        case "i" | "u":
            return "int32" if dtype.itemsize <= _BYTES_OF_INT32[dtype.kind] else "int64"
        case "f" if dtype.itemsize <= 8:
            return "float64" if dtype.itemsize == 8 else "float32"
        case _:
            return None
