"""Reading Parquet: the columns that are needed, one row group or a part of one at a time.

A file is opened once a thread, and its footer parsed once. Only the leaves that a plan reads are
decoded, unless whole rows are wanted. Checksums of pages are verified where the writer wrote any,
at some 3 GB/s of compressed pages.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.column_steps import Statistics
from zephon.errors import ShardError
from zephon.io.faults import Faults
from zephon.io.fields import Column
from zephon.io.formats.arrow_columns import converted_column, empty_column
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.dictionaries import check_dictionaries
from zephon.io.formats.format import (
    DecodedGroup,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.parquet_far import RangeFile, chunk_ranges, far_footer
from zephon.io.formats.parquet_footer import (
    Footer,
    encrypted,
    located,
    open_parquet,
)
from zephon.io.formats.parquet_layouts import schema_of
from zephon.io.formats.parquet_parts import BUFFER_BYTES, ForwardParts
from zephon.io.formats.parquet_statistics import FooterStatistics, statistics_of_part
from zephon.io.formats.table_schemas import type_of
from zephon.io.marks import mark_of_footer
from zephon.io.shard import Shard

_OPEN_FILES = 16  # a thread
_FOOTERS_TOLD = 8  # whose statistics are at hand: row groups are asked for one after another
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
        self._parts = ForwardParts(self._open_forward)
        self._footers: OrderedDict[int, Footer] = OrderedDict()
        self._statistics: OrderedDict[int, FooterStatistics] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one row group, or a part of one, with one thread: the caller's."""
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
        payload = None
        if self._payload:
            held += [chunk for column in table.columns for chunk in column.chunks]
            payload = self._whole_rows(shard, group, table)
            faults += payload.faults()
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=tuple(faults),
            payload=payload,
            bytes=held_bytes(held),
        )

    def statistics(self, shard: int, groups: Sequence[int]) -> list[dict[str, Statistics]]:
        """Take them from the footer; of a part, those of its row group that hold for it too."""
        about = self._shards[shard]
        with located(self._dataset, about.name, "its footer"):
            footer = self._file(shard).footer
            told = self._told(shard, footer)
        parts = [footer.part(group) for group in groups]
        numbers = list(dict.fromkeys(part.group for part in parts))
        of_group = dict(zip(numbers, told.of(numbers), strict=True))
        return [
            of_group[part.group] if part.whole else statistics_of_part(of_group[part.group], part)
            for part in parts
        ]

    def _told(self, shard: int, footer: Footer) -> FooterStatistics:
        """Walk through a footer, unless that was done for the row groups before."""
        with self._lock:
            known = self._statistics.get(shard)
        if known is None:
            about = self._shards[shard]
            metadata = footer.metadata
            source = about.far_file or about.path
            known = FooterStatistics(source, metadata, schema_of(about), self._columns)
            with self._lock:
                self._statistics[shard] = known
                if len(self._statistics) > _FOOTERS_TOLD:
                    self._statistics.popitem(last=False)
        return known

    def check_unchanged(self, shard: int) -> None:
        """Look at the file's size and time."""
        about = self._shards[shard]
        with located(self._dataset, about.name, "its footer"):
            if about.far is None:  # a place refuses another version whenever it reads
                about.check_unchanged(self._dataset, os.stat(about.path))

    def _whole_rows(self, shard: int, group: int, table: pa.Table) -> TableRows:
        about = self._shards[shard]
        place = f"dataset {self._dataset!r}, shard {about.name!r}"
        return TableRows(table, place, int(about.group_rows[:group].sum()))

    def _table(self, shard: int, group: int, names: list[str]) -> pa.Table:
        wanted = None if self._payload else names
        about = self._shards[shard]
        with located(self._dataset, about.name, "its footer", about.path):
            opened = self._file(shard)
        part = opened.footer.part(group)
        with located(self._dataset, about.name, f"row group {part.group}"):
            try:
                if part.whole:
                    table = opened.row_group(part.group, wanted)
                else:
                    table = self._parts.read(shard, part, wanted)
            except (pa.ArrowException, OSError) as exc:
                hidden = encrypted(opened.file, part.group, wanted, exc)
                if not hidden:
                    raise
                raise ShardError(
                    f"dataset {self._dataset!r}, shard {about.name!r}: columns that are read must "
                    f"not be encrypted, got {hidden}; write the file without encryption, or leave "
                    "them out, as other columns of the file can be read"
                ) from exc
            check_dictionaries(table)
        return table

    def _file(self, shard: int) -> _Opened:
        files = self._open.files
        about = self._shards[shard]
        far = about.check_far(self._dataset)
        if far is None:
            about.check_unchanged(self._dataset, os.stat(about.path))  # for each group: 2 µs
        if shard in files:
            files.move_to_end(shard)
            return files[shard]
        with self._lock:
            footer = self._footers.get(shard)
        source = about.path if far is None else RangeFile(far)
        file = open_parquet(source, None if footer is None else footer.metadata)
        if footer is None:
            footer = Footer.of(file.metadata, about)
            if footer is None:
                held = f"it has {file.metadata.num_rows} rows in {file.num_row_groups} row groups"
                told = f"{about.rows} in {len(about.group_rows)}"
                raise about.stale(self._dataset, f"{held}, not {told}")
            if about.listed_by is not None and not file.schema_arrow.equals(schema_of(about)):
                raise about.stale(self._dataset, "its columns are others")
            if about.mark is not None and far is not None:
                found = mark_of_footer(far_footer(far), about.bytes)
                if found not in (None, about.mark):
                    raise about.stale(self._dataset, "it holds something else in as many bytes")
        with self._lock:
            self._footers[shard] = footer
            self._footers.move_to_end(shard)
            if len(self._footers) > _FOOTERS:
                self._footers.popitem(last=False)
        files[shard] = _Opened(file, footer, source if isinstance(source, RangeFile) else None)
        if len(files) > _OPEN_FILES:
            files.popitem(last=False)[1].file.close()
        return files[shard]

    def _open_forward(self, shard: int) -> pq.ParquetFile:
        """Open a file whose row groups are too large to hold, even compressed."""
        footer = self._file(shard).footer
        about = self._shards[shard]
        far = about.far_file
        source = about.path if far is None else RangeFile(far)
        return open_parquet(source, footer.metadata, BUFFER_BYTES)


class _Opened(NamedTuple):
    """An open file, its footer, and what reads it where it lies in a far place."""

    file: pq.ParquetFile
    footer: Footer
    far: RangeFile | None

    def row_group(self, group: int, columns: list[str] | None) -> pa.Table:
        """Decode some columns of a row group; of a far file their chunks are asked for together."""
        if self.far is not None:
            self.far.want(chunk_ranges(self.footer.metadata, group, columns))
        try:
            return self.file.read_row_group(group, columns=columns, use_threads=False)
        finally:
            if self.far is not None:
                self.far.drop()


class _OpenFiles(threading.local):
    """The open files of one thread, by shard; closed with the thread."""

    def __init__(self) -> None:
        self.files: OrderedDict[int, _Opened] = OrderedDict()
