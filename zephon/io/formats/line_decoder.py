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
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.fields import Column
from zephon.io.formats.line_blocks import RowLines
from zephon.io.formats.line_columns import column_reader, keys_of, looked_at
from zephon.io.values import value_of

_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_BRACE_OPEN, _BRACE_CLOSE, _RETURN = b"{}\r"
_VALUE = msgspec.json.Decoder()
_ESCAPED = re.compile(r'["\\\x00-\x1f]')  # keys with these are not for the typed decoder


class LineDecoder:
    """Decodes some columns of JSON lines. Any number of threads may use one."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        keys = [key for column in columns for key in looked_at(column)]
        names = {key: f"f{index}" for index, key in enumerate(dict.fromkeys(keys))}
        self._readers = tuple(column_reader(column, keys, names) for column in columns)
        fields: dict[str, tuple[str, Any, Any]] = {}
        for column, reader in zip(columns, self._readers, strict=True):
            for key in keys_of(column):
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
        self._refused = self._type(**dict.fromkeys(self._type.__struct_fields__))

    def decode(self, text: bytes, lines: RowLines) -> tuple[list[pa.Array], list[dict[int, str]]]:
        """Decode the rows of a text.

        Returns:
            one array a column, without nulls but of kind "any"; and, a column each, what is wrong
            with each bad row.
        """
        rows, refused = self._rows(text, lines)
        values = [reader.values(rows, refused) for reader in self._readers]
        arrays = [reader.array(some) for reader, some in zip(self._readers, values, strict=True)]
        doubts: dict[int, list[int]] = {}  # columns in doubt, by row
        for index, (reader, array) in enumerate(zip(self._readers, arrays, strict=True)):
            for row in reader.doubtful(values[index]) if array is None else ():
                doubts.setdefault(row, []).append(index)
        problems: list[dict[int, str]] = [{} for _ in self._columns]
        for row, doubted in doubts.items():
            line = text[lines.starts[row] : lines.stops[row]]
            found = self._slowly(line, [self._columns[index] for index in doubted])
            for place, index in enumerate(doubted):
                reader, value = self._readers[index], found[place]
                if isinstance(value, DataError):
                    problems[index][row] = str(value)
                    values[index][row] = reader.blank
                else:
                    values[index][row] = reader.patch(value)
        for index, reader in enumerate(self._readers):
            if arrays[index] is None:
                arrays[index] = reader.array(values[index])
        return [array for array in arrays if array is not None], problems

    def _rows(self, text: bytes, lines: RowLines) -> tuple[list[Any], list[int]]:
        """Decode all rows; say which of them the typed decoder refused."""
        if not self._typed:
            return [self._refused] * len(lines.starts), list(range(len(lines.starts)))
        if _one_object_a_line(text, lines):
            try:
                rows = self._decoder.decode_lines(text)
            except _REFUSED:
                rows = []
            if len(rows) == len(lines.starts):
                return rows, []
        decode = self._decoder.decode
        rows, refused = [], []
        for start, stop in zip(lines.starts.tolist(), lines.stops.tolist(), strict=True):
            try:
                rows.append(decode(text[start:stop]))
            except _REFUSED:
                refused.append(len(rows))
                rows.append(self._refused)
        return rows, refused

    def _slowly(self, line: bytes, columns: list[Column]) -> list[Any]:
        """Read some columns of one line; an error stands for one that cannot be read."""
        try:
            row = _load(line.decode("utf-8", "surrogateescape"))  # other fields may hold anything
        except DataError as exc:
            return [exc] * len(columns)
        found: list[Any] = []
        for column in columns:
            try:
                found.append(value_of(row, column))
            except DataError as exc:
                told = isinstance(row, dict) and column.way_out
                found.append(DataError(f"{exc}; {told}") if told else exc)
        return found


def load_rows(text: bytes, lines: RowLines) -> list[Any]:
    """Decode the rows of a text whole; None for one that is not JSON, or null."""
    rows = _loaded_at_once(text, lines)
    if rows is not None:
        return rows
    rows = []
    for start, stop in zip(lines.starts.tolist(), lines.stops.tolist(), strict=True):
        try:
            rows.append(load_line(text[start:stop]))
        except DataError:
            rows.append(None)  # said when the row is read
    return rows


def all_load(text: bytes, lines: RowLines) -> bool:
    """Say whether every row is known to be JSON; False where lines must be looked at one by one."""
    return _loaded_at_once(text, lines) is not None


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


def _loaded_at_once(text: bytes, lines: RowLines) -> list[Any] | None:
    """Decode all rows in one call; None where that cannot be, or goes wrong."""
    if not _one_object_a_line(text, lines):
        return None
    try:
        rows = _VALUE.decode_lines(text)
    except _REFUSED:
        return None
    return rows if len(rows) == len(lines.starts) else None


def _load(text: str) -> Any:
    text = text.lstrip("\ufeff")
    try:
        try:
            return json.loads(text)
        except RecursionError:  # the same depth of nesting is too much, however deep this call is
            with ThreadPoolExecutor(1) as apart:
                return apart.submit(json.loads, text).result()
    except json.JSONDecodeError as exc:
        raise DataError(
            f"a line must be one JSON object, this one is not ({exc.msg}: character {exc.pos})"
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise DataError(
            f"a line must be one JSON object, this one is beyond limits ({exc})"
        ) from exc


def _one_object_a_line(text: bytes, lines: RowLines) -> bool:
    if not len(lines.starts):
        return True
    letters = np.frombuffer(text, np.uint8)
    last = letters[lines.stops - 1]
    if (last == _RETURN).any():
        last = np.where(last == _RETURN, letters[lines.stops - 2], last)
    return bool((letters[lines.starts] == _BRACE_OPEN).all() and (last == _BRACE_CLOSE).all())
