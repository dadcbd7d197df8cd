"""Reading JSON lines: a block of whole lines at a time, plain or out of a compressed file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from zephon.errors import ShardError
from zephon.io.faults import NULLED, Faults
from zephon.io.fields import Column
from zephon.io.formats.compressed_text import DamageError, codec_of
from zephon.io.formats.format import (
    DecodedGroup,
    GroupReader,
    Texts,
    columns_batch,
    held_bytes,
)
from zephon.io.formats.forward_files import ForwardFiles
from zephon.io.formats.line_blocks import RowLines, row_lines
from zephon.io.formats.line_decoder import LineDecoder
from zephon.io.formats.line_layouts import blocks_of
from zephon.io.formats.line_rows import LineRows, Place
from zephon.io.shard import Shard


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
        self._forward = ForwardFiles(dataset, shards)
        self._checks_rows = True

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one block."""
        whole, text, lines = self.lines(shard, group)
        rows = len(lines.starts)
        arrays: list[pa.Array] = []
        problems: list[dict[int, str]] = []
        if self._decoder is not None:
            arrays, problems = self._decoder.decode(text, lines)
        wrong: list[tuple[Column | None, dict[int, str]]] = [
            *zip(self._columns, problems, strict=False)
        ]
        if self._payload and self._checks_rows:
            said = {row for bad in problems for row in bad}
            refused = {row: why for row, why in whole.refusals().items() if row not in said}
            wrong.append((None, refused))
        faults = [
            Faults.of(
                {r: why if why == NULLED else whole.detail(r, why) for r, why in bad.items()},
                column,
            )
            for column, bad in wrong
            if bad
        ]
        return DecodedGroup(
            columns=columns_batch(self._columns, arrays, rows),
            faults=tuple(faults),
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

    def keep_texts(self, texts: Texts) -> None:
        """Keep the text of compressed files that are read from their front again."""
        self._forward.keep_texts(texts)

    def leave_rows(self) -> None:
        """Decode no line but those that are looked at."""
        self._checks_rows = False

    def close(self) -> None:
        """Close compressed files that are open."""
        self._forward.close()

    def _text(self, shard: int, group: int) -> bytes:
        about = self._shards[shard]
        with located(self._dataset, about.name):
            if codec_of(about.name):
                return self._forward.block(shard, group, blocks_of(about).offsets)
            start, stop = blocks_of(about).offsets[group : group + 2].tolist()
            about.check_written(self._dataset, os.stat(about.path))  # opening a pipe would wait
            with open(about.path, "rb") as file:
                about.check_unchanged(self._dataset, os.fstat(file.fileno()))
                if group and os.pread(file.fileno(), 1, start - 1) != b"\n":
                    raise about.stale(self._dataset, f"block {group} begins inside a line")
                file.seek(start)
                return file.read(stop - start)


@contextmanager
def located(dataset: str, shard: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while its text is read."""
    try:
        yield
    except ShardError:
        raise
    except (DamageError, OSError, UnicodeError) as exc:
        what = "it cannot be read"
        if isinstance(exc, UnicodeError):
            what = "it is not UTF-8"
        elif isinstance(exc, DamageError):
            what = "it is damaged or cut off"
        raise ShardError(
            f"dataset {dataset!r}, shard {shard!r}: the file must be whole and in UTF-8, but "
            f"{what}: {exc}; write the file again, or move it out of the directory"
        ) from exc
