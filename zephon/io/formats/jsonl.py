"""JSON lines, plain or compressed with gzip or zstd.

A row group is a block of about 1 MiB of whole lines. A bad line spoils its own row only.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, ShardError
from zephon.io.fields import Column, Field
from zephon.io.formats.format import (
    DecodedGroup,
    Faults,
    Format,
    GroupReader,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.forward_file import DAMAGE, ForwardFile, PassedBlocks, open_text
from zephon.io.formats.line_blocks import LineBlocks, RowLines, index_lines, row_lines
from zephon.io.formats.line_decoder import LineDecoder, load_line
from zephon.io.offsets import offsets_of
from zephon.io.payload import RowSource
from zephon.io.shard import Shard
from zephon.io.values import fields_of

_COMPRESSED = (".gz", ".zst")
_FORWARD_FILES = 8  # compressed files that a reader holds open
_PASSED_BYTES = 64 << 20  # decoded text that it keeps behind its places in them, all together
_LOOKED_AT = 64  # rows that tell the fields
_EXCERPT = 60  # bytes of a bad line in a message


class Jsonl(Format):
    """Files that end in .jsonl, .jsonl.gz or .jsonl.zst."""

    kind = "jsonl"
    suffixes = (".jsonl", ".jsonl.gz", ".jsonl.zst")

    def count(self, dataset: str, path: Path) -> Shard:
        """Read the whole file once."""
        with _located(dataset, path.name):
            status = path.stat()
            if not status.st_size and path.name.lower().endswith(_COMPRESSED):
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

    def fields(self, dataset: str, shards: Sequence[Shard]) -> tuple[tuple[Field, ...], bool]:
        """Look at the first rows of the first shard that has any; never complete."""
        first = next((shard for shard in shards if shard.rows), None)
        if first is None:
            return (), False
        return fields_of(islice(self._rows(dataset, first), _LOOKED_AT)), False

    def reader(
        self, dataset: str, shards: Sequence[Shard], columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make the reader; whether a field is there shows only row by row."""
        return JsonlGroups(dataset, shards, columns, payload=payload)

    def _rows(self, dataset: str, shard: Shard) -> Iterator[Any]:
        groups = JsonlGroups(dataset, [shard], (), payload=True)
        try:
            for group, rows in enumerate(shard.group_rows.tolist()):
                source = groups.read(0, group).payload
                for row in range(rows if source else 0):
                    try:
                        yield cast(RowSource, source).row(row)
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
        about = self._shards[shard]
        rows = int(about.group_rows[group])
        text = self._text(shard, group)
        lines = row_lines(text)
        if len(lines.starts) != rows:
            raise ShardError(
                f"dataset {self._dataset!r}, shard {about.name!r}, block {group}: {rows} rows were "
                f"counted, but {len(lines.starts)} read; open the dataset again"
            )
        place = _Place(self._dataset, about, group)
        arrays: list[pa.Array] = []
        problems: dict[int, str] = {}
        if self._decoder is not None:
            arrays, problems = self._decoder.decode(text, lines)
        whole = LineRows(text, lines, place)
        details = {row: whole.detail(row, why) for row, why in problems.items()}
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=(Faults.of(details),) if details else (),
            payload=whole if self._payload else None,
            bytes=held_bytes(arrays) + (len(text) + 24 * rows if self._payload else 0),
        )

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
            if about.name.lower().endswith(_COMPRESSED):
                return self._forward_file(shard).block(group)
            start, stop = _blocks(about).offsets[group : group + 2].tolist()
            with open(about.path, "rb") as file:
                about.check_unchanged(self._dataset, os.fstat(file.fileno()))
                file.seek(start)
                return file.read(stop - start)

    def _forward_file(self, shard: int) -> ForwardFile:
        about = self._shards[shard]
        with self._lock:
            if shard not in self._forward:
                self._forward[shard] = ForwardFile(
                    self._dataset, about, _blocks(about), self._passed
                )
            self._forward.move_to_end(shard)
            if len(self._forward) > _FORWARD_FILES:
                self._forward.popitem(last=False)  # closed with its last reader
            return self._forward[shard]


class LineRows(RowSource):
    """Raw lines of one block; a row is decoded when it is looked at.

    text: of the whole block, or of the kept lines end to end.
    lines: where each row was in the block.
    place: says where the block lies, for messages.
    kept: for some rows of a block: which they are, shape [rows], int64, and where each begins in
        ``text``, then where that ends, shape [rows + 1], int64.
    """

    __slots__ = ("_kept", "_lines", "_place", "_text")

    def __init__(
        self,
        text: bytes,
        lines: RowLines,
        place: _Place,
        kept: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> None:
        self._text = text
        self._lines = lines
        self._place = place
        self._kept = kept

    def row(self, index: int) -> Any:
        """Decode one line, as Python's ``json`` does."""
        try:
            return load_line(self._line(index))
        except DataError as exc:
            row = index if self._kept is None else int(self._kept[0][index])
            raise self._place.error(row, self.detail(index, str(exc))) from exc

    def detail(self, index: int, problem: str) -> str:
        """Say what is wrong with a row, beginning right after its number in a message."""
        byte, line = int(self._lines.starts[index]), int(self._lines.numbers[index])
        return self._place.detail(self._line(index), line, byte, problem)

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Copy some lines."""
        picked, places = np.unique(rows, return_inverse=True)
        texts = [self._line(row) for row in picked.tolist()]
        old = self._lines
        lines = RowLines(old.starts[picked], old.stops[picked], old.numbers[picked], len(picked))
        among = picked if self._kept is None else self._kept[0][picked]
        kept = (among, offsets_of([len(text) for text in texts]))
        return LineRows(b"".join(texts), lines, self._place, kept), places

    def _line(self, index: int) -> bytes:
        if self._kept is None:
            return self._text[self._lines.starts[index] : self._lines.stops[index]]
        offsets = self._kept[1]
        return self._text[offsets[index] : offsets[index + 1]]


class _Place:
    """Says where a row of a block lies. Rows, lines and bytes count from the block's first."""

    __slots__ = ("_blocks", "_dataset", "_group", "_shard")

    def __init__(self, dataset: str, shard: Shard, group: int) -> None:
        self._dataset = dataset
        self._shard = shard.name
        self._blocks = _blocks(shard)
        self._group = group

    def error(self, row: int, detail: str) -> DataError:
        number = row + int(self._blocks.first_rows[self._group])
        return DataError(f"dataset {self._dataset!r}, shard {self._shard!r}, row {number}{detail}")

    def detail(self, text: bytes, line: int, byte: int, problem: str) -> str:
        line += int(self._blocks.first_lines[self._group]) + 1
        byte += int(self._blocks.offsets[self._group])
        excerpt = text[:_EXCERPT].decode("utf-8", "replace")
        return (
            f" (line {line}, byte {byte}): {problem}; the line begins {excerpt!r}; "
            f"{_remedy(self._blocks.opening)}"
        )


def _remedy(opening: bytes) -> str:
    if opening.startswith(b"["):
        return "this looks like a JSON array, not JSON lines: write one object a line"
    if opening.strip() == b"{":
        return "this looks like indented JSON, not JSON lines: write one object a line"
    return "mend or remove the line"


def _blocks(shard: Shard) -> LineBlocks:
    return cast(LineBlocks, shard.layout)


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
