"""Rows in memory: the user's own objects, read as columns or copied as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zephon.errors import DataError, DatasetError
from zephon.io.data_file import DataFile
from zephon.io.faults import Faults
from zephon.io.field_types import FoundType, TypesSeen
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.first_rows import seen_in_rows
from zephon.io.formats.format import (
    DecodedGroup,
    Format,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.row_columns import column_of_rows, copied
from zephon.io.in_memory import InMemoryShard
from zephon.io.payload import RowSource
from zephon.io.seen_types import SeenTypes
from zephon.io.shard import Shard
from zephon.io.shards import Shards
from zephon.io.values import fields_of

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
        arrays = [column_of_rows(rows, column, faults) for column in self._columns]
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
            return copied(self._rows[index])
        except Exception as exc:  # the row is the user's, and so is what its copying raises
            raise DataError(
                f"{self.place(index)}: a row must be one that "
                f"copy.deepcopy copies, and it raised {type(exc).__name__}: {exc}; keep plain "
                "values in the row"
            ) from exc

    def place(self, index: int) -> str:
        """Say where one row lies."""
        return f"{self._place}, row {self._numbers[index]}"


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


def _rows(shard: Shard) -> InMemoryShard:
    return cast(InMemoryShard, shard.memory)
