"""Parquet: the columns that are needed, one row group at a time.

A file is opened once a thread, and its footer parsed once. Only the leaves that a plan reads are
decoded, unless whole rows are wanted.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from zephon.errors import ShardError
from zephon.io.fields import LOOKED_AT, Column, Field, Seen, merged_kind
from zephon.io.formats.arrow_columns import converted, empty_column, kind_of_type
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.first_rows import seen_in_column
from zephon.io.formats.format import (
    DecodedGroup,
    Faults,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.parquet_layouts import (
    LAYOUT_TYPES,
    ParquetEntry,
    ParquetLayout,
    ParquetLayouts,
    decoded_schema,
    encoded_schema,
    resolve_entries,
    schema_of,
    share_schemas,
)
from zephon.io.formats.parquet_schema import check_column, type_at
from zephon.io.offsets import offsets_of
from zephon.io.shard import ListedBy, Shard
from zephon.io.shards import Shards

_PROBED_BYTES = 1 << 16  # read at a time by who looks at a few rows: not a whole column
_OPEN_FILES = 16  # a thread
_FOOTERS = 256  # a reader; a footer of a wide table can be megabytes


class Parquet(FileFormat):
    """Files that end in .parquet."""

    kind = "parquet"
    suffixes = (".parquet",)
    lists_in = "np"
    entry_type = ParquetEntry
    layout_types = LAYOUT_TYPES

    def count(self, dataset: str, path: Path) -> Shard:
        """Read the footer."""
        return self._footer(dataset, path)[0]

    def describe(self, dataset: str, path: Path) -> tuple[Shard, dict[str, Any]]:
        """Read the footer, with the sizes of row groups."""
        shard, groups = self._footer(dataset, path)
        sizes = [
            {"num_rows": group.num_rows, "total_byte_size": group.total_byte_size}
            for group in groups
        ]
        extra = {"num_row_groups": len(groups), "row_groups": sizes}
        return shard, {**extra, "schema": encoded_schema(schema_of(shard))}

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Join the columns of all footers; complete if every shard has every column."""
        schemas = [schema_of(shards[place]) for place in _differing(shards)]
        if not schemas:
            schemas = [schema_of(shard) for shard in shards[:1]]
        kinds: dict[str, list[str]] = {}
        for schema in schemas:
            for field in schema:
                kinds.setdefault(field.name, []).append(kind_of_type(field.type))
        fields = tuple(Field(name, merged_kind(seen)) for name, seen in kinds.items())
        return fields, all(set(schema.names) == set(kinds) for schema in schemas)

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Take kinds from all footers, and lengths from the first pages of the first row group.

        Some 5 ms and a few megabytes, whatever the size of a row group.
        """
        schemas = [schema_of(shards[place]) for place in _differing(shards)]
        here = [n for n in names if schemas and all(s.names.count(n) == 1 for s in schemas)]
        if not here:
            return {}
        first = shards[int((shards.rows > 0).argmax())]
        enough = int(np.searchsorted(np.cumsum(first.group_rows), LOOKED_AT)) + 1
        groups = list(range(min(enough, len(first.group_rows))))
        with (
            _located(dataset, first.name, f"row group {groups[-1]}"),
            pq.ParquetFile(first.path, pre_buffer=False, buffer_size=_PROBED_BYTES) as file,
        ):
            first.check_unchanged(dataset, os.stat(first.path))
            found = file.iter_batches(LOOKED_AT, row_groups=groups, columns=here, use_threads=False)
            batches = list(islice(found, len(groups)))  # a batch may end with its row group
        table = pa.Table.from_batches(batches).slice(0, LOOKED_AT).combine_chunks()
        return {
            name: seen_in_column(table.column(name).chunk(0), [s.field(name).type for s in schemas])
            for name in here
        }

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Check every footer that has rows, then make the reader."""
        for place in _differing(shards):
            shard = shards[place]
            for column in columns:
                check_column(dataset, shard.name, schema_of(shard), column)
        return ParquetGroups(dataset, shards, columns, payload=payload)

    def group_bytes(self, shard: Shard) -> NDArray[np.int64] | None:
        """Read the footer, which says so."""
        try:
            footer = pq.read_metadata(shard.path)
        except (pa.ArrowException, OSError):
            return None
        groups = range(footer.num_row_groups)
        found = np.array([footer.row_group(group).total_byte_size for group in groups], np.int64)
        return found if len(found) == len(shard.group_rows) else None

    def shortened(self, names: Sequence[str], extras: Sequence[dict[str, Any]]) -> None:
        """Write each schema once."""
        share_schemas(names, extras)

    def resolve(self, entries: Sequence[ParquetEntry]) -> None:
        """Check row groups and schemas."""
        resolve_entries(entries)

    def from_entry(self, entry: ParquetEntry, path: str, listed_by: ListedBy) -> Shard | None:
        """Make the shard of an entry that has a schema."""
        if entry.extra.schema is None:
            return None
        groups = entry.extra.row_groups
        return Shard(
            name=entry.basename,
            path=path,
            rows=entry.num_rows,
            bytes=entry.bytes,
            decoded_bytes=sum([group.total_byte_size for group in groups]),
            group_rows=np.array([group.num_rows for group in groups], dtype=np.int64),
            layout=ParquetLayout(decoded_schema(entry.extra.schema)),
            listed_by=listed_by,
        )

    def layouts(self, shards: Sequence[Shard]) -> ParquetLayouts:
        """Join the schemas of shards."""
        return ParquetLayouts.joined(shards)

    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> ParquetLayouts:
        """Take up the schemas that were stored."""
        return ParquetLayouts.stored(columns, about)

    def _footer(self, dataset: str, path: Path) -> tuple[Shard, list[pq.RowGroupMetaData]]:
        with (
            _located(dataset, path.name, "its footer"),
            pq.ParquetFile(path, pre_buffer=False) as file,
        ):
            status = path.stat()
            footer, schema = file.metadata, file.schema_arrow.remove_metadata()
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        shard = Shard(
            name=path.name,
            path=str(path),
            rows=footer.num_rows,
            bytes=status.st_size,
            decoded_bytes=sum(group.total_byte_size for group in groups),
            group_rows=np.array([group.num_rows for group in groups], dtype=np.int64),
            mtime_ns=status.st_mtime_ns,
            layout=ParquetLayout(schema),
        )
        return shard, groups


def _differing(shards: Shards) -> list[int]:
    """Find the first shard with rows of each different schema."""
    layouts = cast(ParquetLayouts, shards.layouts)
    return layouts.first_of_each(np.flatnonzero(shards.rows))


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
        present = [type_at(schema, column.path) is not None for column in self._columns]
        names = [column.path for column, here in zip(self._columns, present, strict=True) if here]
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
