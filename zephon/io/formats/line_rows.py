"""Rows of JSON lines as Python values, and where a bad one lies.

A line is kept as it was read and decoded when someone looks at it. Rows that are picked out of a
block keep their own bytes only, and still know their line and byte in the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.formats.line_blocks import LineBlocks, RowLines
from zephon.io.formats.line_decoder import all_load, load_line
from zephon.io.offsets import offsets_of
from zephon.io.payload import RowSource
from zephon.io.raw_rows import RawRow

_EXCERPT = 60  # bytes of a bad line in a message
_OTHER_JSON = "read it with fmt='json', or write one object a line"


class LineRows(RowSource):
    """Raw lines of one block; a row is decoded when it is looked at.

    text: of the whole block, or of the kept lines end to end; bytes, or a view of mapped ones.
    lines: where each row was in the block.
    place: says where the block lies, for messages.
    kept: for some rows of a block: which they are, shape [rows], int64, and where each begins in
        ``text``, then where that ends, shape [rows + 1], int64.
    """

    __slots__ = ("_kept", "_lines", "_place", "_text")

    def __init__(
        self,
        text: bytes | memoryview,
        lines: RowLines,
        place: Place,
        kept: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> None:
        self._text = text
        self._lines = lines
        self._place = place
        self._kept = kept

    @property
    def text(self) -> bytes:
        """The text of the whole block, or of the kept lines."""
        return bytes(self._text)

    def row(self, index: int) -> Any:
        """Decode one line, as Python's ``json`` does."""
        try:
            return load_line(self._line(index))
        except DataError as exc:
            raise DataError(f"{self.place(index)}{self.detail(index, str(exc))}") from exc

    def rows(self, indices: NDArray[np.int64]) -> list[Any]:
        """Decode some lines; raises as ``row``."""
        if self._kept is None:
            starts, stops = self._lines.starts[indices], self._lines.stops[indices]
        else:
            starts, stops = self._kept[1][indices], self._kept[1][indices + 1]
        text = self._text
        try:
            return [
                load_line(bytes(text[start:stop]))
                for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
        except DataError:  # said again of its row
            return [self.row(index) for index in indices.tolist()]

    def refusals(self) -> dict[int, str]:
        """Decode every line once; say which rows cannot be, and why.

        So a bad row is met before it is handed out, whoever looks at it afterwards.
        """
        if self._kept is None and all_load(self.text, self._lines):
            return {}
        problems = {}
        for index in range(len(self._lines.starts)):
            try:
                load_line(self._line(index))
            except DataError as exc:
                problems[index] = str(exc)
        return problems

    def raw_row(self, index: int) -> RawRow:
        """Give one line as it stands in the file, and where it stands."""
        line, byte = self._place.at(int(self._lines.numbers[index]), int(self._lines.starts[index]))
        return RawRow(self._line(index), line, byte)

    def place(self, index: int) -> str:
        """Say where one row lies."""
        return self._place.row(index if self._kept is None else int(self._kept[0][index]))

    def detail(self, index: int, problem: str) -> str:
        """Say what is wrong with a row, beginning right after its number in a message."""
        byte, line = int(self._lines.starts[index]), int(self._lines.numbers[index])
        return self._place.detail(self._line(index), line, byte, problem)

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Copy some lines."""
        if len(rows) == 1:  # 50 µs less: rows are looked at one by one, too
            picked, places = rows, np.zeros(1, np.int64)
        else:
            picked, places = np.unique(rows, return_inverse=True)
        texts = [self._line(row) for row in picked.tolist()]
        old = self._lines
        lines = RowLines(old.starts[picked], old.stops[picked], old.numbers[picked], len(picked))
        among = picked if self._kept is None else self._kept[0][picked]
        kept = (among, offsets_of([len(text) for text in texts]))
        return LineRows(b"".join(texts), lines, self._place, kept), places

    def to_columns(self) -> tuple[list[pa.Array], dict[str, Any]] | None:
        """Give a block as columns and, as JSON values, the rest; None for some lines of one."""
        lines, rows = self._lines, len(self._lines.starts)
        if self._kept is not None or not rows:
            return None
        offsets = np.append(lines.starts, len(self._text))  # a row's bytes reach to the next row
        offsets[0] = 0
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._text)]
        text = pa.Array.from_buffers(pa.large_binary(), rows, buffers)
        arrays = [text, *map(pa.array, (lines.starts, lines.stops, lines.numbers))]
        return arrays, {"lines": lines.lines, "place": self._place.to_json()}

    @classmethod
    def of_columns(cls, arrays: list[pa.Array], about: dict[str, Any]) -> LineRows:
        """Make the lines of what ``to_columns`` gave; they share its memory."""
        text, *found = arrays
        lines = RowLines(*(array.to_numpy() for array in found), lines=about["lines"])
        return cls(memoryview(text.buffers()[2]), lines, Place.of_json(about["place"]))

    def _line(self, index: int) -> bytes:
        if self._kept is None:
            return bytes(self._text[self._lines.starts[index] : self._lines.stops[index]])
        offsets = self._kept[1]
        return bytes(self._text[offsets[index] : offsets[index + 1]])


class Place:
    """Says where a row of a block lies. Rows, lines and bytes count from the block's first."""

    __slots__ = ("_blocks", "_dataset", "_group", "_shard")

    def __init__(self, dataset: str, shard: str, blocks: LineBlocks, group: int) -> None:
        self._dataset = dataset
        self._shard = shard
        self._blocks = blocks
        self._group = group

    def to_json(self) -> dict[str, Any]:
        """Say the same in JSON values."""
        blocks, group = self._blocks, self._group
        return {
            "dataset": self._dataset,
            "shard": self._shard,
            "byte": int(blocks.offsets[group]),
            "row": int(blocks.first_rows[group]),
            "line": int(blocks.first_lines[group]),
            "opening": blocks.opening.hex(),
        }

    @classmethod
    def of_json(cls, saved: dict[str, Any]) -> Place:
        """Make a place of what ``to_json`` said."""
        byte, row, line = (np.array([saved[name]]) for name in ("byte", "row", "line"))
        blocks = LineBlocks(byte, row, line, bytes.fromhex(saved["opening"]))
        return cls(saved["dataset"], saved["shard"], blocks, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what concerns this block, not where all blocks of the shard lie."""
        return Place.of_json, (self.to_json(),)

    def row(self, row: int) -> str:
        """Say where a row lies."""
        number = row + int(self._blocks.first_rows[self._group])
        return f"dataset {self._dataset!r}, shard {self._shard!r}, row {number}"

    def at(self, line: int, byte: int) -> tuple[int, int]:
        """Give a line, counted from 1, and a byte of the whole text."""
        first = int(self._blocks.first_lines[self._group]), int(self._blocks.offsets[self._group])
        return first[0] + line + 1, first[1] + byte

    def detail(self, text: bytes, line: int, byte: int, problem: str) -> str:
        """Say where a line is and what is wrong with it."""
        line, byte = self.at(line, byte)
        excerpt = text[:_EXCERPT].decode("utf-8", "replace")
        return (
            f" (line {line}, byte {byte}): {problem}; the line begins {excerpt!r}; "
            f"{_remedy(self._blocks.opening)}"
        )


def _remedy(opening: bytes) -> str:
    if opening.startswith(b"["):
        return f"this looks like a JSON array, not JSON lines: {_OTHER_JSON}"
    if opening.strip() == b"{":
        return f"this looks like indented JSON, not JSON lines: {_OTHER_JSON}"
    return "mend or remove the line"
