"""JSON lines, plain or compressed with gzip or zstd.

A row group is a block of about 1 MiB of whole lines. A bad line spoils its own row only.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, ShardError
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.first_rows import seen_in_rows
from zephon.io.formats.format import (
    DecodedGroup,
    Faults,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.forward_file import DAMAGE, ForwardFile, PassedBlocks, open_text
from zephon.io.formats.line_blocks import RowLines, index_lines, row_lines
from zephon.io.formats.line_decoder import LineDecoder
from zephon.io.formats.line_layouts import (
    LAYOUT_TYPES,
    LineEntry,
    LineLayouts,
    blocks_of,
    check_blocks,
    described_blocks,
    line_blocks,
)
from zephon.io.formats.line_rows import LineRows, Place
from zephon.io.shard import ListedBy, Shard
from zephon.io.shards import Shards
from zephon.io.values import fields_of

_COMPRESSED = (".gz", ".zst")
_FORWARD_FILES = 8  # compressed files that a reader holds open
_PASSED_BYTES = 64 << 20  # decoded text that it keeps behind its places in them, all together


class Jsonl(FileFormat):
    """Files that end in .jsonl, .jsonl.gz or .jsonl.zst."""

    kind = "jsonl"
    suffixes = (".jsonl", ".jsonl.gz", ".jsonl.zst")
    lists_in = "list"
    entry_type = LineEntry
    layout_types = LAYOUT_TYPES

    def count(self, dataset: str, path: Path) -> Shard:
        """Read the whole file once."""
        with _located(dataset, path.name):
            status = path.stat()
            if not status.st_size and _is_compressed(path.name):
                raise EOFError("the file has no bytes")
            with open_text(path) as stream:
                blocks = index_lines(stream)
        return Shard(
            name=path.name,
            path=str(path),
            rows=int(blocks.first_rows[-1]),
            bytes=status.st_size,
            decoded_bytes=int(blocks.offsets[-1]),
            group_rows=np.diff(blocks.first_rows),
            mtime_ns=status.st_mtime_ns,
            layout=blocks,
        )

    def describe(self, dataset: str, path: Path) -> tuple[Shard, dict[str, Any]]:
        """Read the whole file once, and tell of its blocks."""
        shard = self.count(dataset, path)
        extra = {"raw_bytes": shard.decoded_bytes} if _is_compressed(path.name) else {}
        return shard, {**extra, "blocks": described_blocks(blocks_of(shard))}

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Look at the first rows of the first shard that has any; never complete."""
        return fields_of(self._first_rows(dataset, shards)), False

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Decode the first lines whole; lines that cannot be count as rows without fields."""
        return seen_in_rows(self._first_rows(dataset, shards), names)

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make the reader; whether a field is there shows only row by row."""
        return JsonlGroups(dataset, shards, columns, payload=payload)

    def group_bytes(self, shard: Shard) -> NDArray[np.int64]:
        """Give the bytes between the edges of blocks."""
        return np.diff(blocks_of(shard).offsets)

    def resolve(self, entries: Sequence[LineEntry]) -> None:
        """Check sizes and blocks."""
        for position, entry in enumerate(entries):
            check_blocks(entry, position, compressed=_is_compressed(entry.basename))

    def from_entry(self, entry: LineEntry, path: str, listed_by: ListedBy) -> Shard | None:
        """Make the shard of an entry that has blocks."""
        if entry.extra.blocks is None:
            return None
        blocks = line_blocks(entry.extra.blocks)
        return Shard(
            name=entry.basename,
            path=path,
            rows=entry.num_rows,
            bytes=entry.bytes,
            decoded_bytes=int(blocks.offsets[-1]),
            group_rows=np.diff(blocks.first_rows),
            layout=blocks,
            listed_by=listed_by,
        )

    def layouts(self, shards: Sequence[Shard]) -> LineLayouts:
        """Join the blocks of shards."""
        return LineLayouts.joined(shards)

    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> LineLayouts:
        """Take up the blocks that were stored."""
        return LineLayouts.stored(columns)

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


class JsonlGroups(GroupReader):
    """Decodes blocks of lines. Decoding holds the interpreter lock: threads do not speed it up."""

    def __init__(
        self, dataset: str, shards: Sequence[Shard], columns: tuple[Column, ...], *, payload: bool
    ) -> None:
        self._dataset = dataset
        self._shards = shards
        self._columns = columns
        self._decoder = LineDecoder(columns) if columns else None
        self._payload = payload
        self._forward: OrderedDict[int, ForwardFile] = OrderedDict()
        self._passed = PassedBlocks(_PASSED_BYTES)
        self._lock = threading.Lock()

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one block."""
        whole, text, lines = self.lines(shard, group)
        rows = len(lines.starts)
        arrays: list[pa.Array] = []
        problems: dict[int, str] = {}
        if self._decoder is not None:
            arrays, problems = self._decoder.decode(text, lines)
        if self._payload:
            problems = whole.refusals() | problems
        details = {row: whole.detail(row, why) for row, why in problems.items()}
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=(Faults.of(details),) if details else (),
            payload=whole if self._payload else None,
            bytes=held_bytes(arrays) + (len(text) + 24 * rows if self._payload else 0),
        )

    def lines(self, shard: int, group: int) -> tuple[LineRows, bytes, RowLines]:
        """Read one block and decode nothing: its rows, its text, and where they lie in it.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        about = self._shards[shard]
        rows = int(about.group_rows[group])
        text = self._text(shard, group)
        lines = row_lines(text)
        if len(lines.starts) != rows:
            held = f"block {group}: {rows} rows were counted, but {len(lines.starts)} read"
            raise about.stale(self._dataset, held)
        if group + 1 < len(about.group_rows) and not text.endswith(b"\n"):
            raise about.stale(self._dataset, f"block {group} ends inside a line")
        place = Place(self._dataset, about.name, blocks_of(about), group)
        return LineRows(text, lines, place), text, lines

    def close(self) -> None:
        """Close compressed files that are open."""
        with self._lock:
            for file in self._forward.values():
                file.close()
            self._forward.clear()
            self._passed.clear()

    def _text(self, shard: int, group: int) -> bytes:
        about = self._shards[shard]
        with _located(self._dataset, about.name):
            if _is_compressed(about.name):
                return self._forward_file(shard).block(group)
            start, stop = blocks_of(about).offsets[group : group + 2].tolist()
            with open(about.path, "rb") as file:
                about.check_unchanged(self._dataset, os.fstat(file.fileno()))
                if group and os.pread(file.fileno(), 1, start - 1) != b"\n":
                    raise about.stale(self._dataset, f"block {group} begins inside a line")
                file.seek(start)
                return file.read(stop - start)

    def _forward_file(self, shard: int) -> ForwardFile:
        about = self._shards[shard]
        with self._lock:
            if shard not in self._forward:
                self._forward[shard] = ForwardFile(
                    self._dataset, about, blocks_of(about), self._passed
                )
            self._forward.move_to_end(shard)
            if len(self._forward) > _FORWARD_FILES:
                self._forward.popitem(last=False)  # closed with its last reader
            return self._forward[shard]


def _is_compressed(name: str) -> bool:
    return name.lower().endswith(_COMPRESSED)


@contextmanager
def _located(dataset: str, shard: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while its text is read."""
    try:
        yield
    except ShardError:
        raise
    except (*DAMAGE, OSError, UnicodeError) as exc:
        what = "it cannot be read"
        if isinstance(exc, UnicodeError):
            what = "it is not UTF-8"
        elif isinstance(exc, DAMAGE):
            what = "it is damaged or cut off"
        raise ShardError(
            f"dataset {dataset!r}, shard {shard!r}: the file must be whole and in UTF-8, but "
            f"{what}: {exc}; write the file again, or move it out of the directory"
        ) from exc
