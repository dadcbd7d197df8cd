"""JSON lines, plain or compressed.

A row group is a block of about 1 MiB of whole lines. A bad line spoils its own row only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, DatasetError
from zephon.io.data_file import DataFile
from zephon.io.field_types import FoundType
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.compressed_text import COMPRESSED, DamageError, codec_of, open_text
from zephon.io.formats.file_format import FileFormat, told_hash
from zephon.io.formats.first_rows import front_of_blocks, seen_in_rows
from zephon.io.formats.format import (
    GroupReader,
)
from zephon.io.formats.line_blocks import RowLines, index_lines
from zephon.io.formats.line_decoder import load_rows
from zephon.io.formats.line_groups import JsonlGroups, located
from zephon.io.formats.line_layouts import (
    LAYOUT_TYPES,
    LineEntry,
    LineLayouts,
    blocks_of,
    check_blocks,
    described_blocks,
    line_blocks,
)
from zephon.io.formats.line_types import found_types, summed
from zephon.io.marks import FULL, MARK
from zephon.io.raw_rows import RawRow
from zephon.io.seen_types import SeenTypes
from zephon.io.shard import ListedBy, Shard, file_status
from zephon.io.shards import Shards
from zephon.io.type_names import fits_json
from zephon.io.values import fields_of


class Jsonl(FileFormat):
    """Files that end in .jsonl or .ndjson, or in that and .gz, .zst, .bz2 or .xz."""

    kind = "jsonl"
    suffixes = tuple(name + end for name in (".jsonl", ".ndjson") for end in ("", *COMPRESSED))
    lists_in = "list"
    pads_objects = False
    types_indexed = True
    further_suffixes = tuple(".json" + end for end in ("", *COMPRESSED))
    entry_type = LineEntry
    layout_types = LAYOUT_TYPES

    def count(self, dataset: str, file: DataFile) -> Shard:
        """Read the whole file once."""
        return self._counted(dataset, file, None)

    def _counted(self, dataset: str, file: DataFile, seen: SeenTypes | None) -> Shard:
        look = None if seen is None else partial(_look, seen)
        with located(dataset, file.name):
            status = file_status(dataset, file)
            if not status.st_size and codec_of(file.name):
                raise DamageError("the file has no bytes")
            with open_text(Path(file.path)) as stream:
                blocks = index_lines(stream, look=look)
        if seen is not None:
            blocks = replace(blocks, types=summed(seen))
        return Shard(
            name=file.name,
            path=file.path,
            rows=int(blocks.first_rows[-1]),
            bytes=status.st_size,
            decoded_bytes=int(blocks.offsets[-1]),
            group_rows=np.diff(blocks.first_rows),
            mtime_ns=status.st_mtime_ns,
            layout=blocks,
        )

    def describe(self, dataset: str, file: DataFile) -> tuple[Shard, dict[str, Any]]:
        """Read and decode the whole file once, and tell of its blocks and types."""
        shard = self._counted(dataset, file, SeenTypes(objects=False))
        extra = {"raw_bytes": shard.decoded_bytes} if codec_of(file.name) else {}
        return shard, {**extra, **described_blocks(blocks_of(shard))}

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Look at the first rows of the first shard that has any; never complete."""
        return fields_of(self._first_rows(dataset, shards)), False

    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Give what the index has told of; nothing without one."""
        return found_types(cast(LineLayouts, shards.layouts).types)

    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse types of which JSON has no values."""
        for column in columns:
            if not fits_json(column.type):
                raise DatasetError(
                    f"dataset {dataset!r}: schema[{column.path!r}] must be of booleans, numbers, "
                    f"text, lists or objects, since JSON has nothing else, got {column.type}; "
                    f"declare what the lines hold, such as 'string', and convert it with an "
                    f"expression"
                )

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Decode the first lines whole; lines that cannot be count as rows without fields."""
        return seen_in_rows(self._first_rows(dataset, shards), names)

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make the reader; whether a field is there shows only row by row."""
        return JsonlGroups(dataset, shards, columns, payload=payload)

    def reads_forward(self, shards: Shards) -> bool:
        """Look for compressed ones."""
        import pyarrow.compute as pc  # late: it takes 30 ms to import, and few need it

        ends = "|".join(re.escape(end) for end in COMPRESSED)
        options = pc.MatchSubstringOptions(f"(?i)({ends})$")
        return pc.call_function("match_substring_regex", [shards.names], options).true_count > 0

    def raw_rows(
        self, groups: GroupReader, shard: int, group: int, rows: Sequence[int]
    ) -> list[RawRow]:
        """Give lines as they are."""
        lines, _, _ = cast(JsonlGroups, groups).lines(shard, group)
        return [lines.raw_row(row) for row in rows]

    def front_bytes(self, shard: Shard) -> int | None:
        """Give where the block ends that the last of the first rows is in."""
        if codec_of(shard.name) is not None:
            return None
        return front_of_blocks(shard.group_rows, blocks_of(shard).offsets)

    def group_bytes(self, shard: Shard) -> NDArray[np.int64]:
        """Give the bytes between the edges of blocks."""
        return np.diff(blocks_of(shard).offsets)

    def resolve(self, entries: Sequence[LineEntry]) -> None:
        """Check sizes and blocks."""
        for position, entry in enumerate(entries):
            check_blocks(entry, position, compressed=codec_of(entry.basename) is not None)

    def from_entry(self, entry: LineEntry, path: str, listed_by: ListedBy) -> Shard | None:
        """Make the shard of an entry that has blocks."""
        if entry.extra.blocks is None:
            return None
        blocks = line_blocks(entry.extra.blocks, entry.extra.types)
        return Shard(
            name=entry.basename,
            path=path,
            rows=entry.num_rows,
            bytes=entry.bytes,
            decoded_bytes=int(blocks.offsets[-1]),
            group_rows=np.diff(blocks.first_rows),
            layout=blocks,
            listed_by=listed_by,
            mark=told_hash(entry.hashes, MARK),
            full_hash=told_hash(entry.hashes, FULL),
        )

    def layouts(self, shards: Sequence[Shard]) -> LineLayouts:
        """Join the blocks of shards."""
        return LineLayouts.joined(shards)

    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> LineLayouts:
        """Take up the blocks that were stored."""
        return LineLayouts.stored(columns, about)

    def _first_rows(self, dataset: str, shards: Shards) -> Iterator[Any]:
        filled = shards.rows > 0
        if filled.any():
            yield from islice(self._rows(dataset, shards[int(filled.argmax())]), LOOKED_AT)

    def _rows(self, dataset: str, shard: Shard) -> Iterator[Any]:
        groups = JsonlGroups(dataset, [shard], (), payload=True)
        try:
            for group, rows in enumerate(shard.group_rows.tolist()):
                lines, _, _ = groups.lines(0, group)
                for row in range(rows):
                    try:
                        yield lines.row(row)
                    except DataError:
                        yield None  # said when the row is taken
        finally:
            groups.close()


def _look(seen: SeenTypes, text: bytes, lines: RowLines, first_row: int) -> None:
    seen.look(load_rows(text, lines), first_row)
