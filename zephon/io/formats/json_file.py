"""JSON files: an array of rows, or objects one after another, laid out in any way.

A file is mapped and cut into values by its brackets and quotes, so that no more than a block of
about 1 MiB is decoded at once. Values are those of Python's ``json``: the last of equal keys wins,
and NaN is a number. A value that is no JSON is one bad row as long as its brackets and quotes are
closed; where they are not, the file is refused.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from zephon.io.formats.block_format import BlockFormat, blocks_of_records, decoded_records
from zephon.io.formats.blocks import Block, Decoded
from zephon.io.formats.compressed_text import COMPRESSED
from zephon.io.formats.line_blocks import BYTE_ORDER_MARK
from zephon.io.formats.line_decoder import load_line

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOP = re.compile(_TEXT + rb'|[{}\[\],"]|[^\s"{}\[\],]+', re.DOTALL)
_INSIDE = re.compile(_TEXT + rb'|[{}\[\]"]', re.DOTALL)
_FIRST = re.compile(rb"\S")


class JsonFile(BlockFormat):
    """Files that end in .json, where ``fmt`` says so."""

    kind = "json"
    suffixes = ()
    has_lines = True
    further_suffixes = tuple(  # those of JSON lines are what some call any file of JSON
        name + end for name in (".json", ".jsonl", ".ndjson") for end in ("", *COMPRESSED)
    )

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Find the values of the array, or those at the top."""
        text = _content(file)
        place = len(BYTE_ORDER_MARK) if text[:3] == BYTE_ORDER_MARK else 0
        first = _FIRST.search(text, place)
        facts["array"] = first is not None and first[0] == b"["
        if first is not None and facts["array"]:
            place = first.end()
        yield from blocks_of_records(_values(text, place, array=facts["array"], whole=True))

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Decode value by value."""
        return decoded_records(text, self.spans(text, facts), load_line)

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Find the values."""
        return list(_values(text, 0, array=facts["array"], whole=False))


def _content(file: BinaryIO) -> bytes | mmap.mmap:
    """Map a file; read one that is compressed."""
    try:
        size = os.fstat(file.fileno()).st_size
    except OSError:  # of a decoded text
        return file.read()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


def _values(
    text: bytes | mmap.mmap, place: int, *, array: bool, whole: bool
) -> Iterator[tuple[int, int]]:
    """Say where values lie, as [start, stop) in bytes.

    Args:
        text: from ``place`` on, values with commas or white space between them.
        place: behind the bracket of the array, if there is one.
        array: they are in an array, whose end closes them.
        whole: the text is that of the whole file.

    Raises:
        ValueError: a bracket or a quote is not closed, or closes nothing; names its byte.
    """
    start: int | None = None
    begun, last, depth, closed = 0, 0, 0, False
    while (found := (_INSIDE if depth else _TOP).search(text, place)) is not None:
        at, place = found.span()
        sign = text[at : at + 1]
        if sign == b'"' and place == at + 1:
            raise ValueError(f"the text at byte {at} opens a quote that nothing closes")
        if closed:
            raise ValueError(f"there is more at byte {at}, behind the end of its array")
        if not depth and sign in (b",", b"]"):
            if start is not None:
                yield start, last
            start, closed = None, sign == b"]"
            if closed and not array:
                raise ValueError(f"the bracket at byte {at} closes nothing")
            continue
        if start is None:
            start = begun = at
        if sign in (b"{", b"["):
            depth += 1
        elif depth and sign in (b"}", b"]"):
            depth -= 1
        last = place
        if not depth and sign in (b"}", b"]"):
            yield start, last
            start = None
    if depth:
        raise ValueError(f"the value at byte {begun} opens a bracket that nothing closes")
    if start is not None:
        yield start, last
    if whole and array and not closed:
        raise ValueError("its array is never closed: it is cut off")
