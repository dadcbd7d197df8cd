"""Shared memory without a name: one side writes bodies, the other has them while it looks at them.

A segment is an anonymous file that both sides know by its descriptor, so nothing stays behind when
either is killed. The reader maps it once. When the last array over a body is gone the reader says
so, and the segment is written again: in the long run nobody asks the system for memory, and no page
is touched for the first time. What a reader keeps stays as it is.

A map costs a descriptor: of more than 128 bodies that are kept, the others are copied out.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from zephon.exec.runners.nameless import nameless, write

MOST_KEPT = 128
"""Bodies that a reader keeps mapped at a time."""

_LEAST = 1 << 16


class Segments:
    """The side that writes; any thread may.

    Args:
        spare: bytes of segments to hold for the next bodies beside those that are read.
    """

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._lock = threading.Lock()
        self._count = 0
        self._files: dict[int, int] = {}  # the descriptor of each
        self._sizes: dict[int, int] = {}
        self._free: list[int] = []  # those used last come last

    def write(self, pieces: Sequence[Any], size: int) -> tuple[int, int | None]:
        """Write pieces end to end into a segment that nobody reads.

        Returns:
            the segment's number, and its descriptor if the reader does not know it yet.

        Raises:
            OSError: there is no memory, or no descriptor.
        """
        with self._lock:
            fitting = [number for number in self._free if self._sizes[number] >= size]
            number = min(reversed(fitting), key=self._sizes.__getitem__, default=0)
            if number:
                self._free.remove(number)
        if number:
            write(self._files[number], pieces)
            return number, None
        capacity = max(_LEAST, 1 << (size - 1).bit_length())  # what is not written takes no memory
        descriptor = nameless()
        os.ftruncate(descriptor, capacity)
        with self._lock:
            self._count += 1
            number = self._count
            self._files[number], self._sizes[number] = descriptor, capacity
        write(descriptor, pieces)
        return number, descriptor

    def free(self, number: int, *, again: bool = True) -> list[int]:
        """Take back a segment that nobody refers to; return those that were given up.

        Args:
            number: which.
            again: it may be written again; else it is given up.
        """
        with self._lock:
            self._free.append(number)
            gone = [] if again else [number]
            held = sum(self._sizes[each] for each in self._free)
            for each in self._free[:-1]:
                if held <= self._spare:
                    break
                gone.append(each)
                held -= self._sizes[each]
            for each in gone:
                self._free.remove(each)
                os.close(self._files.pop(each))
                del self._sizes[each]
        return gone


class Mapped:
    """The side that reads."""

    def __init__(self) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._read: dict[int, weakref.ref] = {}
        self._released: deque[int] = deque()
        self._final: set[int] = set()
        _all.add(self)

    def body(self, number: int, size: int, descriptor: int | None) -> memoryview:
        """Give the bytes of a body, writable; they stay while anything refers to them.

        Args:
            number: the segment.
            size: bytes of the body.
            descriptor: of the segment where it is new; closed here.

        Raises:
            OSError: a segment came without its descriptor, since too many files are open.
        """
        if descriptor is not None:
            try:
                self._maps[number] = mmap.mmap(descriptor, 0)
            finally:
                os.close(descriptor)
        if number not in self._maps:
            raise OSError("shared memory came without its descriptor: too many files are open")
        region = np.frombuffer(self._maps[number], np.uint8, size)
        if len(self._read) >= MOST_KEPT:
            self._released.append(number)
            return memoryview(bytearray(region.data))
        # Arrays over a part of it have it as their base, and so do views of them.
        released = self._released
        self._read[number] = weakref.ref(region, lambda _: released.append(number))
        return region.data

    def released(self) -> list[tuple[int, bool]]:
        """List segments that nothing refers to any more, once, and whether each may be written."""
        found = []
        while self._released:
            number = self._released.popleft()
            self._read.pop(number, None)
            found.append((number, number not in self._final))
        return found

    def drop(self, number: int) -> None:
        """Forget a segment that the other side gave up."""
        self._maps.pop(number, None)
        self._final.discard(number)

    def keep_for_fork(self) -> None:
        """Have what is read now never written again: a fork goes on reading it."""
        self._final.update(self._read)


_all: weakref.WeakSet[Mapped] = weakref.WeakSet()


def _keep_for_forks() -> None:
    for each in list(_all):
        each.keep_for_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_keep_for_forks)
