"""Physical lines of a JSONL text: which are rows, and an index of blocks of them.

A line ends at a line feed. Lines of white space alone (as ``str.isspace`` says) are no rows, and a
byte order mark counts for nothing at the front of any line, since files are joined with it. The
index is made in one pass at about 2 GB/s and holds three integers a block of about
1 MiB; it needs memory for one block, or for the longest line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_OPENING_BYTES = 16
_LINE_FEED, _RETURN = 10, 13


class Stream(Protocol):
    """What can be read from front to back."""

    def read(self, size: int, /) -> bytes:
        """Give at most ``size`` bytes; none at the end only."""
        ...


class OpenedText(Stream, Protocol):
    """A text that has to be closed."""

    def close(self) -> None:
        """Let go of the file."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowLines:
    """The lines of a text that are rows; arrays of shape [rows], int64.

    starts, stops: row r is text[starts[r]:stops[r]], without its line feed.
    numbers: the row's line, counted from 0 over all lines of the text.
    lines: lines of the text, blank ones too.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    numbers: NDArray[np.int64]
    lines: int


@dataclass(frozen=True, slots=True, eq=False)
class LineBlocks:
    """An index of one text: whole lines in blocks, end to end. Arrays of shape [blocks + 1], int64.

    offsets: where each block begins, in bytes of the decoded text; then where the text ends.
    first_rows: its first row, counted from 0; then the rows of the text.
    first_lines: its first physical line, counted from 0; then the lines of the text.
    opening: the first bytes of the first row, which tell JSON lines from other JSON.
    types: of the fields, each with the row where it was met first; None where nobody looked.
    """

    offsets: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    first_lines: NDArray[np.int64]
    opening: bytes
    types: Mapping[str, Sequence[tuple[str, int]]] | None = None


def row_lines(text: bytes) -> RowLines:
    r"""Find the rows of a text that begins and ends with whole lines.

    Counting and reading both go through here, so they never disagree about a blank line.

    >>> found = row_lines(b'{"a": 1}\r\n \n{}')
    >>> found.starts.tolist(), found.stops.tolist(), found.numbers.tolist()
    ([0, 12], [9, 14], [0, 2])
    """
    letters = np.frombuffer(text, np.uint8)
    stops = np.flatnonzero(letters == _LINE_FEED)
    if text and not text.endswith(b"\n"):
        stops = np.append(stops, len(text))
    starts = np.zeros_like(stops)
    starts[1:] = stops[:-1] + 1
    first = letters[starts]
    solid = (first > 32) & (first < 127)
    if solid.all():
        return RowLines(starts, stops, np.arange(len(stops)), len(stops))
    empty = (first == _LINE_FEED) | ((first == _RETURN) & (stops - starts == 1))
    for line in np.flatnonzero(~solid & ~empty).tolist():
        solid[line] = not is_blank(text[starts[line] : stops[line]])
    numbers = np.flatnonzero(solid)
    return RowLines(starts[numbers], stops[numbers], numbers, len(stops))


def is_blank(line: bytes) -> bool:
    r"""Tell whether a line is white space alone; bytes that are not UTF-8 are not.

    >>> [is_blank(line) for line in (b" \t\r", "\u3000".encode(), BYTE_ORDER_MARK, b"\xff")]
    [True, True, True, False]
    """
    try:
        text = line.decode().lstrip("\ufeff")
    except UnicodeDecodeError:
        return False
    return not text or text.isspace()


def index_lines(
    stream: Stream,
    *,
    block_bytes: int = BLOCK_BYTES,
    look: Callable[[bytes, RowLines, int], None] | None = None,
) -> LineBlocks:
    """Read a text from front to back and index its rows.

    Args:
        stream: the decoded text; a byte order mark at its front is left out.
        block_bytes: how large a block is about; only the index depends on it, never a row's id.
        look: is shown each block, its rows, and the number of the first of them.

    Raises:
        UnicodeError: the text is UTF-16 or UTF-32, by its first bytes.
    """
    offset = row = line = 0
    offsets, first_rows, first_lines = [0], [0], [0]
    opening = b""
    for text in _blocks(stream, block_bytes):
        if not offset:
            if text.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
                raise UnicodeError("it begins with the mark of UTF-16 or UTF-32")
            if text.startswith(BYTE_ORDER_MARK):
                text = text.removeprefix(BYTE_ORDER_MARK)
                offset = offsets[0] = len(BYTE_ORDER_MARK)
        found = row_lines(text)
        if not opening and len(found.starts):
            start = int(found.starts[0])
            opening = text[start : min(int(found.stops[0]), start + _OPENING_BYTES)]
        if look is not None:
            look(text, found, row)
        offset += len(text)
        row += len(found.starts)
        line += found.lines
        offsets.append(offset)
        first_rows.append(row)
        first_lines.append(line)
    return LineBlocks(_int64(offsets), _int64(first_rows), _int64(first_lines), opening)


def _blocks(stream: Stream, block_bytes: int) -> Iterator[bytes]:
    """Cut a stream behind the last line feed of each ``block_bytes``; a long line is one block."""
    rest: list[bytes] = []  # a line that has not ended yet, in pieces
    while piece := stream.read(block_bytes):
        stop = piece.rfind(b"\n") + 1
        if stop:
            yield b"".join([*rest, memoryview(piece)[:stop]])  # copied once
            rest = []
        if stop < len(piece):
            rest.append(piece[stop:])
    if rest:
        yield b"".join(rest)


def _int64(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
