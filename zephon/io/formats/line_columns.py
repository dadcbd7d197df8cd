"""One column taken out of decoded JSON lines: text, lists of numbers, or values of any type.

Each reader says as what the typed decoder shall take its field, makes the column where all values
are what they should be, and else finds the rows in doubt, which are then read one by one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.exact_values import checked, checked_column, exact_column
from zephon.io.fields import TEXT, Column
from zephon.io.formats.json_lists import doubtful_lists, parse_lists
from zephon.io.values import value_of

_Unset = msgspec.UnsetType


class ColumnReader(ABC):
    """Takes one column out of decoded rows."""

    field: tuple[Any, Any]  # type and default of each of its keys
    blank: Any  # what stands in for a bad row

    @abstractmethod
    def values(self, rows: Sequence[Any], refused: list[int]) -> list[Any]:
        """Collect the values, one a row.

        Args:
            rows: decoded; None in every field where the typed decoder refused one.
            refused: which of them it did.
        """

    @abstractmethod
    def array(self, values: list[Any]) -> pa.Array | None:
        """Make the column; None if a value is in doubt."""

    @abstractmethod
    def doubtful(self, values: list[Any]) -> list[int]:
        """Find the rows in doubt."""

    def patch(self, value: Any) -> Any:
        """Turn what ``value_of`` found into a value of the list."""
        return value


class _Text(ColumnReader):
    blank = ""

    def __init__(self, column: Column, name: str) -> None:
        null_is_empty = column.null == "empty"
        self.field = (str | None, "" if column.missing == "empty" or null_is_empty else None)
        self._null_is_empty = null_is_empty
        self._get = attrgetter(name)

    def values(self, rows: Sequence[Any], refused: list[int]) -> list[Any]:
        found = list(map(self._get, rows))
        if self._null_is_empty and None in found:
            found = ["" if value is None else value for value in found]
            for row in refused:  # which holds None for another reason
                found[row] = None
        return found

    def array(self, values: list[Any]) -> pa.Array | None:
        return None if None in values else pa.array(values, TEXT)

    def doubtful(self, values: list[Any]) -> list[int]:
        return [row for row, value in enumerate(values) if value is None]


class _Lists(ColumnReader):
    blank = b"[]"

    def __init__(self, column: Column, name: str, names: dict[str, str]) -> None:
        self._column = column
        empty = b"[]" if column.missing == "empty" else b""
        self.field = (msgspec.Raw, msgspec.Raw(empty))
        self._get = attrgetter(name)
        self._unwanted = [attrgetter(names[key]) for key in column.without]

    def values(self, rows: Sequence[Any], refused: list[int]) -> list[Any]:
        found = list(map(self._get, rows))
        for get in self._unwanted:
            there = list(map(get, rows))
            if there.count(None) < len(there):
                found = [v if no is None else None for v, no in zip(found, there, strict=True)]
        return found

    def array(self, values: list[Any]) -> pa.Array | None:
        return None if None in values else parse_lists(values, self._column)

    def doubtful(self, values: list[Any]) -> list[int]:
        return doubtful_lists(values, self._column)

    def patch(self, value: Any) -> Any:
        return json.dumps(value.tolist()).encode()


class _Any(ColumnReader):
    """Values of any type, with nulls; ``UNSET`` stands for one in doubt."""

    field = (Any, None)
    blank = None

    def __init__(self, column: Column, name: str) -> None:
        self._column = column
        self._get = attrgetter(name)

    def values(self, rows: Sequence[Any], refused: list[int]) -> list[Any]:
        found = list(map(self._get, rows))
        for row in refused:
            found[row] = msgspec.UNSET
        return found

    def array(self, values: list[Any]) -> pa.Array | None:
        found = exact_column(values, self._column.type)
        if found is not None or self.doubtful(values):
            return found
        return checked_column(
            [checked(value, self._column.type) for value in values], self._column.type
        )

    def doubtful(self, values: list[Any]) -> list[int]:
        return [row for row, value in enumerate(values) if not self._is_good(value)]

    def _is_good(self, value: Any) -> bool:
        try:
            checked(value, self._column.type)
        except DataError:
            return False
        return True


class _Loose(ColumnReader):
    """A dotted path, or a key that several columns want: read from untyped values."""

    field = (Any, msgspec.UNSET)

    def __init__(self, column: Column, names: dict[str, str], typed: _Typed) -> None:
        self._column = column
        self._doubt = msgspec.UNSET if column.kind == "any" else None
        self._typed = typed
        self._gets = [(key, attrgetter(names[key])) for key in looked_at(column)]
        self.blank = typed.blank

    def values(self, rows: Sequence[Any], refused: list[int]) -> list[Any]:
        at_once = None if refused else self._at_once(rows)
        if at_once is not None:
            return at_once
        found = [self._value(row) for row in rows]
        for row in refused:
            found[row] = self._doubt
        return found

    def array(self, values: list[Any]) -> pa.Array | None:
        return self._typed.array(values)

    def doubtful(self, values: list[Any]) -> list[int]:
        if self._column.kind == "any":
            return self._typed.doubtful(values)
        return [row for row, value in enumerate(values) if value is None]

    def patch(self, value: Any) -> Any:
        return self._typed.patch(value)

    def _at_once(self, rows: Sequence[Any]) -> list[Any] | None:
        """Take text, or values of any type, without a look at each; None if that cannot be."""
        kind = self._column.kind
        if self._column.without or kind not in ("text", "any"):
            return None
        found = list(map(self._gets[0][1], rows))
        if len(self._gets) > 1:  # a dotted path: the name with dots, if it is there, wins
            if set(map(type, found)) != {_Unset}:
                return None
            found = list(map(self._gets[1][1], rows))
            for name in self._column.path.split(".")[1:]:
                if not set(map(type, found)) <= {dict, type(None), _Unset}:
                    return None
                found = [v.get(name, msgspec.UNSET) if type(v) is dict else v for v in found]
        kinds = set(map(type, found))
        if kind == "text":
            return found if kinds <= {str} else None
        return [None if v is msgspec.UNSET else v for v in found] if _Unset in kinds else found

    def _value(self, row: Any) -> Any:
        there = {key: get(row) for key, get in self._gets}
        some = {key: value for key, value in there.items() if value is not msgspec.UNSET}
        try:
            return self.patch(value_of(some, self._column))
        except DataError:
            return self._doubt  # said again, with the whole row at hand


_Typed = _Text | _Lists | _Any


def column_reader(column: Column, keys: list[str], names: dict[str, str]) -> ColumnReader:
    """Choose the reader of a column.

    Args:
        column: what a plan reads.
        keys: top-level keys that all columns look at, each once a column.
        names: what the decoded row calls each key.
    """
    name = names[column.path]
    typed: _Typed
    if column.kind == "any":
        typed = _Any(column, name)
    else:
        typed = _Text(column, name) if column.kind == "text" else _Lists(column, name, names)
    if any(keys.count(key) > 1 for key in column.without):
        return _Loose(column, names, typed)
    if len(keys_of(column)) == 1 and keys.count(column.path) == 1:
        return typed
    return _Loose(column, names, typed)


def keys_of(column: Column) -> tuple[str, ...]:
    """Top-level keys that may hold a column: its whole path, and the first part of it."""
    if column.named:
        return (column.path,)
    return tuple(dict.fromkeys((column.path, column.path.split(".")[0])))


def looked_at(column: Column) -> tuple[str, ...]:
    """Top-level keys that decide what a column gives."""
    return tuple(dict.fromkeys((*keys_of(column), *column.without)))
