"""Rows of an Arrow table as Python values: one at a time, or many column by column."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.column_types import is_text
from zephon.io.faults import Faults
from zephon.io.formats.arrow_values import python_value, python_values, unheld
from zephon.io.offsets import are_neighbours, indices_of, offsets_of
from zephon.io.payload import RowSource
from zephon.io.raw_rows import json_of


class TableRows(RowSource):
    """The rows of one table; holds the table, copies a row at a time.

    place: dataset and shard, for messages. first_row: the first row of the row group in its shard.
    positions: where each row was in its row group, shape [rows], int64; left out for all of it.
    """

    __slots__ = ("_columns", "_first_row", "_names", "_place", "_positions")

    are_dicts = True

    def __init__(
        self,
        table: pa.Table,
        place: str = "a table",
        first_row: int = 0,
        positions: NDArray[np.int64] | None = None,
    ) -> None:
        self._place = place
        self._first_row = first_row
        self._positions = positions
        self._names: tuple[str, ...] = tuple(table.column_names)
        self._columns: tuple[pa.ChunkedArray, ...] = tuple(table.columns)

    def row(self, index: int) -> dict[str, Any]:
        """Make one row: a dict of every column.

        Raises:
            DataError: a text is not UTF-8, or Python has no such value, as for a part of a
                microsecond; names dataset, shard, row and field.
        """
        return {
            name: self._value(name, column[index], index)
            for name, column in zip(self._names, self._columns, strict=True)
        }

    def raw(self, index: int) -> bytes:
        """Give one row as JSON; text that is not UTF-8 as bytes."""
        named = zip(self._names, self._columns, strict=True)
        return json_of({name: _told(column[index]) for name, column in named})

    def rows(self, indices: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Make some rows, many times faster than one at a time; raises as ``row``."""
        names = self._names
        if not names:
            return [{} for _ in indices]
        columns = [
            self._values(name, column, indices)
            for name, column in zip(names, self._columns, strict=True)
        ]
        each = zip(*columns, strict=True)
        return list(map(dict, map(zip, repeat(names), each)))  # no bytecode runs a row

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Copy some rows; a table with a column that Arrow cannot copy by row stays whole."""
        kept, places = np.unique(rows, return_inverse=True)
        try:
            columns = [_taken(column, kept) for column in self._columns]
        except pa.ArrowNotImplementedError:  # views of strings, run-end encoding
            return self, rows
        table = pa.Table.from_arrays(columns, names=list(self._names))
        positions = kept if self._positions is None else self._positions[kept]
        return TableRows(table, self._place, self._first_row, positions), places

    def to_columns(self) -> tuple[list[pa.Array], dict[str, Any]] | None:
        """Give the columns and, as JSON values, the rest; None for some rows of a group."""
        arrays = [_as_one(column) for column in self._columns]
        if self._positions is not None or not all(isinstance(a, pa.Array) for a in arrays):
            return None
        about = {"place": self._place, "first_row": self._first_row, "names": self._names}
        return arrays, about

    @classmethod
    def of_columns(cls, arrays: list[pa.Array], about: dict[str, Any]) -> TableRows:
        """Make the rows of what ``to_columns`` gave."""
        table = pa.Table.from_arrays(arrays, names=about["names"])
        return cls(table, about["place"], about["first_row"])

    def faults(self) -> list[Faults]:
        """Find the rows that are bad since a text of theirs is not UTF-8; nothing if none is."""
        found: dict[int, str] = {}
        for name, column in zip(self._names, self._columns, strict=True):
            if _may_hold_text(column.type) and not _is_valid(column):
                for index, scalar in enumerate(column):
                    try:
                        python_value(scalar)
                    except UnicodeDecodeError as exc:
                        found.setdefault(index, f": {_no_text(name, exc)}")
                    except (ValueError, OverflowError):
                        continue
        return [Faults.of(found)] if found else []

    def _values(self, name: str, column: pa.ChunkedArray, indices: NDArray[np.int64]) -> list[Any]:
        """Give some values of a column, in any order; a value of which Arrow says no by itself."""
        try:
            if column.num_chunks == 1:
                return python_values(_picked(column.chunk(0), indices))
            starts = offsets_of([len(chunk) for chunk in column.chunks])
            chunk_of = np.searchsorted(starts, indices, side="right") - 1
            made: list[Any] = [None] * len(indices)
            for number in np.unique(chunk_of).tolist():
                places = np.flatnonzero(chunk_of == number)
                picked = _picked(column.chunk(number), indices[places] - starts[number])
                for place, value in zip(places.tolist(), python_values(picked), strict=True):
                    made[place] = value
            return made
        except (pa.ArrowException, ValueError, OverflowError):  # bytes that are no text, and views
            return [self._value(name, column[index], index) for index in indices.tolist()]

    def _value(self, name: str, scalar: pa.Scalar, index: int) -> Any:
        try:
            return python_value(scalar)
        except UnicodeDecodeError as exc:
            raise DataError(f"{self._located(index)}: {_no_text(name, exc)}") from exc
        except (ValueError, OverflowError) as exc:
            raise DataError(f"{self._located(index)}: {unheld(name, scalar, exc)}") from exc

    def _located(self, index: int) -> str:
        position = index if self._positions is None else int(self._positions[index])
        return f"{self._place}, row {self._first_row + position}"


def _no_text(name: str, problem: UnicodeDecodeError) -> str:
    return (
        f"field {name!r} must be UTF-8 text, got bytes that are not ({problem.reason}); mend or "
        f"remove the row"
    )


@functools.cache
def _may_hold_text(dtype: pa.DataType) -> bool:
    if isinstance(dtype, pa.BaseExtensionType):
        return _may_hold_text(dtype.storage_type)
    if pa.types.is_dictionary(dtype):
        return _may_hold_text(dtype.value_type)
    inner = (dtype.field(place).type for place in range(dtype.num_fields))
    return is_text(dtype) or any(map(_may_hold_text, inner))


def _is_valid(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _told(scalar: pa.Scalar) -> Any:
    """Give a value, or what can be told of one that Python does not have."""
    try:
        return python_value(scalar)
    except UnicodeDecodeError:
        as_buffer = getattr(scalar, "as_buffer", None)
        return str(scalar.type) if as_buffer is None else as_buffer().to_pybytes()
    except (ValueError, OverflowError):
        return f"one of type {scalar.type}"


def _picked(array: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Pick rows; those that lie side by side are not copied."""
    if len(rows) and are_neighbours(rows):
        return array.slice(int(rows[0]), len(rows))
    return array.take(indices_of(rows))


def _as_one(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Join chunks, which copies; what is too large for one array stays in chunks."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _taken(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.ChunkedArray:
    """Copy ascending rows, chunk by chunk: ``ChunkedArray.take`` is many times slower."""
    starts = offsets_of([len(chunk) for chunk in column.chunks])
    cuts = np.searchsorted(rows, starts)
    pieces = [
        chunk.take(indices_of(rows[cuts[index] : cuts[index + 1]] - starts[index]))
        for index, chunk in enumerate(column.chunks)
    ]
    return pa.chunked_array(pieces, column.type)
