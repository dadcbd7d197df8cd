"""Columns from JSON lines: one typed decode call a line for the fields that are wanted.

Three ways, each only as slow as the lines force it to be. All lines in one call, where it is proven
that every line is one object: each begins with ``{`` and ends with ``}``, so that no value can
reach over a line end, and there are as many values as lines. Else one call a line. And for a line
that the typed decoder refuses (NaN, a lone surrogate in another field, a wrong type) Python's own
``json``, which also says what is wrong with it. What a line gives never depends on its neighbours.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.fields import TEXT, Column
from zephon.io.formats.json_lists import doubtful_lists, parse_lists
from zephon.io.formats.line_blocks import RowLines
from zephon.io.values import value_of

_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_BRACE_OPEN, _BRACE_CLOSE, _RETURN = b"{}\r"
_VALUE = msgspec.json.Decoder()
_ESCAPED = re.compile(r'["\\\x00-\x1f]')  # keys with these are not for the typed decoder


class LineDecoder:
    """Decodes some columns of JSON lines. Any number of threads may use one."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        keys = [key for column in columns for key in _looked_at(column)]
        names = {key: f"f{index}" for index, key in enumerate(dict.fromkeys(keys))}
        self._readers = tuple(_reader(column, keys, names) for column in columns)
        fields: dict[str, tuple[str, Any, Any]] = {}
        for column, reader in zip(columns, self._readers, strict=True):
            for key in _keys(column):
                fields[key] = (names[key], *reader.field)
            for key in column.without:
                fields.setdefault(key, (names[key], Any, None))
        self._typed = not any(_ESCAPED.search(key) for key in keys)
        self._type = msgspec.defstruct(
            "Row",
            list(fields.values()),
            rename={name: key for key, name in names.items()} if self._typed else None,
            gc=False,  # decoded JSON holds no cycles
        )
        self._decoder = msgspec.json.Decoder(self._type)

    def decode(self, text: bytes, lines: RowLines) -> tuple[list[pa.Array], dict[int, str]]:
        """Decode the rows of a text.

        Returns:
            one array a column, without nulls, and what is wrong with each bad row.
        """
        rows = self._rows(text, lines)
        values = [reader.values(rows) for reader in self._readers]
        arrays = [reader.array(some) for reader, some in zip(self._readers, values, strict=True)]
        doubts: dict[int, list[int]] = {}  # columns in doubt, by row
        for index, (reader, array) in enumerate(zip(self._readers, arrays, strict=True)):
            for row in reader.doubtful(values[index]) if array is None else ():
                doubts.setdefault(row, []).append(index)
        problems: dict[int, str] = {}
        for row, doubted in doubts.items():
            line = text[lines.starts[row] : lines.stops[row]]
            found = self._slowly(line, [self._columns[index] for index in doubted])
            for place, index in enumerate(doubted):
                reader = self._readers[index]
                good = not isinstance(found, str)
                values[index][row] = reader.patch(found[place]) if good else reader.blank
            if isinstance(found, str):
                problems[row] = found
        for index, reader in enumerate(self._readers):
            if arrays[index] is None:
                arrays[index] = reader.array(values[index])
        return [array for array in arrays if array is not None], problems

    def _rows(self, text: bytes, lines: RowLines) -> list[Any]:
        refused = self._type(**dict.fromkeys(self._type.__struct_fields__))
        if not self._typed:
            return [refused] * len(lines.starts)
        if _one_object_a_line(text, lines):
            try:
                rows = self._decoder.decode_lines(text)
            except _REFUSED:
                rows = []
            if len(rows) == len(lines.starts):
                return rows
        decode = self._decoder.decode
        rows = []
        for start, stop in zip(lines.starts.tolist(), lines.stops.tolist(), strict=True):
            try:
                rows.append(decode(text[start:stop]))
            except _REFUSED:
                rows.append(refused)
        return rows

    def _slowly(self, line: bytes, columns: list[Column]) -> list[Any] | str:
        """Read some columns of one line, or say why that cannot be done."""
        try:
            row = _load(line.decode("utf-8", "surrogateescape"))  # other fields may hold anything
        except DataError as exc:
            return str(exc)
        found = []
        for column in columns:
            try:
                found.append(value_of(row, column))
            except DataError as exc:
                told = isinstance(row, dict) and column.way_out
                return f"{exc}; {told}" if told else str(exc)
        return found


def load_line(line: bytes) -> Any:
    """Decode a whole line as Python's ``json`` does: NaN is fine, the last of equal keys wins.

    Raises:
        DataError: the line is not JSON, or not UTF-8.
    """
    try:
        return _VALUE.decode(line)
    except _REFUSED:
        pass
    try:
        return _load(line.decode())
    except UnicodeDecodeError as exc:
        raise DataError(f"a line must be UTF-8, got the byte {line[exc.start]:#04x}") from exc


def _load(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as exc:
        raise DataError(
            f"a line must be one JSON object, this one is not ({exc.msg}: character {exc.pos})"
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise DataError(
            f"a line must be one JSON object, this one is beyond limits ({exc})"
        ) from exc


class _Reader(ABC):
    """Takes one column out of decoded rows."""

    field: tuple[Any, Any]  # type and default of each of its keys
    blank: Any  # what stands in for a bad row

    @abstractmethod
    def values(self, rows: Sequence[Any]) -> list[Any]:
        """Collect the values, one a row; None where the typed decoder refused the row."""

    @abstractmethod
    def array(self, values: list[Any]) -> pa.Array | None:
        """Make the column; None if a value is in doubt."""

    @abstractmethod
    def doubtful(self, values: list[Any]) -> list[int]:
        """Find the rows in doubt."""

    def patch(self, value: Any) -> Any:
        """Turn what ``value_of`` found into a value of the list."""
        return value


class _Text(_Reader):
    blank = ""

    def __init__(self, column: Column, name: str) -> None:
        self.field = (str | None, "" if column.missing == "empty" else None)
        self._get = attrgetter(name)

    def values(self, rows: Sequence[Any]) -> list[Any]:
        return list(map(self._get, rows))

    def array(self, values: list[Any]) -> pa.Array | None:
        return None if None in values else pa.array(values, TEXT)

    def doubtful(self, values: list[Any]) -> list[int]:
        return [row for row, value in enumerate(values) if value is None]


class _Lists(_Reader):
    blank = b"[]"

    def __init__(self, column: Column, name: str, names: dict[str, str]) -> None:
        self._column = column
        empty = b"[]" if column.missing == "empty" else b""
        self.field = (msgspec.Raw, msgspec.Raw(empty))
        self._get = attrgetter(name)
        self._unwanted = [attrgetter(names[key]) for key in column.without]

    def values(self, rows: Sequence[Any]) -> list[Any]:
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


class _Loose(_Reader):
    """A dotted path, or a key that several columns want: read from untyped values."""

    field = (Any, msgspec.UNSET)

    def __init__(self, column: Column, names: dict[str, str], typed: _Text | _Lists) -> None:
        self._column = column
        self._typed = typed
        self._gets = [(key, attrgetter(names[key])) for key in _looked_at(column)]
        self.blank = typed.blank

    def values(self, rows: Sequence[Any]) -> list[Any]:
        return [self._value(row) for row in rows]

    def array(self, values: list[Any]) -> pa.Array | None:
        return self._typed.array(values)

    def doubtful(self, values: list[Any]) -> list[int]:
        return [row for row, value in enumerate(values) if value is None]

    def patch(self, value: Any) -> Any:
        return self._typed.patch(value)

    def _value(self, row: Any) -> Any:
        there = {key: get(row) for key, get in self._gets}
        some = {key: value for key, value in there.items() if value is not msgspec.UNSET}
        try:
            return self.patch(value_of(some, self._column))
        except DataError:
            return None  # said again, with the whole row at hand


def _reader(column: Column, keys: list[str], names: dict[str, str]) -> _Reader:
    name = names[column.path]
    typed = _Text(column, name) if column.kind == "text" else _Lists(column, name, names)
    if any(keys.count(key) > 1 for key in column.without):
        return _Loose(column, names, typed)
    if len(_keys(column)) == 1 and keys.count(column.path) == 1:
        return typed
    return _Loose(column, names, typed)


def _keys(column: Column) -> tuple[str, ...]:
    """Top-level keys that may hold a column: its whole path, and the first part of it."""
    return tuple(dict.fromkeys((column.path, column.path.split(".")[0])))


def _looked_at(column: Column) -> tuple[str, ...]:
    """Top-level keys that decide what a column gives."""
    return tuple(dict.fromkeys((*_keys(column), *column.without)))


def _one_object_a_line(text: bytes, lines: RowLines) -> bool:
    if not len(lines.starts):
        return True
    letters = np.frombuffer(text, np.uint8)
    last = letters[lines.stops - 1]
    if (last == _RETURN).any():
        last = np.where(last == _RETURN, letters[lines.stops - 2], last)
    return bool((letters[lines.starts] == _BRACE_OPEN).all() and (last == _BRACE_CLOSE).all())
