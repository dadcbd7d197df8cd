"""Reading blocks of rows, plain or out of a compressed file, and turning them into columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from zephon.io.faults import Faults
from zephon.io.fields import Column
from zephon.io.formats.arrow_columns import converted_column, empty_column
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.block_layouts import layout_of
from zephon.io.formats.block_rows import BlockRows
from zephon.io.formats.blocks import Decoded, Problem, located
from zephon.io.formats.compressed_text import codec_of
from zephon.io.formats.format import DecodedGroup, GroupReader, Texts, columns_batch, held_bytes
from zephon.io.formats.forward_files import ForwardFiles
from zephon.io.formats.line_counts import LineCounts
from zephon.io.formats.row_columns import column_of_rows
from zephon.io.formats.table_schemas import type_of
from zephon.io.payload import RowSource
from zephon.io.raw_rows import RawRow
from zephon.io.shard import Shard

_EXCERPT = 60  # bytes of a bad row in a message
_PYTHON = 4  # how many times its text a row of Python values is about as large

Decode = Callable[[bytes, Mapping[str, Any]], Decoded]
Spans = Callable[[bytes, Mapping[str, Any]], Sequence[tuple[int, int]]]
Convert = Callable[[pa.Table, Column], tuple[pa.Array, Faults]]


class BlockGroups(GroupReader):
    """Decodes blocks of one dataset.

    Args:
        dataset: its name, for messages.
        shards: of the dataset.
        columns: what a plan reads.
        kind: of the format, for messages.
        decode: makes the rows of a block of its text and of what the file says.
        payload: keep whole rows too.
        convert: makes a column of a table, where blocks become tables.
        has_lines: messages tell the line of a bad row.
    """

    def __init__(
        self,
        dataset: str,
        shards: Sequence[Shard],
        columns: tuple[Column, ...],
        kind: str,
        decode: Decode,
        *,
        payload: bool,
        convert: Convert = converted_column,
        has_lines: bool = False,
    ) -> None:
        self._dataset = dataset
        self._shards = shards
        self._columns = columns
        self._kind = kind
        self._decode = decode
        self._payload = payload
        self._convert = convert
        self._lines = LineCounts(shards) if has_lines else None
        self._forward = ForwardFiles(dataset, shards)

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one block."""
        found, text = self._decoded(shard, group)
        about = self._shards[shard]
        rows = int(about.group_rows[group])
        details = {
            row: self._detail(problem, shard, group, text) for row, problem in found.bad.items()
        }
        faults: list[Faults] = []
        arrays = [self._column(found, rows, column, details, faults) for column in self._columns]
        held = list(arrays)
        payload = None
        if self._payload:
            if details:
                faults.append(Faults.of(details))
            place = f"dataset {self._dataset!r}, shard {about.name!r}"
            first = int(about.group_rows[:group].sum())
            payload = _whole(found, place, first, details)
            if found.table is not None:
                faults += TableRows(found.table).faults()
                held += [chunk for column in found.table.columns for chunk in column.chunks]
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=tuple(faults),
            payload=payload,
            bytes=held_bytes(held) + (self._python_bytes(about, group) if self._payload else 0),
        )

    def decoded(self, shard: int, group: int) -> Decoded:
        """Read and decode one block: all its rows, as the format has them.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        return self._decoded(shard, group)[0]

    def raw_rows(self, shard: int, group: int, rows: Sequence[int], spans: Spans) -> list[RawRow]:
        """Give rows of a block as they lie in the file.

        Args:
            shard, group: of the block.
            rows: positions in it.
            spans: says where rows lie in the text of a block.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        about = self._shards[shard]
        with located(self._dataset, about.name, self._kind):
            text = self._text(shard, group)
            found = spans(text, layout_of(about).facts)
            self._check_rows(about, group, len(found))
            return [self._raw_row(shard, group, text, *found[row]) for row in rows]

    def check_unchanged(self, shard: int) -> None:
        """Look at the file's size and time."""
        about = self._shards[shard]
        with located(self._dataset, about.name, self._kind):
            about.check_unchanged(self._dataset, os.stat(about.path))

    def keep_texts(self, texts: Texts) -> None:
        """Keep the text of compressed files that are read from their front again."""
        self._forward.keep_texts(texts)

    def close(self) -> None:
        """Close compressed files that are open."""
        self._forward.close()

    def _decoded(self, shard: int, group: int) -> tuple[Decoded, bytes]:
        about = self._shards[shard]
        with located(self._dataset, about.name, self._kind):
            text = self._text(shard, group)
            found = self._decode(text, layout_of(about).facts)
        if found.table is None or found.table.num_columns:
            self._check_rows(about, group, len(found))
        return found, text

    def _check_rows(self, about: Shard, group: int, rows: int) -> None:
        counted = int(about.group_rows[group])
        if rows != counted:
            held = f"block {group}: {counted} rows were counted, but {rows} read"
            raise about.stale(self._dataset, held)

    def _raw_row(self, shard: int, group: int, text: bytes, begin: int, end: int) -> RawRow:
        start = int(layout_of(self._shards[shard]).offsets[group])
        return RawRow(text[begin:end], self._line(shard, group, text, begin), start + begin)

    def _detail(self, problem: Problem, shard: int, group: int, text: bytes) -> str:
        about = self._shards[shard]
        with located(self._dataset, about.name, self._kind):
            line = self._line(shard, group, text, problem.byte)
        excerpt = problem.excerpt[:_EXCERPT].decode("utf-8", "replace")
        begins = f"; it begins {excerpt!r}" if excerpt else ""
        byte = int(layout_of(about).offsets[group]) + problem.byte
        place = f"byte {byte}" if line is None else f"line {line}, byte {byte}"
        return f" ({place}): {problem.why}{begins}; mend or remove the row"

    def _line(self, shard: int, group: int, text: bytes, byte: int) -> int | None:
        return None if self._lines is None else self._lines.line(shard, group, text, byte)

    def _column(
        self,
        found: Decoded,
        rows: int,
        column: Column,
        details: Mapping[int, str],
        faults: list[Faults],
    ) -> pa.Array:
        if details:
            faults.append(Faults.of(details, column))
        if found.table is None:
            blank = _blank(column)
            some = [blank if at in details else row for at, row in enumerate(found.rows)]
            return column_of_rows(some if details else found.rows, column, faults)
        if type_of(found.table.schema, column) is None:
            return empty_column(column, rows)
        made, bad = self._convert(found.table, column)
        if len(bad.rows):
            others = {
                row: why
                for row, why in zip(bad.rows.tolist(), bad.details, strict=True)
                if row not in details
            }
            faults.append(Faults.of(others, column))
        return made

    def _python_bytes(self, about: Shard, group: int) -> int:
        start, stop = layout_of(about).offsets[group : group + 2].tolist()
        return _PYTHON * (stop - start)

    def _text(self, shard: int, group: int) -> bytes:
        about = self._shards[shard]
        if codec_of(about.name):
            return self._forward.block(shard, group, layout_of(about).offsets)
        start, stop = layout_of(about).offsets[group : group + 2].tolist()
        about.check_written(self._dataset, os.stat(about.path))  # opening a pipe would wait
        with open(about.path, "rb", buffering=0) as file:
            about.check_unchanged(self._dataset, os.fstat(file.fileno()))
            return read_span(file.fileno(), start, stop)


def read_span(file: int, start: int, stop: int) -> bytes:
    """Read bytes [start, stop) of an open file, by its descriptor.

    Raises:
        EOFError: the file ends before.
    """
    pieces: list[bytes] = []
    while start < stop:
        piece = os.pread(file, stop - start, start)
        if not piece:
            raise EOFError(f"it ends {stop - start} bytes early")
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _whole(found: Decoded, place: str, first: int, details: Mapping[int, str]) -> RowSource:
    if found.table is None:
        return BlockRows(found.rows, place, first, details)
    rows = TableRows(found.table, place, first)
    return BlockRows(rows, place, first, details) if details else rows


def _blank(column: Column) -> Any:
    """Make a row that is good in a column; it stands in for one that is bad as a whole."""
    if column.kind == "any":
        return {}
    return {column.path: "" if column.kind == "text" else []}
