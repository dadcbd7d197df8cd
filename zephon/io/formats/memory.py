"""Rows in memory: the user's own objects, read as columns or copied as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, DatasetError
from zephon.io.data_file import DataFile
from zephon.io.exact_values import checked_column, exact_column
from zephon.io.faults import Faults
from zephon.io.field_types import FoundType, TypesSeen
from zephon.io.fields import LOOKED_AT, TEXT, Column, Field, Seen
from zephon.io.formats.arrow_columns import number_lists
from zephon.io.formats.first_rows import seen_in_rows
from zephon.io.formats.format import (
    DecodedGroup,
    Format,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.in_memory import InMemoryShard
from zephon.io.offsets import offsets_of
from zephon.io.payload import RowSource
from zephon.io.seen_types import SeenTypes
from zephon.io.shard import Shard
from zephon.io.shards import Shards
from zephon.io.values import fields_of, raw_value_of, value_of

GROUP_ROWS = 4096


class Memory(Format):
    """``InMemoryShard``s; there is no file."""

    kind = "in_memory"
    suffixes = ()
    lists_in = None  # as the user has them
    pads_objects = False

    def count(self, dataset: str, file: DataFile) -> Shard:
        """Refuse: rows in memory have no path."""
        raise DatasetError(
            f"dataset {dataset!r}: rows in memory have no path, got {file.path!r}; use "
            f"Dataset.from_dict"
        )

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Look at the first rows of the first shard that has any; never complete."""
        filled = shards.rows > 0
        if not filled.any():
            return (), False
        rows = _rows(shards[int(filled.argmax())])
        return fields_of(rows[index] for index in range(min(LOOKED_AT, len(rows)))), False

    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Look at all rows; one whose own code raises is passed over, and says so when taken."""
        found = TypesSeen()
        for about in shards:
            seen, rows = SeenTypes(objects=True), _rows(about)
            for start in range(0, len(rows), GROUP_ROWS):
                stop = min(start + GROUP_ROWS, len(rows))
                seen.look(rows.getsamples(range(start, stop)), start)
            found.add_rows(seen, about.name)
        return found.found()

    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse nothing: what rows hold shows when they are read."""

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Look at the user's own rows."""
        filled = shards.rows > 0
        rows = _rows(shards[int(filled.argmax())]) if filled.any() else ()
        return seen_in_rows((rows[index] for index in range(min(LOOKED_AT, len(rows)))), names)

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make the reader; whether a field is there shows only row by row."""
        return MemoryGroups(dataset, shards, columns, payload=payload)


class MemoryGroups(GroupReader):
    """Reads columns out of the user's rows, one value at a time."""

    def __init__(
        self, dataset: str, shards: Sequence[Shard], columns: tuple[Column, ...], *, payload: bool
    ) -> None:
        self._dataset = dataset
        self._shards = shards
        self._columns = columns
        self._payload = payload

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Read the columns of one group of rows."""
        about = self._shards[shard]
        start = group * GROUP_ROWS
        numbers = range(start, start + int(about.group_rows[group]))
        rows = _rows(about).getsamples(numbers)
        place = f"dataset {self._dataset!r}, shard {about.name!r}"
        faults: list[Faults] = []
        arrays = [_column(rows, column, faults) for column in self._columns]
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, len(rows)),
            faults=tuple(faults),
            payload=ObjectRows(rows, place, numbers) if self._payload else None,
            bytes=held_bytes(arrays) + 8 * len(rows),
        )


class ObjectRows(RowSource):
    """Some of the user's rows; each is copied when it is looked at.

    place: dataset and shard, for messages. numbers: of these rows in their shard; by default from
    0 on.
    """

    __slots__ = ("_numbers", "_place", "_rows")

    def __init__(
        self,
        rows: Sequence[Any],
        place: str = "rows in memory",
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._rows = rows
        self._place = place
        self._numbers = range(len(rows)) if numbers is None else numbers

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Refer to some rows alone: the others may be many, or what no pickle takes."""
        positions = rows.tolist()
        few = [self._rows[position] for position in positions]
        numbers = [self._numbers[position] for position in positions]
        return ObjectRows(few, self._place, numbers), np.arange(len(rows))

    def row(self, index: int) -> Any:
        """Copy one row, whatever object it is.

        Raises:
            DataError: the row cannot be copied; names dataset, shard and row.
        """
        try:
            return _copied(self._rows[index])
        except Exception as exc:  # the row is the user's, and so is what its copying raises
            raise DataError(
                f"{self.place(index)}: a row must be one that "
                f"copy.deepcopy copies, and it raised {type(exc).__name__}: {exc}; keep plain "
                "values in the row"
            ) from exc

    def place(self, index: int) -> str:
        """Say where one row lies."""
        return f"{self._place}, row {self._numbers[index]}"


def _copied(row: Any) -> Any:
    """Copy a row as ``deepcopy`` does; plain dicts of plain values many times faster."""
    if type(row) is not dict or set(map(type, row)) != {str}:
        return deepcopy(row)
    made = {}
    for name, value in row.items():
        kind = type(value)
        if kind in _UNCHANGEABLE:
            made[name] = value
        elif kind is list and set(map(type, value)) <= _UNCHANGEABLE:
            made[name] = list(value)
        else:  # what is inside may be shared between fields
            return deepcopy(row)
    return made


_UNCHANGEABLE = {str, bytes, int, float, bool, type(None)}


def in_memory_shard(key: int, rows: InMemoryShard) -> Shard:
    """Describe one shard of rows in memory."""
    full, rest = divmod(len(rows), GROUP_ROWS)
    return Shard(
        name=str(key),
        path="",
        rows=len(rows),
        bytes=rows.raw_bytes,
        decoded_bytes=rows.raw_bytes,
        group_rows=np.array([GROUP_ROWS] * full + [rest] * bool(rest), dtype=np.int64),
        memory=rows,
    )


def _column(rows: Sequence[Any], column: Column, faults: list[Faults]) -> pa.Array:
    problems: dict[int, str] = {}
    if column.kind == "any":
        made = _of_any_type(rows, column, problems)
    else:
        made = (_texts if column.kind == "text" else _number_lists)(rows, column, problems)
    if problems:
        faults.append(Faults.of(problems, column))
    return made


def _of_any_type(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    try:
        found = exact_column([raw_value_of(row, column) for row in rows], column.type)
    except Exception:  # whose row it is, and what is wrong with it, is said below
        found = None
    if found is not None:
        return found
    values: list[Any] = [None] * len(rows)
    _fill(values, rows, column, problems)
    return checked_column(values, column.type)


def _texts(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    values = [""] * len(rows)
    _fill(values, rows, column, problems)
    return pa.array(values, TEXT)


def _number_lists(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    values = [np.empty(0, column.dtype)] * len(rows)
    _fill(values, rows, column, problems)
    offsets = offsets_of([len(value) for value in values])
    joined = np.concatenate(values)
    if joined.dtype == np.bool_:
        joined = joined.view(np.uint8)
    return number_lists(offsets, pa.array(joined, column.type.value_type))


def _fill(values: list[Any], rows: Sequence[Any], column: Column, problems: dict[int, str]) -> None:
    """Put each row's value in its place; a row that has none is noted and keeps the empty value."""
    for index, row in enumerate(rows):
        try:
            values[index] = value_of(row, column)
        except DataError as exc:
            problems[index] = f": {exc}; {_remedy(row, column)}"
        except Exception as exc:  # the row is an object of the user's, whose own code may fail
            reason = f"{type(exc).__name__}: {exc}"
            problems[index] = f": field {column.path!r} raised {reason}; mend the row"


def _remedy(row: object, column: Column) -> str:
    mend = "mend or remove the row"
    return column.remedy(mend) if isinstance(row, Mapping) else mend


def _rows(shard: Shard) -> InMemoryShard:
    return cast(InMemoryShard, shard.memory)
