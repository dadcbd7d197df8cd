"""Messages of Arrow IPC, by their places: where record batches and dictionaries lie in a file.

Only the few bytes that frame a message and its header are looked at, never a body; so a file is
indexed at the speed of one small read a record batch. Both formats are read: the file format, by
its footer, and the stream format, message after message. The layout is that of Arrow's columnar
specification: Message.fbs and File.fbs, in FlatBuffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MAGIC = b"ARROW1"

_CONTINUATION = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_BLOCK = struct.Struct("<qiiq")  # offset, length of the header, padding, length of the body
_MOST_ROWS = 1 << 40  # of a record batch, likewise
_LONGEST = 1 << 28  # bytes of a header: more is damage


class Span(NamedTuple):
    """Bytes [start, stop) of a file."""

    start: int
    stop: int


class Batch(NamedTuple):
    """A record batch: its message, its rows, and whether its buffers are compressed."""

    span: Span
    rows: int
    compressed: bool


@dataclass(frozen=True, slots=True)
class Messages:
    """All messages of a file.

    schema: the message of the schema.
    dictionaries: in the order in which they are to be read.
    batches: in order.
    """

    schema: Span
    dictionaries: list[Span]
    batches: list[Batch]


def messages_of(content: memoryview) -> Messages:
    """Find the messages of a file that is mapped.

    Raises:
        ValueError: it is none of Arrow IPC, or it is cut off or damaged; says where.
    """
    try:
        return _by_footer(content) if content[:6] == MAGIC else _in_turn(content)
    except (struct.error, IndexError, OverflowError) as exc:
        raise ValueError(f"what frames its messages is damaged ({exc})") from exc


def _by_footer(content: memoryview) -> Messages:
    if content[-6:] != MAGIC or len(content) < 20:
        raise ValueError(f"an Arrow file must end in {MAGIC!r}: it is cut off")
    (length,) = struct.unpack_from("<i", content, len(content) - 10)
    if not 0 < length <= len(content) - 20:
        raise ValueError(f"its footer cannot be {length} bytes long")
    footer = _Table.root(content[len(content) - 10 - length : len(content) - 10])
    schema = _message(content, 8)
    if schema is None or schema.kind != _SCHEMA:
        raise ValueError("its first message must be the schema")
    dictionaries = [_block(content, *each, _DICTIONARY) for each in footer.blocks(2)]
    batches = [_block(content, *each, _BATCH) for each in footer.blocks(3)]
    return Messages(
        schema.span, [each.span for each in dictionaries], [each.batch() for each in batches]
    )


def _in_turn(content: memoryview) -> Messages:
    schema: Span | None = None
    dictionaries: list[Span] = []
    batches: list[Batch] = []
    for message in _each(content):
        if schema is None:
            if message.kind != _SCHEMA:
                raise ValueError("its first message must be the schema")
            schema = message.span
        elif message.kind == _DICTIONARY:
            dictionaries.append(message.span)
        elif message.kind == _BATCH:
            batches.append(message.batch())
        else:
            raise ValueError(f"at byte {message.span.start}: a message of kind {message.kind}")
    if schema is None:
        raise ValueError("it holds no schema")
    return Messages(schema, dictionaries, batches)


def _each(content: memoryview) -> Iterator[_Message]:
    place = 0
    while (found := _message(content, place)) is not None:
        yield found
        place = found.span.stop


def _block(content: memoryview, offset: int, header: int, body: int, kind: int) -> _Message:
    found = _message(content, offset) if 0 <= offset < len(content) else None
    if found is None or found.kind != kind or found.span.stop - offset != header + body:
        raise ValueError(f"its footer names a message at byte {offset}, and there is another thing")
    return found


def _message(content: memoryview, place: int) -> _Message | None:
    """Look at the message at a place; None where the stream ends."""
    if place == len(content) and place:
        return None  # a stream may end without saying so
    start, prefix = place, bytes(content[place : place + 4])
    if prefix == _CONTINUATION:
        place += 4
        prefix = bytes(content[place : place + 4])
    if len(prefix) < 4:
        raise ValueError(f"it ends within the message at byte {start}")
    length = int.from_bytes(prefix, "little", signed=True)
    place += 4
    if length == 0:
        return None
    if not 0 < length <= _LONGEST:
        raise ValueError(f"at byte {start}: no message of Arrow IPC begins {prefix!r}")
    if place + length > len(content):
        raise ValueError(f"it ends within the message at byte {start}")
    table = _Table.root(content[place : place + length])
    body = table.number(3, "<q")
    stop = place + length + body
    if body < 0 or stop > len(content):
        raise ValueError(f"it ends within the message at byte {start}")
    return _Message(table.number(1, "<B"), Span(start, stop), table.table(2))


class _Table:
    """A table of FlatBuffers: fields by number, each at a place that its own table tells."""

    def __init__(self, content: memoryview, place: int) -> None:
        self._content = content
        self._place = place
        self._fields = place - struct.unpack_from("<i", content, place)[0]
        if self._fields < 0:
            raise ValueError("a table of its header lies before the header")

    @classmethod
    def root(cls, content: memoryview) -> _Table:
        return cls(content, struct.unpack_from("<I", content, 0)[0])

    def number(self, field: int, kind: str) -> int:
        at = self._at(field)
        return 0 if at is None else struct.unpack_from(kind, self._content, at)[0]

    def table(self, field: int) -> _Table | None:
        at = self._at(field)
        if at is None:
            return None
        return _Table(self._content, at + struct.unpack_from("<I", self._content, at)[0])

    def blocks(self, field: int) -> Iterator[tuple[int, int, int]]:
        """Give offset, header and body of each block of a vector."""
        at = self._at(field)
        if at is None:
            return
        at += struct.unpack_from("<I", self._content, at)[0]
        (count,) = struct.unpack_from("<I", self._content, at)
        for number in range(count):
            place = at + 4 + number * _BLOCK.size
            offset, header, _, body = _BLOCK.unpack_from(self._content, place)
            yield offset, header, body

    def _at(self, field: int) -> int | None:
        (size,) = struct.unpack_from("<H", self._content, self._fields)
        if 4 + 2 * field >= size:
            return None
        (offset,) = struct.unpack_from("<H", self._content, self._fields + 4 + 2 * field)
        return self._place + offset if offset else None


class _Message(NamedTuple):
    kind: int
    span: Span
    header: _Table | None

    def batch(self) -> Batch:
        if self.header is None:
            raise ValueError(f"at byte {self.span.start}: a record batch without a header")
        rows = self.header.number(0, "<q")
        if not 0 <= rows <= _MOST_ROWS:
            raise ValueError(f"at byte {self.span.start}: a record batch of {rows} rows")
        return Batch(self.span, rows, self.header.table(3) is not None)
