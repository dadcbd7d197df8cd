"""Row groups with the keys of their shards' folders beside what the files hold.

A key costs a row nothing: it is one value a shard, repeated. Formats know nothing of keys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import Statistics
from zephon.errors import DatasetError
from zephon.io.column_types import is_text, may_become
from zephon.io.far_reading import FarReading
from zephon.io.faults import Faults
from zephon.io.fields import TEXT, Column
from zephon.io.folder_keys import FolderKeys
from zephon.io.formats.arrow_columns import converted, empty_column
from zephon.io.formats.arrow_values import python_values
from zephon.io.formats.format import (
    DecodedGroup,
    GroupReader,
    Texts,
    columns_batch,
    held_bytes,
)
from zephon.io.payload import RowSource
from zephon.io.shards import Shards

if TYPE_CHECKING:
    from zephon.batches.identity import SampleMeta
    from zephon.io.dataset import Dataset


def group_reader(
    dataset: Dataset, columns: tuple[Column, ...], *, payload: bool, far: FarReading
) -> GroupReader:
    """Make what decodes row groups of a dataset, with the keys of folders if it has some.

    Raises:
        DatasetError: a shard lacks a column, or has it in another type.
        PlanError, CacheError: as ``FarReading.reader``.
    """
    make = partial(far.reader, dataset, payload=payload)
    keys = dataset.folder_keys
    if keys is None or not (payload or any(column.path in keys.types for column in columns)):
        return make(columns)
    return FolderGroups(dataset.name, dataset.shards, keys, columns, make, payload=payload)


class FolderGroups(GroupReader):
    """Adds the keys of folders to row groups; any number of threads may call ``read`` at once.

    Args:
        dataset: its name, for messages.
        shards: of the dataset.
        keys: of their folders.
        columns: what is read of each row, keys among it.
        payload: keep whole rows too.
        make: makes the reader of other columns, which files have.

    Raises:
        DatasetError: a key cannot be read as a column wants it.
    """

    def __init__(
        self,
        dataset: str,
        shards: Shards,
        keys: FolderKeys,
        columns: tuple[Column, ...],
        make: Callable[[tuple[Column, ...]], GroupReader],
        *,
        payload: bool,
    ) -> None:
        self._shards = shards
        self._keys = keys
        self._columns = columns
        self._mine = [at for at, column in enumerate(columns) if column.path in keys.types]
        self._others = [at for at, column in enumerate(columns) if column.path not in keys.types]
        for at in self._mine:
            _check_column(dataset, columns[at], keys.types[columns[at].path])
        named = keys.types if payload else dict.fromkeys(columns[at].path for at in self._mine)
        self._watched = tuple(
            Column(key, "any", values=TEXT, named=True) for key in named if keys.watches
        )
        self._inner = make((*(columns[at] for at in self._others), *self._watched))

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one row group, and add the keys."""
        found = self._inner.read(shard, group)
        rows = found.columns.num_rows
        arrays: list[Any] = [None] * len(self._columns)
        for at, array in zip(self._others, found.columns.columns, strict=False):
            arrays[at] = array
        faults = self._own_faults(shard, found) if self._watched else list(found.faults)
        for at in self._mine:
            column = self._columns[at]
            one, bad = self._converted(shard, column)
            arrays[at] = pa.repeat(one[0], rows)
            faults += [
                Faults(np.arange(rows), list(each.details) * rows, each.unknown)
                for each in bad
                if len(each.rows)
            ]
        payload = found.payload
        if payload is not None:
            values = {key: self._keys.value(key, shard) for key in self._keys.types}
            payload = FolderRows(payload, values)
        return DecodedGroup(
            columns_batch(self._columns, arrays, rows),
            tuple(faults),
            payload,
            found.bytes + held_bytes([arrays[at] for at in self._mine]),
        )

    def statistics(self, shard: int, groups: Sequence[int]) -> Sequence[Mapping[str, Statistics]]:
        """Say what files tell, and the one value of each key."""
        sizes = self._shards[shard].group_rows
        told: list[Mapping[str, Statistics]] = []
        for group, about in zip(groups, self._inner.statistics(shard, groups), strict=True):
            rows, found = int(sizes[group]), dict(about)
            for watched in self._watched:
                found.pop(watched.path, None)
            for at in self._mine:
                column = self._columns[at]
                if column.kind != "any":
                    continue
                one, bad = self._converted(shard, column)
                value = one[0] if one[0].is_valid else None
                if not bad:
                    nulls = rows if value is None else 0
                    found[column.path] = Statistics(value, value, nulls, rows)
            told.append(found)
        return told

    def keep_texts(self, texts: Texts) -> None:
        """Let text that cost much to have be kept."""
        self._inner.keep_texts(texts)

    def leave_rows(self) -> None:
        """Leave it to whoever looks at a whole row to find that it is bad."""
        self._inner.leave_rows()

    def check_unchanged(self, shard: int) -> None:
        """Refuse a file that was written to since its rows were counted."""
        self._inner.check_unchanged(shard)

    def _converted(self, shard: int, column: Column) -> tuple[pa.Array, list[Faults]]:
        """Give the value of a key as a column wants it, and what is wrong with it."""
        if not self._keys.has_key(column.path, shard) and column.missing == "empty":
            return empty_column(column, 1), []
        one, bad = converted(self._keys.value(column.path, shard), column)
        return one, [bad] if len(bad.rows) else []

    def _own_faults(self, shard: int, found: DecodedGroup) -> list[Faults]:
        """Give the faults of what files hold, and of rows that have a key's field themselves."""
        watched = {column.path for column in self._watched}
        faults = [bad for bad in found.faults if bad.unknown not in watched]
        for number, column in enumerate(self._watched):
            values = found.columns.column(len(self._others) + number)
            clashes: dict[int, str] = {}
            if values.null_count < len(values):
                texts = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
                clashes = {row: repr(values[row].as_py())[:80] for row in texts.tolist()}
            other: dict[int, str] = {}
            for bad in found.faults:
                if bad.unknown != column.path:
                    continue
                for row, detail in zip(bad.rows.tolist(), bad.details, strict=True):
                    if f"field {column.path!r} must be" in detail:
                        clashes[row] = "another value"
                    else:  # the row is no object, or cannot be read at all
                        other[row] = detail
            if self._keys.refuses and clashes:
                mine = self._keys.value(column.path, shard)[0].as_py()
                other |= {row: _refusal(column.path, got, mine) for row, got in clashes.items()}
            if other:
                faults.append(Faults.of(other))
        return faults


class FolderRows(RowSource):
    """Whole rows with the keys of their folder, after the fields of the file.

    inner: what the file holds. keys: of each key, an array of one value.
    """

    __slots__ = ("_inner", "_keys", "_values")

    def __init__(self, inner: RowSource, keys: Mapping[str, pa.Array]) -> None:
        self._inner = inner
        self._keys = keys
        self._values = {key: python_values(one)[0] for key, one in keys.items()}

    @property
    def has_metas(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner rows do."""
        return self._inner.has_metas

    @property
    def are_dicts(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner rows are."""
        return self._inner.are_dicts

    def row(self, index: int) -> Any:
        """Make one row; what is no object has no keys."""
        row = self._inner.row(index)
        if isinstance(row, dict):
            row.update(self._values)
        return row

    def rows(self, indices: NDArray[np.int64]) -> list[Any]:
        """Make some rows."""
        rows = self._inner.rows(indices)
        dicts = rows if self._inner.are_dicts else [row for row in rows if isinstance(row, dict)]
        deque(map(dict.update, dicts, repeat(self._values)), 0)  # no bytecode runs a row
        return rows

    def raw(self, index: int) -> bytes:
        """Give one row as it lies in the file."""
        return self._inner.raw(index)

    def place(self, index: int) -> str:
        """Say where one row lies."""
        return self._inner.place(index)

    def meta(self, index: int) -> SampleMeta:
        """Give what the inner row says of itself."""
        return self._inner.meta(index)

    def metas_only(self) -> RowSource:
        """Give the same rows without fields."""
        return self._inner.metas_only()

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Give a source that holds these rows."""
        inner, places = self._inner.some(rows)
        return FolderRows(inner, self._keys), places

    def __reduce__(self) -> tuple[Any, ...]:
        return FolderRows, (self._inner, self._keys)

    @property
    def inner(self) -> RowSource:
        """The rows as the file holds them."""
        return self._inner

    @property
    def keys(self) -> Mapping[str, pa.Array]:
        """The keys, each an array of one value."""
        return self._keys


def _check_column(dataset: str, column: Column, held: pa.DataType) -> None:
    """Refuse a column that no value of a key can be."""
    fits = is_text(held) if column.kind == "text" else False
    if column.kind == "any":
        fits = may_become(held, column.type)
    if not fits:
        raise DatasetError(
            f"dataset {dataset!r}: column {column.path!r} must be {column.wanted}, but it is a key "
            f"of folders, of type {held}; name another column, or pass hive=False for the files' "
            f"own"
        )


def _refusal(key: str, got: str, mine: object) -> str:
    return (
        f": field {key!r} must come from one place, got {got} in the row and {mine!r} from its "
        f"folder; mend the row, or open the dataset with hive='path' or hive=False"
    )
