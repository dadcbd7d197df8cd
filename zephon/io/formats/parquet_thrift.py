"""What a Parquet footer says of column chunks, read from its bytes.

Arrow ends the process when it is asked for the statistics of a chunk that is encrypted or damaged,
so nobody asks it. A footer is in Thrift's compact protocol; all of it is walked through, some 10 µs
a column chunk, and only by who has a filter that statistics may serve.

Source:
    Apache Parquet, parquet.thrift; Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, NamedTuple

from zephon.io.far_files import FarFile
from zephon.io.formats.parquet_far import far_footer

_MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the length of the footer, and the magic ones
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY = 1, 2, 3, 6, 7, 8
_LIST, _SET, _MAP, _STRUCT = 9, 10, 11, 12
_DEEPEST = 32

PHYSICAL = (
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
)  # fmt: skip


class ChunkFacts(NamedTuple):
    """What is told of one column chunk; None: it is not told.

    physical: the type of its values. values: how many, nulls too. low, high: bounds, as PLAIN
    encodes values, in the order that the column's type defines.
    """

    physical: str
    values: int
    nulls: int | None
    low: bytes | None
    high: bytes | None


def footer_bytes(path: str | os.PathLike[str] | FarFile) -> bytes:
    """Read the footer of a file, which may lie in a far place.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(path, FarFile):
        return far_footer(path)
    with open(path, "rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length + _TAIL_BYTES > size:
            return b""
        file.seek(size - _TAIL_BYTES - length)
        return file.read(length)


def chunk_facts(footer: bytes, columns: Collection[int]) -> list[dict[int, ChunkFacts]] | None:
    """Give what a footer tells of some columns, by number, of each row group.

    A column whose order is not defined has no bounds; one that is encrypted is left out.

    Returns:
        one a row group; None if the bytes are no footer.
    """
    try:
        walk = _Walk(footer)
        found, ordered = walk.file(frozenset(columns))
    except (IndexError, ValueError, RecursionError):
        return None
    return [
        {
            column: facts if column in ordered else facts._replace(low=None, high=None)
            for column, facts in group.items()
        }
        for group in found
    ]


class _Walk:
    """Goes through a footer once, from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def file(self, columns: frozenset[int]) -> tuple[list[dict[int, ChunkFacts]], set[int]]:
        """Walk through FileMetaData: 4 is the row groups, 7 the orders of columns."""
        groups: list[dict[int, ChunkFacts]] = []
        ordered: set[int] = set()
        field = 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            kind &= 15
            if field == 4 and kind == _LIST:
                groups = [self._group(columns) for _ in range(self._structs())]
            elif field == 7 and kind == _LIST:
                for column in range(self._structs()):
                    if self._is_type_defined():
                        ordered.add(column)
            else:
                self._skip(kind)
        return groups, ordered

    def _group(self, columns: frozenset[int]) -> dict[int, ChunkFacts]:
        """Walk through RowGroup: 1 is the columns."""
        found: dict[int, ChunkFacts] = {}
        field = 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            kind &= 15
            if field == 1 and kind == _LIST:
                for column in range(self._structs()):
                    if column not in columns:
                        self._skip(_STRUCT)
                    elif (facts := self._chunk()) is not None:
                        found[column] = facts
            else:
                self._skip(kind)
        return found

    def _chunk(self) -> ChunkFacts | None:
        """Walk through ColumnChunk: 3 is its metadata, 8 and 9 are of encryption."""
        facts: ChunkFacts | None = None
        hidden = False
        field = 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            kind &= 15
            if field == 3 and kind == _STRUCT:
                facts = self._metadata()
            else:
                hidden |= field in (8, 9)
                self._skip(kind)
        return None if hidden else facts

    def _metadata(self) -> ChunkFacts | None:
        """Walk through ColumnMetaData: 1 is the type, 5 the number of values, 12 statistics."""
        physical = values = -1
        told: dict[int, Any] = {}
        field = 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            kind &= 15
            if field == 1 and kind <= _I64:
                physical = self._integer()
            elif field == 5 and kind <= _I64:
                values = self._integer()
            elif field == 12 and kind == _STRUCT:
                told = self._statistics()
            else:
                self._skip(kind)
        if not 0 <= physical < len(PHYSICAL):
            return None
        return ChunkFacts(PHYSICAL[physical], values, told.get(3), told.get(6), told.get(5))

    def _statistics(self) -> dict[int, Any]:
        """Walk through Statistics: 3 is the nulls, 5 and 6 are the bounds, highest first."""
        found: dict[int, Any] = {}
        field = 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            kind &= 15
            if field == 3 and kind == _I64:
                found[3] = self._integer()
            elif field in (5, 6) and kind == _BINARY:
                size = self._varint()
                start, self._at = self._at, self._at + size
                found[field] = self._data[start : self._at]
                if len(found[field]) != size:
                    raise ValueError("a bound goes beyond the footer")
            else:
                self._skip(kind)
        return found

    def _is_type_defined(self) -> bool:
        """Walk through ColumnOrder, a union of one member yet: 1, the order of the type."""
        found, field = False, 0
        while (kind := self._kind()) != 0:
            field = self._field(kind, field)
            found |= field == 1
            self._skip(kind & 15)
        return found

    def _kind(self) -> int:
        kind = self._data[self._at]
        self._at += 1
        return kind

    def _field(self, kind: int, last: int) -> int:
        """Give the number of a field: so much after the last, or as it is written."""
        return last + (kind >> 4) if kind >> 4 else self._integer()

    def _structs(self) -> int:
        """Begin a list of structs; give how many."""
        size, kind = self._list()
        if kind != _STRUCT and size:
            raise ValueError("a list of structs holds others")
        return size

    def _list(self) -> tuple[int, int]:
        head = self._kind()
        size = head >> 4
        return (self._varint() if size == 15 else size), head & 15

    def _varint(self) -> int:
        data, at = self._data, self._at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise ValueError("an integer of more than 64 bits")
        self._at = at
        return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, kind: int, depth: int = 0) -> None:
        """Go past a value."""
        data = self._data
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._at += 1
        elif kind <= _I64:
            at = self._at
            while data[at] > 127:
                at += 1
            self._at = at + 1
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            if depth > _DEEPEST:
                raise ValueError("structs lie too deep")
            while (inner := data[self._at]) != 0:
                self._at += 1
                if inner < 16:
                    self._varint()
                self._skip(inner & 15, depth + 1)
            self._at += 1
        elif kind in (_LIST, _SET):
            size, inner = self._list()
            self._items(size, inner, depth)
        elif kind == _MAP:
            size = self._varint()
            kinds = self._kind() if size else 0
            for _ in range(size):
                self._items(1, kinds >> 4, depth)
                self._items(1, kinds & 15, depth)
                self._check()
        else:
            raise ValueError(f"no values are of kind {kind}")

    def _items(self, size: int, kind: int, depth: int) -> None:
        if kind <= _BYTE:  # a boolean takes a byte here
            self._at += size
            return
        for _ in range(size):
            self._skip(kind, depth + 1)
            self._check()

    def _check(self) -> None:
        if self._at > len(self._data):
            raise ValueError("a value goes beyond the footer")
