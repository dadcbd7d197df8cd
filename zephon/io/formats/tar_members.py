"""The members of a tar file, front to back: where each lies, and what it is.

Headers are those of ustar, GNU tar and pax, long names among them. Behind the zeros that end an
archive another may follow, as ``cat a.tar b.tar`` makes it: its members come too. The zeros may be
missing; whatever else is cut off or damaged is an error, never the end.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20
_LONGEST = 1 << 20  # of a further header, such as a long name
_OLD_SPARSE_MORE, _SPARSE_MORE = 482, 504  # bytes that say that more of a sparse map follows
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_EMPTY = (
    tarfile.LNKTYPE,
    tarfile.SYMTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
)
_WORDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class Member(NamedTuple):
    """A member. start: where its first header begins; begin, end: where its content lies.

    odd: what it is, if it is no file that stands there whole; "a directory" of directories.
    """

    name: str
    start: int
    begin: int
    end: int
    odd: str


@dataclass(slots=True)
class _Told:
    """What further headers say of the member that they stand before."""

    start: int | None = None
    name: str | None = None
    size: int | None = None
    sparse: bool = False


def members_of(file: BinaryIO) -> Iterator[Member]:
    """Give the members of a tar file, or of some neighbouring members of one.

    Args:
        file: at the first header; places count from there.

    Raises:
        ValueError: a header is damaged, or the file is cut off; names the byte.
    """
    tape = _Tape(file)
    told = _Told()
    while (header := tape.header()) is not None:
        at = tape.place - _BLOCK
        if told.start is None:
            told.start = at
        if header.type in _LONG or header.type in _PAX or header.type == tarfile.XGLTYPE:
            _further(header, tape, told)
            continue
        size = header.size if told.size is None else told.size
        name = header.name if told.name is None else told.name
        if header.type == tarfile.GNUTYPE_SPARSE:
            told.sparse = True
            more = tape.last[_OLD_SPARSE_MORE]
            while more:
                more = tape.content(_BLOCK, name)[_SPARSE_MORE]
        if header.type in _EMPTY:
            size = 0
        if size < 0:
            raise ValueError(f"the header at byte {at} tells a size of {size} bytes")
        begin = tape.place
        tape.skip(size, name)
        yield Member(name, told.start, begin, begin + size, _odd(header, sparse=told.sparse))
        told = _Told()
    if told.start is not None:
        raise ValueError(f"it is cut off behind the header at byte {told.start}")


def _odd(header: tarfile.TarInfo, *, sparse: bool) -> str:
    if header.isdir():
        return "a directory"
    if sparse:
        return "a sparse file"
    if header.type in tarfile.REGULAR_TYPES:
        return ""
    return _WORDS.get(header.type, f"of the unknown type {header.type!r}")


def _further(header: tarfile.TarInfo, tape: _Tape, told: _Told) -> None:
    """Take up a header that speaks of the next member."""
    at = tape.place - _BLOCK
    if not 0 <= header.size <= _LONGEST:
        raise ValueError(f"the header at byte {at} tells a name of {header.size} bytes")
    content = tape.content(header.size, header.name)
    if header.type == tarfile.GNUTYPE_LONGNAME:
        told.name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    if header.type in _LONG:
        return
    for key, value in _records(content, at):
        if header.type == tarfile.XGLTYPE:
            if key in ("path", "size"):
                raise ValueError(f"the header at byte {at} tells one {key} for all members")
        elif key == "path":
            told.name = value.decode("utf-8", "surrogateescape")
        elif key == "size":
            if not value.isdigit():
                raise ValueError(f"the header at byte {at} tells a size of {value!r:.40} bytes")
            told.size = int(value)
        elif key.startswith("GNU.sparse."):
            told.sparse = True
    if header.type == tarfile.XGLTYPE and told.start == at:
        told.start = None  # it belongs to no member


def _records(content: bytes, at: int) -> Iterator[tuple[str, bytes]]:
    """Split the text of a pax header: a length, a space, a key, =, a value and a line feed each."""
    while content.strip(b"\0"):
        length, space, _ = content.partition(b" ")
        record = content[: int(length)] if space and length.isdigit() and len(length) < 9 else b""
        key, equals, value = record[len(length) + 1 :].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise ValueError(f"the pax header at byte {at} is damaged")
        yield key.decode("utf-8", "replace"), value[:-1]
        content = content[len(record) :]


class _Tape:
    """A file that is read forward; seeks over what nobody reads, where it can.

    place: where it is. last: the last header that was read.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.place = 0
        self.last = b""
        self._left: int | None = None
        if file.seekable():
            here = file.tell()
            self._left = file.seek(0, 2) - here
            file.seek(here)

    def header(self) -> tarfile.TarInfo | None:
        """Read the next header; None at the end."""
        while True:
            self.last = self._read(_BLOCK)
            if self.last.count(0) == len(self.last):  # zeros, or nothing
                if len(self.last) < _BLOCK:
                    return None
                continue
            at = self.place - len(self.last)
            if len(self.last) < _BLOCK:
                raise ValueError(f"it is cut off in the header at byte {at}")
            try:
                return tarfile.TarInfo.frombuf(self.last, "utf-8", "surrogateescape")
            except tarfile.HeaderError as exc:
                raise ValueError(f"the header at byte {at} is damaged ({exc})") from exc

    def content(self, size: int, name: str) -> bytes:
        """Read content, and what fills up its last block."""
        found = self._read(size)
        if len(found) < size:
            raise self._cut_off(name, size - len(found))
        self._read(-size % _BLOCK)
        return found

    def skip(self, size: int, name: str) -> None:
        """Go over content, and over what fills up its last block if that is there."""
        whole = size + -size % _BLOCK
        if self._left is not None:
            there = self._left - self.place
            if there < size:
                raise self._cut_off(name, size - there)
            step = min(whole, there)
            self._file.seek(step, 1)
            self.place += step
            return
        passed = 0
        while passed < whole and (piece := self._read(min(_PIECE, whole - passed))):
            passed += len(piece)
        if passed < size:
            raise self._cut_off(name, size - passed)

    def _read(self, size: int) -> bytes:
        found = self._file.read(size)
        self.place += len(found)
        return found

    def _cut_off(self, name: str, missing: int) -> ValueError:
        return ValueError(f"it is cut off: member {name!r:.200} lacks {missing} bytes at its end")
