"""Parquet: the columns that are needed, one row group at a time.

A file is opened once a thread, and its footer parsed once. Only the leaves that a plan reads are
decoded, unless whole rows are wanted.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zephon.errors import DatasetError, ShardError, nearest
from zephon.io.fields import Column, Field, merged_kind
from zephon.io.formats.arrow_columns import converted, empty_column, kind_of_type
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.format import (
    DecodedGroup,
    Faults,
    Format,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.offsets import offsets_of
from zephon.io.shard import Shard

_OPEN_FILES = 16  # a thread
_FOOTERS = 256  # a reader; a footer of a wide table can be megabytes


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """What the footer says about columns. Row groups are in ``Shard.group_rows``."""

    schema: pa.Schema


class Parquet(Format):
    """Files that end in .parquet."""

    kind = "parquet"
    suffixes = (".parquet",)

    def count(self, dataset: str, path: Path) -> Shard:
        """Read the footer."""
        with (
            _located(dataset, path.name, "its footer"),
            pq.ParquetFile(path, pre_buffer=False) as file,
        ):
            status = path.stat()
            footer, schema = file.metadata, file.schema_arrow.remove_metadata()
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        return Shard(
            name=path.name,
            path=str(path),
            rows=footer.num_rows,
            bytes=status.st_size,
            decoded_bytes=sum(group.total_byte_size for group in groups),
            group_rows=np.array([group.num_rows for group in groups], dtype=np.int64),
            mtime_ns=status.st_mtime_ns,
            layout=ParquetLayout(schema),
        )

    def fields(self, dataset: str, shards: Sequence[Shard]) -> tuple[tuple[Field, ...], bool]:
        """Join the columns of all footers; complete if every shard has every column."""
        schemas = list(dict.fromkeys(_schema(shard) for shard in shards if shard.rows))
        if not schemas:
            schemas = [_schema(shard) for shard in shards[:1]]
        kinds: dict[str, list[str]] = {}
        for schema in schemas:
            for field in schema:
                kinds.setdefault(field.name, []).append(kind_of_type(field.type))
        fields = tuple(Field(name, merged_kind(seen)) for name, seen in kinds.items())
        return fields, all(set(schema.names) == set(kinds) for schema in schemas)

    def reader(
        self, dataset: str, shards: Sequence[Shard], columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Check every footer that has rows, then make the reader."""
        checked: set[pa.Schema] = set()
        for shard in shards:
            schema = _schema(shard)
            if shard.rows and schema not in checked:
                for column in columns:
                    _check(dataset, shard.name, schema, column)
                checked.add(schema)
        return ParquetGroups(dataset, shards, columns, payload=payload)


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
        schema = _schema(about)
        present = [_find(schema, column.path) is not None for column in self._columns]
        names = [column.path for column, here in zip(self._columns, present, strict=True) if here]
        table = self._table(shard, group, names) if names or self._payload else pa.table({})
        if table.num_columns and table.num_rows != rows:
            raise ShardError(
                f"dataset {self._dataset!r}, shard {about.name!r}, row group {group}: {rows} rows "
                f"were counted, but {table.num_rows} decoded; open the dataset again"
            )
        arrays: list[pa.Array] = []
        faults: list[Faults] = []
        for column, here in zip(self._columns, present, strict=True):
            if not here:
                arrays.append(empty_column(column, rows))
                continue
            array, bad = _converted(table, column)
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

    def _whole_rows(self, shard: int, group: int, table: pa.Table) -> TableRows:
        about = self._shards[shard]
        place = f"dataset {self._dataset!r}, shard {about.name!r}"
        return TableRows(table, place, int(about.group_rows[:group].sum()))

    def _table(self, shard: int, group: int, names: list[str]) -> pa.Table:
        with _located(self._dataset, self._shards[shard].name, f"row group {group}"):
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
        with self._lock:
            self._footers[shard] = file.metadata
            self._footers.move_to_end(shard)
            if len(self._footers) > _FOOTERS:
                self._footers.popitem(last=False)
        files[shard] = file
        if len(files) > _OPEN_FILES:
            files.popitem(last=False)[1].close()
        return file


class _OpenFiles(threading.local):
    """The open files of one thread, by shard; closed with the thread."""

    def __init__(self) -> None:
        self.files: OrderedDict[int, pq.ParquetFile] = OrderedDict()


def _converted(table: pa.Table, column: Column) -> tuple[pa.Array, Faults]:
    chunks = _chunks(table, column.path)
    if len(chunks) == 1:
        return converted(chunks[0], column)
    parts = [converted(chunk, column) for chunk in chunks]
    if not parts:
        return empty_column(column, 0), Faults.of({})
    starts = offsets_of([len(chunk) for chunk in chunks])
    rows = [bad.rows + start for (_, bad), start in zip(parts, starts, strict=False)]
    details = [detail for _, bad in parts for detail in bad.details]
    joined = pa.concat_arrays([array for array, _ in parts])
    return joined, Faults(np.concatenate(rows), details)


def _chunks(table: pa.Table, path: str) -> list[pa.Array]:
    if path in table.column_names:
        return table.column(path).chunks
    first, *inner = path.split(".")
    chunks: list[pa.Array] = table.column(first).chunks
    for name in inner:  # flatten() gives children the nulls of their parent
        chunks = [chunk.flatten()[chunk.type.get_field_index(name)] for chunk in chunks]
    return chunks


def _find(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Give the type at a dotted path; None if there is nothing at it."""
    if path in schema.names:
        return schema.field(path).type
    first, *inner = path.split(".")
    if first not in schema.names:
        return None
    dtype = schema.field(first).type
    for name in inner:
        if not pa.types.is_struct(dtype) or dtype.get_field_index(name) < 0:
            return None
        dtype = dtype.field(name).type
    return dtype


def _check(dataset: str, shard: str, schema: pa.Schema, column: Column) -> None:
    where, path = f"dataset {dataset!r}, shard {shard!r}", column.path
    there = ", ".join(schema.names)
    first = path if path in schema.names else path.split(".")[0]
    if schema.names.count(first) > 1:
        raise DatasetError(
            f"{where}: column {first!r} must be there once, got {schema.names.count(first)} "
            f"columns of that name; rewrite the file with distinct names"
        )
    if bar := _bar(schema, path):
        raise DatasetError(
            f"{where}: column {path!r} must lie in structs, got {bar[1]} at {bar[0]!r}; the "
            f"columns are {there}"
        )
    dtype = _find(schema, path)
    if dtype is None:
        if column.missing == "error":
            raise DatasetError(
                f"{where}: no column {path!r}; it has {there} ({nearest(path, schema.names)})"
            )
        return
    kind = kind_of_type(dtype)
    empty_lists = kind == "unknown" and column.kind == "tokens"
    if kind != column.kind and not empty_lists and not pa.types.is_null(dtype):
        raise DatasetError(
            f"{where}: column {path!r} must be {column.wanted}, got {dtype}; name another of "
            f"{there}, or rewrite the column"
        )


def _bar(schema: pa.Schema, path: str) -> tuple[str, pa.DataType] | None:
    """Find what on the way to a nested leaf is no struct, and so bars it."""
    parts = path.split(".")
    if path in schema.names:
        return None
    for stop in range(1, len(parts)):
        prefix = ".".join(parts[:stop])
        dtype = _find(schema, prefix)
        if dtype is not None and not pa.types.is_struct(dtype):
            return prefix, dtype
    return None


def _schema(shard: Shard) -> pa.Schema:
    return cast(ParquetLayout, shard.layout).schema


@contextmanager
def _located(dataset: str, shard: str, part: str) -> Iterator[None]:
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
