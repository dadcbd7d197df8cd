"""Reading record batches of Arrow IPC out of mapped files."""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zephon.io.column_types import is_text
from zephon.io.faults import Faults
from zephon.io.fields import Column
from zephon.io.formats.arrow_columns import converted_column, empty_column
from zephon.io.formats.arrow_messages import Batch, Messages, messages_of
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.block_layouts import layout_of
from zephon.io.formats.blocks import located
from zephon.io.formats.format import DecodedGroup, GroupReader, columns_batch, held_bytes
from zephon.io.formats.table_schemas import type_of
from zephon.io.shard import Shard

_OPEN_FILES = 64  # mapped by a reader


@dataclass(frozen=True, slots=True)
class _File:
    """A mapped file: its bytes, its messages, and its batches by the place of each."""

    content: pa.Buffer
    messages: Messages
    batches: dict[int, Batch]


class ArrowGroups(GroupReader):
    """Decodes record batches, or parts of them. All threads share the mapped files."""

    def __init__(
        self,
        dataset: str,
        shards: Sequence[Shard],
        columns: tuple[Column, ...],
        schema_of: Callable[[Shard], pa.Schema],
        *,
        payload: bool,
    ) -> None:
        self._dataset = dataset
        self._shards = shards
        self._columns = columns
        self._schema_of = schema_of
        self._payload = payload
        self._files: OrderedDict[int, _File] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one record batch, or a part of it."""
        about = self._shards[shard]
        rows = int(about.group_rows[group])
        schema = self._schema_of(about)
        present = [type_of(schema, column) is not None for column in self._columns]
        paths = [column.path for column, here in zip(self._columns, present, strict=True) if here]
        table = pa.table({})
        if paths or self._payload:
            table = self.table(shard, group, None if self._payload else paths)
        arrays: list[pa.Array] = []
        faults: list[Faults] = []
        for column, here in zip(self._columns, present, strict=True):
            array, bad = (
                converted_column(table, column)
                if here
                else (empty_column(column, rows), Faults.of({}))
            )
            arrays.append(array)
            if len(bad.rows):
                faults.append(bad)
        held = list(arrays)
        payload = None
        if self._payload:
            held += [chunk for column in table.columns for chunk in column.chunks]
            place = f"dataset {self._dataset!r}, shard {about.name!r}"
            payload = TableRows(table, place, int(about.group_rows[:group].sum()))
            faults += payload.faults()
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=tuple(faults),
            payload=payload,
            bytes=held_bytes(held),
        )

    def table(self, shard: int, group: int, paths: Sequence[str] | None) -> pa.Table:
        """Read one record batch, or a part of it.

        Args:
            shard: position in the shards.
            group: position in the shard's row groups.
            paths: of the columns that are read; None: all.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        about = self._shards[shard]
        starts = layout_of(about).offsets[:-1]
        start = int(starts[group])
        first = int(np.searchsorted(starts, start))
        skipped = int(about.group_rows[first:group].sum())
        with located(self._dataset, about.name, "arrow"):
            about.check_unchanged(self._dataset, os.stat(about.path))
            file = self._file(shard)
            found = file.batches.get(start)
            told = int(about.group_rows[starts == start].sum())
            if found is None or found.rows != told:
                held = "no record batch" if found is None else f"{found.rows} rows, not {told},"
                raise about.stale(self._dataset, f"at byte {start} there is {held} any more")
            batch = self._batch(file, found, self._schema_of(about), paths)
            _check(batch)
            return pa.Table.from_batches([batch]).slice(skipped, int(about.group_rows[group]))

    def check_unchanged(self, shard: int) -> None:
        """Look at the file's size and time."""
        about = self._shards[shard]
        with located(self._dataset, about.name, "arrow"):
            about.check_unchanged(self._dataset, os.stat(about.path))

    def _batch(
        self, file: _File, found: Batch, schema: pa.Schema, paths: Sequence[str] | None
    ) -> pa.RecordBatch:
        start, stop = found.span
        content = file.content
        if not file.messages.dictionaries and not found.compressed:
            made = pa.ipc.read_record_batch(content.slice(start, stop - start), schema)
            return made if paths is None else made.select(_numbers(schema, paths))
        before = [
            span for span in file.messages.dictionaries if not _is_later(span.start, start, file)
        ]
        spans = [file.messages.schema, *before, found.span]
        text = b"".join(memoryview(content)[begin:end] for begin, end in spans)
        wanted = None if paths is None else _numbers(schema, paths)
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        with pa.ipc.open_stream(pa.py_buffer(text), options=options) as stream:
            return stream.read_next_batch()

    def _file(self, shard: int) -> _File:
        about = self._shards[shard]
        with self._lock:
            if shard in self._files:
                self._files.move_to_end(shard)
                return self._files[shard]
        descriptor = os.open(about.path, os.O_RDONLY)
        try:
            about.check_unchanged(self._dataset, os.fstat(descriptor))
            content, view = map_file(descriptor)
        finally:
            os.close(descriptor)
        messages = messages_of(view)
        begin, end = messages.schema
        schema = pa.ipc.read_schema(content.slice(begin, end - begin)).remove_metadata()
        if not schema.equals(self._schema_of(about)):
            raise about.stale(self._dataset, "its columns are others")
        made = _File(content, messages, {each.span.start: each for each in messages.batches})
        with self._lock:
            self._files[shard] = made
            if len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)  # unmapped with its last column
        return made


def map_file(descriptor: int) -> tuple[pa.Buffer, memoryview]:
    """Map an open file.

    Raises:
        ValueError: it has no bytes.
    """
    if not os.fstat(descriptor).st_size:
        raise ValueError("it has no bytes")
    mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    return pa.py_buffer(mapped), memoryview(mapped)


def _check(batch: pa.RecordBatch) -> None:
    """Refuse offsets that point outside: what is damaged must not end the process.

    Text that is not UTF-8 is bad in its row alone, and found where the row is read.
    """
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as exc:
            if not (is_text(column.type) and "UTF8" in str(exc)):
                raise


def _numbers(schema: pa.Schema, paths: Sequence[str]) -> list[int]:
    names = [path if path in schema.names else path.split(".")[0] for path in paths]
    return sorted({schema.names.index(name) for name in names})


def _is_later(dictionary: int, batch: int, file: _File) -> bool:
    """Say whether a dictionary of a stream comes behind a batch, which has its state before."""
    streamed = bytes(memoryview(file.content)[:6]) != b"ARROW1"
    return streamed and dictionary > batch
