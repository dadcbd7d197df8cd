"""Parquet files in far places: their footers, and column chunks by requests for ranges.

What is asked for is what is needed: a footer, then the chunks of the columns that are read of one
row group, all of them at once. Footers stay in memory, up to 64 MiB of them in a process.
"""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.io.far_files import FarFile

_KEPT_BYTES = 64 << 20
_MAGIC = b"PAR1"
_MAGICS = (_MAGIC, b"PARE")
_END_BYTES = 8  # the footer's length, and the magic
_MOST_GUESSED, _GUESSED_SHARE = 64 << 10, 1000
"""What is asked for at first of the end of a file: one part in so many of it, at most so much."""


class _Footers:
    """Footers that were read, the least recently used first out."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()
        self.bytes = 0

    def keep(self, key: tuple[str, str, str], footer: bytes) -> None:
        with self.lock:
            if key in self.held:
                return
            self.held[key] = footer
            self.bytes += len(footer)
            while self.bytes > _KEPT_BYTES and len(self.held) > 1:
                self.bytes -= len(self.held.popitem(last=False)[1])

    def find(self, key: tuple[str, str, str]) -> bytes | None:
        with self.lock:
            found = self.held.get(key)
            if found is not None:
                self.held.move_to_end(key)
            return found


_FOOTERS = _Footers()


def _in_child() -> None:
    _FOOTERS.lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def far_footer(far: FarFile) -> bytes:
    """Read the footer of a file, without its length and magic; one or two requests, once.

    Raises:
        ValueError: it is no Parquet file.
        AccessError, ShardError, StorageError: its place does not give it.
    """
    file = far.file
    key = (far.place.url, file.name, file.version)
    found = _FOOTERS.find(key)
    if found is not None:
        return found
    if file.size < len(_MAGIC) + _END_BYTES:
        raise ValueError(f"its {file.size} bytes are too few")
    guess = max(_END_BYTES, min(_MOST_GUESSED, file.size // _GUESSED_SHARE))
    (tail,) = far.place.read(file, [(file.size - guess, file.size)])
    length = int.from_bytes(tail[-_END_BYTES:-4], "little")
    if tail[-4:] not in _MAGICS or length + _END_BYTES + len(_MAGIC) > file.size:
        raise ValueError(f"it ends with {tail[-4:]!r}, and a Parquet file with {_MAGIC!r}")
    if length + _END_BYTES > guess:
        start = file.size - _END_BYTES - length
        (more,) = far.place.read(file, [(start, file.size - guess)])
        tail = more + tail
    if tail[-4:] != _MAGIC:
        raise ValueError("its footer is encrypted, and no keys are known")
    footer = tail[-_END_BYTES - length : -_END_BYTES]
    _FOOTERS.keep(key, footer)
    return footer


class RangeFile(io.RawIOBase):
    """A far file as Arrow reads one; what was wanted before comes from memory. For one thread."""

    def __init__(self, far: FarFile) -> None:
        super().__init__()
        self._far = far
        self._at = 0
        self._held: list[tuple[int, bytes]] = []

    def metadata(self) -> pq.FileMetaData:
        """Parse the footer; raises what ``far_footer`` and Arrow do."""
        footer = far_footer(self._far)
        alone = _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC
        return pq.read_metadata(pa.BufferReader(alone))

    def want(self, ranges: Collection[tuple[int, int]]) -> None:
        """Hold some ranges, all read together, in place of those that were held."""
        self._held = []
        ordered = sorted(ranges)
        found = self._far.place.read(self._far.file, ordered)
        self._held = [(start, part) for (start, _), part in zip(ordered, found, strict=True)]

    def drop(self) -> None:
        """Hold nothing."""
        self._held = []

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Say where it stands."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go somewhere."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._far.file.size}
        self._at = max(0, base[whence] + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """Read on, by a request where nothing held has it all."""
        last = self._far.file.size
        stop = last if size is None or size < 0 else min(last, self._at + size)
        start, self._at = self._at, max(stop, self._at)
        if start >= stop:
            return b""
        for begin, part in self._held:
            if begin <= start and stop <= begin + len(part):
                return part[start - begin : stop - begin]
        return self._far.place.read(self._far.file, [(start, stop)])[0]


def chunk_ranges(
    metadata: pq.FileMetaData, group: int, names: Collection[str] | None
) -> list[tuple[int, int]]:
    """Say where the chunks of some columns of a row group lie, as [start, stop) in bytes.

    Args:
        metadata: of the file.
        group: its row group.
        names: columns, or leaves of them; None: all.
    """
    about = metadata.row_group(group)
    found = []
    for number in range(about.num_columns):
        chunk = about.column(number)
        path = chunk.path_in_schema
        if names is not None and not any(path == n or path.startswith(f"{n}.") for n in names):
            continue
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
            start = chunk.dictionary_page_offset
        found.append((start, start + chunk.total_compressed_size))
    return found
