"""Plain text: a document a file, or one between each two separators.

A row is ``{"text": ...}``, as it was written: only a byte order mark at the front of a file is left
out, and the separator itself. Line ends stay what they are. Text that is not UTF-8 is a bad row.
A file without bytes has no row; with a separator, a document that is empty or white space alone is
none either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO

import pyarrow as pa

from zephon.io.fields import TEXT
from zephon.io.formats.blocks import BLOCK_BYTES, Block, Decoded
from zephon.io.formats.compressed_text import COMPRESSED
from zephon.io.formats.line_blocks import BYTE_ORDER_MARK
from zephon.io.formats.table_format import TableFormat

_SCHEMA = pa.schema([("text", TEXT)])


class Text(TableFormat):
    r"""Files that end in .txt or .md, where ``fmt`` says that they are data.

    Option: ``separator`` between documents, such as "\n\n" or "\n"; None: a file is one.
    """

    kind = "text"
    suffixes = ()
    has_lines = True
    further_suffixes = tuple(
        name + end for name in (".txt", ".md", ".text") for end in ("", *COMPRESSED)
    )
    option_defaults = MappingProxyType({"separator": None})
    options = option_defaults

    def option_problem(self) -> str:
        """Check the separator."""
        separator = self.options["separator"]
        if separator is None or (isinstance(separator, str) and separator):
            return ""
        return f"must have a text, or None, as separator, got {separator!r}"

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Take the file as one document, or cut it behind separators."""
        separator = self._separator()
        head = file.read(len(BYTE_ORDER_MARK))
        place = len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0
        if separator is None:
            if head[place:] or file.read(1):  # the rest need not be read to count it
                yield Block(place, 1)
            return
        rest, looked_at = bytearray(head[place:]), 0
        while piece := file.read(BLOCK_BYTES):
            rest += piece
            if rest.find(separator, looked_at) < 0:
                looked_at = max(0, len(rest) - len(separator) + 1)
                continue
            *documents, last = rest.split(separator)
            rows = sum(1 for each in documents if each.strip())
            if rows:
                yield Block(place, rows)
            # Not from the back: in "\n\n\n" that would be another one, and no longer split's.
            place, rest, looked_at = place + len(rest) - len(last), last, 0
        if rest.strip():
            yield Block(place, 1)

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Make a row of each document; who reads one looks whether it is UTF-8."""
        raw = pa.array(self._documents(text), pa.large_binary())
        return Decoded(table=pa.Table.from_arrays([raw.view(TEXT)], schema=_SCHEMA))

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Find the documents."""
        separator = self._separator()
        if separator is None:
            return [(0, len(text))]
        found: list[tuple[int, int]] = []
        place = 0
        for each in text.split(separator):
            if each.strip():
                found.append((place, place + len(each)))
            place += len(each) + len(separator)
        return found

    def schema(self, facts: Mapping[str, Any]) -> pa.Schema:
        """Give the one column."""
        return _SCHEMA

    def _documents(self, text: bytes) -> list[bytes]:
        separator = self._separator()
        if separator is None:
            return [text]
        return [each for each in text.split(separator) if each.strip()]

    def _separator(self) -> bytes | None:
        separator = self.options["separator"]
        return None if separator is None else separator.encode()
