"""Reading Parquet: the columns that are needed, one row group at a time.

A file is opened once a thread, and its footer parsed once. Only the leaves that a plan reads are
decoded, unless whole rows are wanted.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zephon.column_steps import Statistics
from zephon.errors import ShardError
from zephon.io.faults import Faults, unknown_by
from zephon.io.fields import Column
from zephon.io.formats.arrow_columns import converted, empty_column
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.format import (
    DecodedGroup,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.parquet_layouts import schema_of
from zephon.io.formats.parquet_schema import type_of
from zephon.io.formats.parquet_statistics import statistics_of
from zephon.io.offsets import offsets_of
from zephon.io.shard import Shard

_OPEN_FILES = 16  # a thread
_FOOTERS = 256  # a reader; a footer of a wide table can be megabytes


class ParquetGroups(GroupReader):
    """Decodes row groups; each thread has its own open files."""

    def __init__(
        self, dataset: str, shards: Sequence[Shard], columns: tuple[Column, ...], *, payload: bool
    ) -> None:
        self._dataset = dataset
        self._shards = shards
        self._columns = columns
        self._payload = payload
        self._open = _OpenFiles()
        self._footers: OrderedDict[int, pq.FileMetaData] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one row group with one thread: the caller's."""
        about = self._shards[shard]
        rows = int(about.group_rows[group])
        schema = schema_of(about)
        present = [type_of(schema, column) is not None for column in self._columns]
        names = [column.path for column, here in zip(self._columns, present, strict=True) if here]
        names = list(dict.fromkeys(names))
        table = self._table(shard, group, names) if names or self._payload else pa.table({})
        if table.num_columns and table.num_rows != rows:
            held = f"row group {group}: {rows} rows were counted, but {table.num_rows} decoded"
            raise about.stale(self._dataset, held)
        arrays: list[pa.Array] = []
        faults: list[Faults] = []
        for column, here in zip(self._columns, present, strict=True):
            if not here:
                arrays.append(empty_column(column, rows))
                continue
            array, bad = converted_column(table, column)
            arrays.append(array)
            if len(bad.rows):
                faults.append(bad)
        held = list(arrays)
        if self._payload:
            held += [chunk for column in table.columns for chunk in column.chunks]
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=tuple(faults),
            payload=self._whole_rows(shard, group, table) if self._payload else None,
            bytes=held_bytes(held),
        )

    def statistics(self, shard: int, groups: Sequence[int]) -> list[dict[str, Statistics]]:
        """Take them from the footer."""
        about = self._shards[shard]
        with located(self._dataset, about.name, "its footer"):
            footer = self._file(shard).metadata
        return statistics_of(footer, groups, schema_of(about), self._columns)

    def check_unchanged(self, shard: int) -> None:
        """Look at the file's size and time."""
        about = self._shards[shard]
        with located(self._dataset, about.name, "its footer"):
            about.check_unchanged(self._dataset, os.stat(about.path))

    def _whole_rows(self, shard: int, group: int, table: pa.Table) -> TableRows:
        about = self._shards[shard]
        place = f"dataset {self._dataset!r}, shard {about.name!r}"
        return TableRows(table, place, int(about.group_rows[:group].sum()))

    def _table(self, shard: int, group: int, names: list[str]) -> pa.Table:
        with located(self._dataset, self._shards[shard].name, f"row group {group}"):
            return self._file(shard).read_row_group(
                group, columns=None if self._payload else names, use_threads=False
            )

    def _file(self, shard: int) -> pq.ParquetFile:
        files = self._open.files
        about = self._shards[shard]
        about.check_unchanged(self._dataset, os.stat(about.path))  # for each group: 2 µs
        if shard in files:
            files.move_to_end(shard)
            return files[shard]
        with self._lock:
            footer = self._footers.get(shard)
        file = pq.ParquetFile(about.path, metadata=footer, pre_buffer=False)
        if footer is None and about.listed_by is not None:
            self._check_told(about, file)
        with self._lock:
            self._footers[shard] = file.metadata
            self._footers.move_to_end(shard)
            if len(self._footers) > _FOOTERS:
                self._footers.popitem(last=False)
        files[shard] = file
        if len(files) > _OPEN_FILES:
            files.popitem(last=False)[1].close()
        return file

    def _check_told(self, about: Shard, file: pq.ParquetFile) -> None:
        """Refuse a file whose footer is not what an index told of it."""
        footer = file.metadata
        seen = (footer.num_rows, footer.num_row_groups)
        told = (about.rows, len(about.group_rows))
        if seen != told:
            found = f"it has {seen[0]} rows in {seen[1]} row groups, not {told[0]} in {told[1]}"
            raise about.stale(self._dataset, found)
        if not file.schema_arrow.equals(schema_of(about)):
            raise about.stale(self._dataset, "its columns are others")


class _OpenFiles(threading.local):
    """The open files of one thread, by shard; closed with the thread."""

    def __init__(self) -> None:
        self.files: OrderedDict[int, pq.ParquetFile] = OrderedDict()


def converted_column(table: pa.Table, column: Column) -> tuple[pa.Array, Faults]:
    """Convert a column of a table, chunk by chunk, as ``arrow_columns.converted`` does each."""
    chunks = _chunks(table, column.path)
    if len(chunks) == 1:
        return converted(chunks[0], column)
    parts = [converted(chunk, column) for chunk in chunks]
    if not parts:
        return empty_column(column, 0), Faults.of({}, column)
    starts = offsets_of([len(chunk) for chunk in chunks])
    rows = [bad.rows + start for (_, bad), start in zip(parts, starts, strict=False)]
    details = [detail for _, bad in parts for detail in bad.details]
    joined = pa.concat_arrays([array for array, _ in parts])
    return joined, Faults(np.concatenate(rows), details, unknown_by(column))


def _chunks(table: pa.Table, path: str) -> list[pa.Array]:
    if path in table.column_names:
        return table.column(path).chunks
    first, *inner = path.split(".")
    chunks: list[pa.Array] = table.column(first).chunks
    for name in inner:  # flatten() gives children the nulls of their parent
        chunks = [chunk.flatten()[chunk.type.get_field_index(name)] for chunk in chunks]
    return chunks


@contextmanager
def located(dataset: str, shard: str, part: str) -> Iterator[None]:
    """Name the file and the part of it in whatever Arrow raises."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as exc:
        if isinstance(exc, ShardError):
            raise
        what = "it cannot be opened"
        if not isinstance(exc, (FileNotFoundError, PermissionError)):
            what = "this is not a Parquet file, or it is damaged or cut off"
        raise ShardError(
            f"dataset {dataset!r}, shard {shard!r}: {part} must be readable, but {what}: {exc}; "
            f"write the file again, or move it out of the directory"
        ) from exc
