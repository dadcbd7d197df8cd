"""The text of a file that may be compressed, by its suffix: gzip, zstd, bzip2 or xz.

Several gzip members, zstd frames, bzip2 or xz streams are one text. Each must be whole: bytes
behind the last one that are neither a further one nor padding are damage, never the end.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from zephon.io.formats.zstd_module import zstd

_CHUNK_BYTES = 256 << 10


class DamageError(Exception):
    """Compressed bytes are not what they should be, or end too soon."""


class _Member(Protocol):
    """A gzip member, zstd frame, bzip2 or xz stream that is being decompressed."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipMember:
    """What ``zlib`` has, as the other modules have it."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _gzip() -> tuple[_Member, type[Exception]]:
    return _GzipMember(), zlib.error


def _zstd() -> tuple[_Member, type[Exception]]:
    window: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 31}  # as of --long=31
    return zstd.ZstdDecompressor(options=window), zstd.ZstdError


def _bzip2() -> tuple[_Member, type[Exception]]:
    import bz2  # late: some builds of Python lack it

    return bz2.BZ2Decompressor(), OSError


def _xz() -> tuple[_Member, type[Exception]]:
    import lzma  # late: some builds of Python lack it

    return lzma.LZMADecompressor(lzma.FORMAT_XZ), lzma.LZMAError


_CODECS: dict[str, Callable[[], tuple[_Member, type[Exception]]]] = {
    ".gz": _gzip,
    ".zst": _zstd,
    ".bz2": _bzip2,
    ".xz": _xz,
}
_PADDED = (".gz", ".xz")  # may be followed by zeros

COMPRESSED = tuple(_CODECS)
"""Suffixes of compressed files."""


def codec_of(name: str) -> str | None:
    """Tell from its name how a file is compressed, by the suffix; None if it is not.

    >>> codec_of("a.jsonl.GZ"), codec_of("a.jsonl")
    ('.gz', None)
    """
    lowered = name.lower()
    return next((suffix for suffix in COMPRESSED if lowered.endswith(suffix)), None)


def open_text(path: Path) -> BinaryIO | CompressedText:
    """Open a file for reading its text from front to back, decompressed as its name says."""
    codec = codec_of(path.name)
    return path.open("rb") if codec is None else CompressedText(path, codec)


class CompressedText:
    """The text of a compressed file, from front to back.

    Args:
        path: the file.
        codec: one of ``COMPRESSED``.
    """

    def __init__(self, path: Path, codec: str) -> None:
        self._start = _CODECS[codec]
        self._padded = codec in _PADDED
        self._file = path.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)  # readers let go of files without a word
        self._member, self._failure = self._start()
        self._input = self._file.read(_CHUNK_BYTES)
        self._given = 0

    def read(self, size: int, /) -> bytes:
        """Give so many bytes; fewer at the end of the text only.

        Raises:
            DamageError: the file is damaged or cut off.
        """
        pieces: list[bytes] = []
        while size:
            if self._member.eof and not self._next_member():
                break
            piece = self._piece(size)
            pieces.append(piece)
            size -= len(piece)
            self._given += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> CompressedText:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _piece(self, size: int) -> bytes:
        """Decompress at most so many bytes; none where more input is needed first."""
        data = b""
        if self._member.needs_input:
            data, self._input = self._input or self._file.read(_CHUNK_BYTES), b""
        try:
            piece = self._member.decompress(data, size)
        except self._failure as exc:
            raise DamageError(f"{exc}, behind {self._given} bytes of text") from exc
        if not data and not piece and self._member.needs_input and not self._member.eof:
            raise DamageError(f"it ends too soon, behind {self._given} bytes of text")
        return piece

    def _next_member(self) -> bool:
        """Go on to what follows a member that has ended; say whether there is anything."""
        rest = self._member.unused_data + self._input
        while True:
            rest = rest.lstrip(b"\0") if self._padded else rest
            rest = rest or self._file.read(_CHUNK_BYTES)
            if not rest:
                return False
            if not self._padded or rest.strip(b"\0"):
                break
            rest = b""
        self._member, self._failure = self._start()
        self._input = rest.lstrip(b"\0") if self._padded else rest
        return True
