"""Parquet: what footers tell of shards, without reading a row but the first few.

Row groups are read in ``parquet_groups``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from zephon.io.data_file import DataFile
from zephon.io.field_types import FoundType
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.file_format import FileFormat, told_hash
from zephon.io.formats.first_rows import seen_in_column
from zephon.io.formats.format import (
    GroupReader,
)
from zephon.io.formats.parquet_far import RangeFile, far_footer
from zephon.io.formats.parquet_footer import Footer, group_rows, located, open_parquet
from zephon.io.formats.parquet_groups import ParquetGroups
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
from zephon.io.formats.table_schemas import (
    check_column,
    check_declared_columns,
    check_whole_rows,
    fields_of_schemas,
    types_of_schemas,
)
from zephon.io.marks import FULL, MARK, mark_of_footer
from zephon.io.shard import ListedBy, Shard, file_status
from zephon.io.shards import Shards

_PROBED_BYTES = 1 << 16  # read at a time by who looks at a few rows: not a whole column


class Parquet(FileFormat):
    """Files that end in .parquet."""

    kind = "parquet"
    suffixes = (".parquet",)
    lists_in = "np"
    pads_objects = True
    names_all_fields = True
    columns_apart = True
    entry_type = ParquetEntry
    layout_types = LAYOUT_TYPES
    counts_quickly = True
    reads_far_files = True

    def count(self, dataset: str, file: DataFile) -> Shard:
        """Read the footer."""
        return self._footer(dataset, file)[0]

    def describe(self, dataset: str, file: DataFile) -> tuple[Shard, dict[str, Any]]:
        """Read the footer, with the sizes of row groups."""
        shard, groups = self._footer(dataset, file)
        sizes = [
            {"num_rows": group.num_rows, "total_byte_size": group.total_byte_size}
            for group in groups
        ]
        extra = {"num_row_groups": len(groups), "row_groups": sizes}
        return shard, {**extra, "schema": encoded_schema(schema_of(shard))}

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Join the columns of all footers; complete if every shard has every column."""
        return fields_of_schemas([schema_of(shards[place]) for place in _telling(shards)])

    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Join the types of all footers that have rows; each different one is looked at once."""
        return types_of_schemas(
            (f"shard {shards[place].name!r}", schema_of(shards[place]))
            for place in _telling(shards)
        )

    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse columns that no shard has, or that one has in a type that cannot be read so."""
        there = [(shards[place].name, schema_of(shards[place])) for place in _telling(shards)]
        check_declared_columns(dataset, there, columns)

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Take kinds from all footers, and lengths from the first pages of the first row group.

        Some 5 ms and a few megabytes, whatever the size of a row group.
        """
        schemas = [schema_of(shards[place]) for place in _differing(shards)]
        here = [n for n in names if schemas and all(s.names.count(n) == 1 for s in schemas)]
        if not here:
            return {}
        first = shards[int((shards.rows > 0).argmax())]
        with located(dataset, first.name, "its first rows", first.path):
            far = first.check_far(dataset)
            if far is None:
                first.check_unchanged(dataset, os.stat(first.path))  # opening a pipe would wait
            source = first.path if far is None else RangeFile(far)
            with open_parquet(source, buffer_bytes=_PROBED_BYTES) as file:
                ends = np.cumsum(group_rows(file.metadata))
                groups = list(range(min(int(np.searchsorted(ends, LOOKED_AT)) + 1, len(ends))))
                found = file.iter_batches(
                    LOOKED_AT, row_groups=groups, columns=here, use_threads=False
                )
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
            if payload:
                check_whole_rows(dataset, shard.name, schema_of(shard))
        return ParquetGroups(dataset, shards, columns, payload=payload)

    def group_bytes(self, shard: Shard) -> NDArray[np.int64] | None:
        """Read the footer, which says so."""
        if shard.far is None and not os.path.isfile(shard.path):  # opening a pipe would wait
            return None
        try:
            far = shard.far_file
            footer = pq.read_metadata(shard.path) if far is None else RangeFile(far).metadata()
        except (pa.ArrowException, OSError, ValueError):
            return None
        read = Footer.of(footer, shard)
        if read is None:
            return None
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        found = np.array([group.total_byte_size for group in groups], np.int64)
        if read.parts is None:
            return found
        row_bytes = found / np.maximum([group.num_rows for group in groups], 1)
        units = np.array([part.group for part in read.parts])
        return (row_bytes[units] * shard.group_rows).astype(np.int64)

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
            mark=told_hash(entry.hashes, MARK),
            full_hash=told_hash(entry.hashes, FULL),
        )

    def layouts(self, shards: Sequence[Shard]) -> ParquetLayouts:
        """Join the schemas of shards."""
        return ParquetLayouts.joined(shards)

    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> ParquetLayouts:
        """Take up the schemas that were stored."""
        return ParquetLayouts.stored(columns, about)

    def _footer(self, dataset: str, file: DataFile) -> tuple[Shard, list[pq.RowGroupMetaData]]:
        with located(dataset, file.name, "its footer", file.path):
            size, mtime_ns = _size_and_time(dataset, file)
            source = file.path if file.far is None else RangeFile(file.far)
            with open_parquet(source) as opened:
                footer, schema = opened.metadata, opened.schema_arrow.remove_metadata()
            groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
            rows = [group.num_rows for group in groups]
            if min(rows, default=0) < 0 or sum(rows) != footer.num_rows:
                raise ValueError(
                    f"it tells of {footer.num_rows} rows, and of {sum(rows)} in groups"
                )
        shard = Shard(
            name=file.name,
            path=file.path,
            rows=footer.num_rows,
            bytes=size,
            decoded_bytes=sum(group.total_byte_size for group in groups),
            group_rows=np.array(rows, dtype=np.int64),
            mtime_ns=mtime_ns,
            layout=ParquetLayout(schema),
            mark=None if file.far is None else mark_of_footer(far_footer(file.far), size),
        )
        return shard, groups


def _size_and_time(dataset: str, file: DataFile) -> tuple[int, int]:
    if file.far is not None:
        return file.far.file.size, file.far.file.modified_ns
    status = file_status(dataset, file)
    return status.st_size, status.st_mtime_ns


def _differing(shards: Shards) -> list[int]:
    """Find the first shard with rows of each different schema."""
    layouts = cast(ParquetLayouts, shards.layouts)
    return layouts.first_of_each(np.flatnonzero(shards.rows))


def _telling(shards: Shards) -> list[int]:
    """Find the shards whose schemas say what there is: where none has rows, the first."""
    return _differing(shards) or list(range(min(1, len(shards))))
