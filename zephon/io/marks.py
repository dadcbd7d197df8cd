"""Content marks: six bytes by which a file is told from others of the same size.

The mark of a Parquet file is a hash of its footer, which holds the place and size of each column
chunk and mostly its least and greatest value. That of any other file is a hash of its first and
last 64 KiB and of 16 blocks of 4 KiB, whose places follow from its size. A file of 192 KiB or less
is hashed whole, whatever it holds. So a mark costs one to eighteen reads: 30 to 170 microseconds
where the file is cached. It misses what changes between the blocks of a larger file; a full hash
does not, and costs a second for one or two gigabytes.

Marks stand in checkpoints and indexes: other ones for the same content need a new ``MARK`` and a
new version of checkpoints.
"""

from __future__ import annotations

import hashlib
import os
from io import FileIO

WHOLE_BYTES = 192 << 10
"""Files up to this size are hashed whole."""

MARK = "zephon_mark_1"
FULL = "sha256"
"""Names of mark and full hash among the ``hashes`` of an index; both in hexadecimal."""

_BYTES = 6  # by chance, one of 2.8e14 changed files is taken for unchanged
_END, _BLOCK, _BLOCKS = 64 << 10, 4 << 10, 16
_PARQUET = b"PAR1"


def mark_of(file: int, size: int) -> int:
    """Mark an open file.

    Args:
        file: its descriptor; where it stands is neither used nor changed.
        size: of the file in bytes.

    Returns:
        the mark, an integer of 48 bits.

    Raises:
        OSError: the file cannot be read.
    """
    found = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=_BYTES)
    if size <= WHOLE_BYTES:
        found.update(os.pread(file, size, 0))
        return _number(found.digest())
    tail = os.pread(file, _END, size - _END)
    if tail.endswith(_PARQUET):
        found.update(_footer(file, size, tail))
        return _number(found.digest())
    found.update(os.pread(file, _END, 0))
    for place in block_places(size):
        found.update(os.pread(file, _BLOCK, place))
    found.update(tail)
    return _number(found.digest())


def mark_of_footer(footer: bytes, size: int) -> int | None:
    """Mark a Parquet file by its footer; None for one that is so small that all of it counts.

    Args:
        footer: without its length and magic.
        size: of the file in bytes.
    """
    if size <= WHOLE_BYTES:
        return None
    found = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=_BYTES)
    found.update(footer)
    return _number(found.digest())


def block_places(size: int) -> list[int]:
    """Say where the blocks begin that are read of a file larger than ``WHOLE_BYTES``; ascending.

    >>> places = block_places(10**9)
    >>> len(places), min(places) >= 64 << 10, max(places) + (4 << 10) <= 10**9 - (64 << 10)
    (16, True, True)
    """
    drawn = hashlib.shake_128(size.to_bytes(8, "little")).digest(8 * _BLOCKS)
    room = size - 2 * _END - _BLOCK + 1
    numbers = (int.from_bytes(drawn[at : at + 8], "little") for at in range(0, len(drawn), 8))
    return sorted(_END + (number * room >> 64) for number in numbers)


def full_hash(file: FileIO) -> str:
    """Return the SHA-256 of an open file from where it stands, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    return hashlib.file_digest(file, "sha256").hexdigest()


def is_hash(text: str, digits: int) -> bool:
    """Tell whether a text is that many hexadecimal digits.

    >>> is_hash("00000000002a", 12), is_hash("2a", 12), is_hash("0x000000002a", 12)
    (True, False, False)
    """
    try:
        return 2 * len(bytes.fromhex(text)) == len(text) == digits
    except ValueError:
        return False


def number_of(text: str) -> int:
    """Give the first 48 bits of a hash that is written in hexadecimal.

    >>> number_of("00000000002a"), number_of("00000000002a" + 52 * "f")
    (42, 42)
    """
    return int(text[: 2 * _BYTES], 16)


def mark_text(mark: int) -> str:
    """Write a mark as an index has it."""
    return f"{mark:0{2 * _BYTES}x}"


def _footer(file: int, size: int, tail: bytes) -> bytes:
    """Give what lies before the last eight bytes, in the length that these tell."""
    length = min(int.from_bytes(tail[-8:-4], "little"), size - 8)
    if length + 8 <= len(tail):
        return tail[-8 - length : -8]
    return os.pread(file, length, size - 8 - length)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big")
