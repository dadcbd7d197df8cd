"""Which Arrow types the values of Python rows have, and the row where each was met first.

Rows are looked at some at a time, and what is kept does not grow with them: a type is noted once a
field. A value without a type is noted by what it is, in words. Whole columns are looked at by the
set of their types, so a value costs some 30 ns, in a list some 10 ns.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.io.column_types import joined_all, plain
from zephon.io.list_kinds import in_words

OBJECT = "an object"
"""What an object is called where its fields are not looked at."""

MOST_FIELDS = 4096

_DEEPEST = 32
_LARGEST = 2**63 - 1
_BIG = "an integer beyond 64 bits"
_PLAIN: dict[type, pa.DataType] = {
    type(None): pa.null(),
    bool: pa.bool_(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
    bytearray: pa.large_binary(),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}

Sights = dict[pa.DataType | str, int]
"""Types, or words for what has none, each with the position of the first value of it."""


class SeenTypes:
    """Types of the top-level fields of rows.

    objects: look into objects; else each is one ``OBJECT``.
    most: beyond so many fields, none is noted any longer; names that are so many are values.
    fields: what was seen of each, with the number of its row.
    too_many: there were more fields.
    """

    def __init__(self, *, objects: bool, most: int = MOST_FIELDS) -> None:
        self.fields: dict[str, Sights] = {}
        self.too_many = False
        self._most = most
        self._objects = objects

    def look(self, rows: Sequence[Any], first_row: int) -> None:
        """Look at some rows; what is no object, or raises when looked at, has no fields.

        Args:
            rows: Python values.
            first_row: number of the first of them.
        """
        try:
            self._look(rows, first_row)
        except Exception:  # a row may be of a user's class, and so is what its code raises
            for place, row in enumerate(rows):
                with suppress(Exception):
                    self._look([row], first_row + place)

    def _look(self, rows: Sequence[Any], first_row: int) -> None:
        for name, values, numbers in _columns(rows):
            if len(self.fields) >= self._most and name not in self.fields:
                self.too_many = True
                continue
            seen = self.fields.setdefault(name, {})
            for what, place in types_of(values, objects=self._objects).items():
                seen.setdefault(what, first_row + numbers[place])


def types_of(values: Sequence[Any], *, objects: bool, depth: int = 0) -> Sights:
    """Say which types some values have, nested ones too, in order of the first of each.

    >>> types_of([None, 1, "a", 2], objects=True)
    {DataType(null): 0, DataType(int64): 1, DataType(large_string): 2}
    """
    seen: Sights = {}
    kinds = dict.fromkeys(map(type, values))
    for kind in kinds:
        places: Sequence[int] = range(len(values))
        some = values
        if len(kinds) > 1:
            places = [place for place, value in enumerate(values) if type(value) is kind]
            some = [values[place] for place in places]
        for what, place in _types_of_kind(kind, some, objects, depth).items():
            seen.setdefault(what, places[place])
    return dict(sorted(seen.items(), key=lambda each: each[1]))


def _types_of_kind(kind: type, values: Sequence[Any], objects: bool, depth: int) -> Sights:
    """Say which types values of one Python type have."""
    if kind in _PLAIN:
        return {_PLAIN[kind]: 0}
    if kind is int:
        return _integers(values)
    if kind is list:
        return _lists(values, objects, depth)
    if kind is dict:
        return _objects(values, depth) if objects else {OBJECT: 0}
    if issubclass(kind, np.ndarray | np.generic):
        return _arrays(values, objects, depth)
    for known, look in _BY_CLASS:
        if issubclass(kind, known):
            return look(values, objects, depth)
    if hasattr(kind, "__array__"):
        return _arrays([np.asarray(value) for value in values], objects, depth)
    return {in_words(values[0]): 0}


def _integers(values: Sequence[int]) -> Sights:
    if max(values) <= _LARGEST and min(values) >= -_LARGEST - 1:
        return {pa.int64(): 0}
    big = [not -_LARGEST - 1 <= value <= _LARGEST for value in values]
    seen: Sights = {_BIG: big.index(True)}
    return seen if all(big) else {**seen, pa.int64(): big.index(False)}


def _lists(values: Sequence[Any], objects: bool, depth: int) -> Sights:
    if depth >= _DEEPEST:
        return {f"a list in {_DEEPEST} others": 0}
    items = list(chain.from_iterable(values))
    if not items:
        return {pa.large_list(pa.null()): 0}
    ends = list(accumulate(map(len, values)))
    seen: Sights = {}
    for what, place in types_of(items, objects=objects, depth=depth + 1).items():
        row = bisect_right(ends, place)
        listed = pa.large_list(what) if isinstance(what, pa.DataType) else _in_list(what)
        seen.setdefault(listed, row)
    return seen


def _in_list(what: str) -> str:
    return what if what.startswith("a list") else f"a list that holds {what}"


def _objects(values: Sequence[Mapping[Any, Any]], depth: int) -> Sights:
    """Join all objects to one type; where their keys differ, fields are in order of their names."""
    if depth >= _DEEPEST:
        return {f"an object in {_DEEPEST} lists or objects": 0}
    orders = set(map(tuple, values))
    names = list(orders.pop()) if len(orders) == 1 else sorted({*chain(*orders)}, key=str)
    fields: list[pa.Field] = []
    for name in names:
        if not isinstance(name, str):
            return {f"an object with the key {name!r}, which is no text": 0}
        inner = types_of([each.get(name) for each in values], objects=True, depth=depth + 1)
        odd = next((what for what in inner if isinstance(what, str)), None)
        if odd is not None:
            return {f"an object whose {name!r} is {odd}": inner[odd]}
        dtype = joined_all(what for what in inner if isinstance(what, pa.DataType))
        if dtype is None:
            told = " and ".join(map(str, inner))
            return {f"an object whose {name!r} is {told}": 0}
        fields.append(pa.field(name, dtype))
    return {pa.struct(fields): 0}


def _arrays(values: Sequence[Any], objects: bool, depth: int) -> Sights:
    seen: Sights = {}
    for place, value in enumerate(values):
        if value.dtype == object:
            for what in types_of([value.tolist()], objects=objects, depth=depth):
                seen.setdefault(what, place)
            continue
        seen.setdefault(_array_type(value.dtype, value.ndim), place)
    return seen


def _array_type(dtype: np.dtype[Any], axes: int) -> pa.DataType | str:
    try:
        found = plain(pa.from_numpy_dtype(dtype))
    except (pa.ArrowException, ValueError):
        return f"an array of {dtype}"
    for _ in range(axes):
        found = pa.large_list(found)
    return found


def _times(values: Sequence[datetime.datetime], objects: bool, depth: int) -> Sights:
    seen: Sights = {}
    for place, zone in enumerate(value.tzinfo for value in values):
        seen.setdefault(pa.timestamp("us", None if zone is None else "UTC"), place)
    return seen


def _decimals(values: Sequence[Decimal], objects: bool, depth: int) -> Sights:
    seen: Sights = {}
    for place, value in enumerate(values):
        try:
            seen.setdefault(plain(pa.infer_type([value])), place)
        except pa.ArrowException:
            seen.setdefault(f"the decimal {value}", place)
    return seen


def _same(kind: type, made: Callable[[Any], Any]) -> Callable[[Sequence[Any], bool, int], Sights]:
    """Look at values of a class below one of Python's as if they were of that."""

    def look(values: Sequence[Any], objects: bool, depth: int) -> Sights:
        return _types_of_kind(kind, [made(value) for value in values], objects, depth)

    return look


_BY_CLASS: tuple[tuple[Any, Callable[[Sequence[Any], bool, int], Sights]], ...] = (
    *((kind, _same(kind, kind)) for kind in (bool, int, float, str, bytes)),
    (datetime.datetime, _times),
    (datetime.date, _same(datetime.date, lambda value: value)),
    (datetime.time, _same(datetime.time, lambda value: value)),
    (datetime.timedelta, _same(datetime.timedelta, lambda value: value)),
    (Decimal, _decimals),
    (list | tuple, _same(list, list)),
    (Mapping, _same(dict, dict)),
)


def _columns(rows: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any], Sequence[int]]]:
    """Give the values of each field, and the positions of their rows."""
    keys = {tuple(row) if isinstance(row, dict) else None for row in rows}
    if len(keys) == 1 and None not in keys:
        columns = zip(*(row.values() for row in rows), strict=True)
        for name, values in zip(keys.pop() or (), columns, strict=True):
            yield str(name), values, range(len(rows))
        return
    found: dict[str, tuple[list[Any], list[int]]] = {}
    for place, row in enumerate(rows):
        if isinstance(row, Mapping):
            for name, value in row.items():
                values, numbers = found.setdefault(str(name), ([], []))
                values.append(value)
                numbers.append(place)
    for name, (values, numbers) in found.items():
        yield name, values, numbers
