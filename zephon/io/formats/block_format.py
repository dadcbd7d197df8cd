r"""The base of formats whose files are read a block at a time, and of those that hold records.

The shortest way to a format of your own is ``RecordFormat``: say where records lie in a file, and
what row one is. Counting, row numbers, errors that say where a bad row lies, columns and types,
compressed files, resuming and the index follow from these two.

>>> class Notes(RecordFormat):
...     kind, suffixes = "notes", (".notes",)
...
...     def records(self, file):
...         for line in file:
...             yield file.tell() - len(line), file.tell()
...
...     def row(self, record):
...         return {"text": record.decode().rstrip("\n")}
>>> notes = Notes()
>>> list(notes.records(io.BytesIO(b"one\ntwo\n")))
[(0, 4), (4, 8)]
>>> notes.decode(b"one\ntwo\n", {}).rows
[{'text': 'one'}, {'text': 'two'}]

Register it once its module is imported: ``zephon.io.formats.register(Notes())``.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, told
from zephon.io.data_file import DataFile
from zephon.io.field_types import FoundType
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.block_groups import BlockGroups, Spans
from zephon.io.formats.block_layouts import (
    LAYOUT_TYPES,
    BlockEntry,
    BlockLayout,
    BlockLayouts,
    check_entry,
    described,
    facts_text,
    layout_of,
    layout_of_entry,
)
from zephon.io.formats.blocks import BLOCK_BYTES, Block, Decoded, Problem, located
from zephon.io.formats.compressed_text import codec_of, open_text
from zephon.io.formats.file_format import FileFormat, told_hash
from zephon.io.formats.first_rows import front_of_blocks, seen_in_rows
from zephon.io.formats.format import GroupReader
from zephon.io.formats.line_types import found_types, summed
from zephon.io.marks import FULL, MARK
from zephon.io.raw_rows import RawRow
from zephon.io.seen_types import SeenTypes
from zephon.io.shard import ListedBy, Shard, file_status
from zephon.io.shards import Shards
from zephon.io.values import fields_of


class BlockFormat(FileFormat):
    """A format whose files are cut into blocks of rows, each decoded whole.

    ``split`` and ``decode`` must agree: the rows that the one counts are those that the other
    gives. Any number of threads call both at once, so what they set on ``self`` is shared.

    has_lines: files are lines of text, so messages and quarantine tell the line of a bad row.
    """

    lists_in = "list"
    pads_objects = False
    types_indexed = True
    entry_type = BlockEntry
    layout_types = LAYOUT_TYPES
    has_lines: ClassVar[bool] = False

    @abstractmethod
    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Find the blocks of a file, front to back; best of about 1 MiB each.

        Args:
            file: from its front, decoded where it is compressed.
            facts: to be given JSON values that ``decode`` needs, such as the header of a table.

        Raises:
            ValueError: the file is not of this format, or is cut off; says what is wrong.
        """

    @abstractmethod
    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Make the rows of a block.

        Args:
            text: from the block's ``start`` to the next one's, or to the end of the file.
            facts: what ``split`` noted of the file.
        """

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]] | None:
        """Say where each row lies in the text of a block, as [start, stop) in bytes.

        None: rows are no pieces of text. Who writes bad rows down then writes their values.
        """
        return None

    def raw_rows(
        self, groups: GroupReader, shard: int, group: int, rows: Sequence[int]
    ) -> list[RawRow]:
        """Give rows as they are, where the format says where they lie."""
        if type(self).spans is BlockFormat.spans:
            return super().raw_rows(groups, shard, group, rows)
        return cast(BlockGroups, groups).raw_rows(shard, group, rows, cast(Spans, self.spans))

    def count(self, dataset: str, file: DataFile) -> Shard:
        """Find the blocks."""
        with located(dataset, file.name, self.kind):
            status = file_status(dataset, file)
            facts: dict[str, Any] = {}
            if codec_of(file.name) is None:
                size = status.st_size
                with open(file, "rb") as opened:
                    blocks = list(self.split(opened, facts))
            else:
                with open_text(Path(file.path)) as text:
                    raw = _Unread(text)
                    blocks = list(self.split(cast(BinaryIO, io.BufferedReader(raw)), facts))
                    size = raw.end()
        edges = [*(block.start for block in blocks), size if blocks else 0]
        layout = BlockLayout(np.array(edges, np.int64), facts_text(facts))
        return Shard(
            name=file.name,
            path=file.path,
            rows=sum(block.rows for block in blocks),
            bytes=status.st_size,
            decoded_bytes=edges[-1] - edges[0],
            group_rows=np.array([block.rows for block in blocks], np.int64),
            mtime_ns=status.st_mtime_ns,
            layout=layout,
        )

    def describe(self, dataset: str, file: DataFile) -> tuple[Shard, dict[str, Any]]:
        """Find the blocks, and the types of fields where only rows tell them."""
        shard = self.count(dataset, file)
        if self.types_indexed:
            seen, first = SeenTypes(objects=False), 0
            for rows in self._python_rows(dataset, shard):
                seen.look(rows, first)
                first += len(rows)
            shard = replace(shard, layout=replace(layout_of(shard), types=summed(seen)))
        return shard, described(shard, self.kind, self.said_options())

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Look at the first rows of the first shard that has any; never complete."""
        return fields_of(self._first_rows(dataset, shards)), False

    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Give what the index has told of; nothing without one."""
        return found_types(cast(BlockLayouts, shards.layouts).types)

    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse nothing: what rows hold shows when they are read."""

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Look at the first rows."""
        return seen_in_rows(self._first_rows(dataset, shards), names)

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make the reader; whether a field is there shows only row by row."""
        return BlockGroups(
            dataset,
            shards,
            columns,
            self.kind,
            self.decode,
            payload=payload,
            has_lines=self.has_lines,
        )

    def reads_forward(self, shards: Shards) -> bool:
        """Look for compressed files."""
        able = any(map(codec_of, (*self.suffixes, *self.further_suffixes)))
        return able and any(map(codec_of, shards.names.to_pylist()))

    def front_bytes(self, shard: Shard) -> int | None:
        """Give where the block ends that the last of the first rows is in."""
        if codec_of(shard.name) is not None:
            return None
        return front_of_blocks(shard.group_rows, layout_of(shard).offsets)

    def group_bytes(self, shard: Shard) -> NDArray[np.int64] | None:
        """Give the bytes between the edges of blocks."""
        return np.diff(layout_of(shard).offsets)

    def resolve(self, entries: Sequence[BlockEntry]) -> None:
        """Check blocks and options."""
        for position, entry in enumerate(entries):
            compressed = codec_of(entry.basename) is not None
            check_entry(entry, position, self.said_options(), compressed=compressed)

    def from_entry(self, entry: BlockEntry, path: str, listed_by: ListedBy) -> Shard:
        """Make the shard of an entry."""
        layout = layout_of_entry(entry.extra)
        return Shard(
            name=entry.basename,
            path=path,
            rows=entry.num_rows,
            bytes=entry.bytes,
            decoded_bytes=int(layout.offsets[-1] - layout.offsets[0]),
            group_rows=np.array(entry.extra.blocks.rows, np.int64),
            layout=layout,
            listed_by=listed_by,
            mark=told_hash(entry.hashes, MARK),
            full_hash=told_hash(entry.hashes, FULL),
        )

    def layouts(self, shards: Sequence[Shard]) -> BlockLayouts:
        """Join the blocks of shards."""
        return BlockLayouts.joined(shards, self.said_options())

    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> BlockLayouts:
        """Take up the blocks that were stored."""
        return BlockLayouts.stored(columns, about, self.said_options())

    def _first_rows(self, dataset: str, shards: Shards) -> list[Any]:
        filled = shards.rows > 0
        if not filled.any():
            return []
        found: list[Any] = []
        for rows in self._python_rows(dataset, shards[int(filled.argmax())]):
            found += islice(rows, LOOKED_AT - len(found))
            if len(found) == LOOKED_AT:
                break
        return found

    def _python_rows(self, dataset: str, shard: Shard) -> Iterator[list[Any]]:
        """Give the rows of a shard, block by block; None for one that is bad."""
        groups = BlockGroups(dataset, [shard], (), self.kind, self.decode, payload=False)
        try:
            for group in range(len(shard.group_rows)):
                found = groups.decoded(0, group)
                rows = found.rows if found.table is None else found.table.to_pylist()
                yield [None if at in found.bad else row for at, row in enumerate(rows)]
        finally:
            groups.close()


class RecordFormat(BlockFormat):
    """A format whose files are records, one after another: each is a row, or a bad row.

    ``records`` must find the same records whether it begins at the front of a file or at any
    record: a block is read from its first record on.
    """

    @abstractmethod
    def records(self, file: BinaryIO) -> Iterator[tuple[int, int]]:
        """Say where records lie, front to back, as [start, stop) in bytes from the first one read.

        Args:
            file: from its front or from a record on. ``file.tell()`` counts from there.

        Raises:
            ValueError: the file is not of this format, or is cut off; says what is wrong.
        """

    @abstractmethod
    def row(self, record: bytes) -> Any:
        """Make the row of a record: best a dict, whose keys are the fields.

        Raises:
            Exception: the record is bad; the message says why, and only this row is lost.
        """

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Take as many records as fill a block."""
        return blocks_of_records(self.records(file))

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Make a row of each record."""
        return decoded_records(text, self.spans(text, facts), self.row)

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Find the records of a block."""
        return list(self.records(io.BytesIO(text)))


def blocks_of_records(
    spans: Iterable[tuple[int, int]], block_bytes: int | None = None
) -> Iterator[Block]:
    """Take as many records as fill a block.

    Args:
        spans: where records lie, front to back, as [start, stop) in bytes.
        block_bytes: of a block, at most, by default 1 MiB; a longer record is its own block.
    """
    most = BLOCK_BYTES if block_bytes is None else block_bytes
    start, rows = 0, 0
    for begin, end in spans:
        if rows and end - start > most:
            yield Block(start, rows)
            rows = 0
        if not rows:
            start = begin
        rows += 1
    if rows:
        yield Block(start, rows)


def decoded_records(
    text: bytes, spans: Iterable[tuple[int, int]], row: Callable[[bytes], Any]
) -> Decoded:
    """Make a row of each record; one for which that raises is bad.

    Args:
        text: of a block.
        spans: where its records lie.
        row: makes one.
    """
    rows: list[Any] = []
    bad: dict[int, Problem] = {}
    for begin, end in spans:
        record = text[begin:end]
        try:
            rows.append(row(record))
        except Exception as exc:  # a format may be of the user's, and so is what its code raises
            why = str(exc) if isinstance(exc, DataError) else f"a record raised {told(exc)}"
            bad[len(rows)] = Problem(why, begin, record)
            rows.append(None)
    return Decoded(rows, bad)


class _Unread(io.RawIOBase):
    """A text that can be read from front to back, as Python's files are."""

    def __init__(self, text: Any) -> None:
        self._text = text
        self._place = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._text.read(len(buffer))
        buffer[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._place

    def end(self) -> int:
        """Read on to the end, and say where it is."""
        while piece := self._text.read(BLOCK_BYTES):
            self._place += len(piece)
        return self._place
