"""WebDataset: tar files in which the members of one sample follow one another.

A row is the members whose names are equal up to the first dot behind the last slash: that is its
``__key__``, and what follows the dot, in lower case, names the field. By its last part ``txt`` and
``text`` are text, ``json`` is what it says, ``cls`` an integer; all others are bytes. A key that
comes again behind others begins another row. Directories, hidden files such as ``._a.txt`` and
names without a dot are passed over. A field that is no such value, that comes twice, or that is a
link or a sparse file makes its row a bad one; so does a name that is not UTF-8.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from zephon.io.formats.block_format import BlockFormat, blocks_of_records
from zephon.io.formats.blocks import Block, Decoded, Problem
from zephon.io.formats.compressed_text import COMPRESSED
from zephon.io.formats.line_blocks import BYTE_ORDER_MARK
from zephon.io.formats.tar_members import Member, members_of

_GROUP_BYTES = 4 << 20
_NAME = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]+")


class WebDataset(BlockFormat):
    """Files that end in .tar, or in that and .gz, .zst, .bz2 or .xz."""

    kind = "webdataset"
    suffixes = tuple(".tar" + end for end in ("", *COMPRESSED))
    gives_way = True

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Read the headers; take as many samples as fill a block."""
        return blocks_of_records(_spans(file), _GROUP_BYTES)

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Make a row of each sample."""
        rows: list[Any] = []
        bad: dict[int, Problem] = {}
        for key, members in _samples(io.BytesIO(text)):
            try:
                rows.append(_row(key, members, text))
            except ValueError as exc:
                bad[len(rows)] = Problem(str(exc), members[0].start)
                rows.append(None)
        return Decoded(rows, bad)

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Find the samples, headers and all."""
        return list(_spans(io.BytesIO(text)))


def _spans(file: BinaryIO) -> Iterator[tuple[int, int]]:
    for _, members in _samples(file):
        yield members[0].start, members[-1].end


def _samples(file: BinaryIO) -> Iterator[tuple[str, list[Member]]]:
    """Give the keys of samples, and their members, of which each has at least one."""
    key, found = "", list[Member]()
    for member in members_of(file):
        named = _NAME.fullmatch(member.name)
        if member.odd == "a directory" or named is None:
            continue
        if found and named[1] != key:
            yield key, found
            found = []
        key = named[1]
        found.append(member)
    if found:
        yield key, found


def _row(key: str, members: Sequence[Member], text: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {"__key__": key}
    for member in members:
        where = f"member {member.name!r:.200}"
        if member.odd:
            raise ValueError(f"{where} must be a file that stands there whole, it is {member.odd}")
        field = member.name[len(key) + 1 :].lower()
        if field in row:
            raise ValueError(f"{where} must be the only one of its field, {field!r} came before")
        try:
            member.name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{where} must have a name in UTF-8, this one is not") from None
        row[field] = _value(field.rpartition(".")[2], text[member.begin : member.end], where)
    return row


def _value(kind: str, content: bytes, where: str) -> Any:
    if kind not in ("txt", "text", "json", "cls"):
        return content
    try:
        text = content.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as exc:
        raise ValueError(f"{where} must be UTF-8, its byte {exc.start} is not") from exc
    if kind == "json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ValueError(f"{where} must be JSON, got {text!r:.60} ({exc})") from exc
    if kind == "cls":
        if not _INTEGER.fullmatch(text.strip()) or len(text) > 40:
            raise ValueError(f"{where} must be an integer, got {text!r:.60}")
        return int(text)
    return text
