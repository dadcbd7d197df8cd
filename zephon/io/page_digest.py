"""A digest that costs as much as reading: it finds damage, and is no proof against an adversary."""

from __future__ import annotations

import hashlib
from io import RawIOBase

import numpy as np

_PAGE_BYTES = 4096
_READ_BYTES = 1 << 20


def page_digest(file: RawIOBase, length: int) -> bytes:
    """Hash the sums of pages, whose order counts, and the rest as it is; reads up to there.

    Args:
        file: open, where its first byte is read next.
        length: of what is hashed.

    Returns:
        16 bytes; others than for the same bytes where the file ends before.

    Raises:
        OSError: the file cannot be read.
    """
    found = hashlib.blake2b(digest_size=16)
    memory = bytearray(min(_READ_BYTES, max(length, 0)))
    left = length
    while left > 0:
        count = _filled(file, memoryview(memory)[:left])
        if not count:
            break  # it is cut off, and the digest another
        whole = count // _PAGE_BYTES * _PAGE_BYTES
        words = np.frombuffer(memory, np.uint64, whole // 8).reshape(-1, _PAGE_BYTES // 8)
        found.update(np.add.reduce(words, axis=1, dtype=np.uint64).tobytes())
        found.update(memoryview(memory)[whole:count])
        left -= count
    return found.digest()


def _filled(file: RawIOBase, memory: memoryview) -> int:
    """Read until memory is full or the file ends: one read may give less, and pages be cut."""
    count = 0
    while count < len(memory):
        more = file.readinto(memory[count:])
        if not more:
            break
        count += more
    return count
