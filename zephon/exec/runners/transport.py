"""Messages between a process and its workers: bodies (see ``bodies``) that both sides map.

A large body lies in an anonymous file whose descriptor crosses the socket; who receives it maps it
and has the arrays without copying them. Nothing has a name, so nothing stays behind when either
side is killed. A body below 256 KiB goes through the socket itself.

A map keeps its descriptor open: beyond 256 of them at a time a body is copied out of its file.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import socket
import struct
import threading
import weakref
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from zephon.exec.runners.bodies import laid_out
from zephon.exec.runners.nameless import nameless, write

IN_FILE = 256 << 10
"""Bytes from which on a body lies in a file."""

MOST_MAPS = 256

_HEAD = struct.Struct("<BBQ")  # the kind, whether the body lies in a file, bytes of the body

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_maps_lock = threading.Lock()


class Kind(IntEnum):
    """What a message is.

    To a worker: SETUP, what it is told first; FACTORY, what makes what answers tasks; TASK;
    FINISH, which has no value, after the last one.
    To the parent: DONE, with what the task gave; RAISED, with what it raised, or what closing
    raised; UNBUILT, with what the factory raised; WARNED, with a warning.
    """

    SETUP = 0
    FACTORY = 1
    TASK = 2
    DONE = 3
    RAISED = 4
    UNBUILT = 5
    WARNED = 6
    FINISH = 7


class Parcel:
    """A body that is ready to be sent, any number of times; shares no memory with its value."""

    __slots__ = ("_bytes", "_file", "size")

    def __init__(self, pieces: Sequence[Any], size: int) -> None:
        self.size = size
        self._bytes = b"" if size >= IN_FILE else b"".join(pieces)
        self._file = _written(pieces) if size >= IN_FILE else None

    def post(self, way: socket.socket, kind: Kind) -> None:
        """Send the body.

        Raises:
            OSError: the other side is gone.
        """
        if self._file is None:
            way.sendall(_HEAD.pack(kind, False, self.size) + self._bytes)
        else:
            socket.send_fds(way, [_HEAD.pack(kind, True, self.size)], [self._file.fileno()])

    def close(self) -> None:
        """Let go of the body; those who received it keep it."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Parcel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pack(value: object) -> Parcel:
    """Make a body of a value; see ``bodies.laid_out``.

    Raises:
        Exception: something in the value cannot be pickled.
    """
    return Parcel(*laid_out(value))


def collect(way: socket.socket) -> tuple[Kind, memoryview]:
    """Wait for a message; return its kind and its body, which may be mapped.

    Raises:
        EOFError: the other side is gone.
        OSError: likewise, or this process may open no further file.
    """
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    head, descriptors, _, _ = socket.recv_fds(way, _HEAD.size, 1, flags)
    try:
        head += _received(way, _HEAD.size - len(head))
        kind, in_file, size = _HEAD.unpack(head)
        if not in_file:
            return Kind(kind), memoryview(_received(way, size))
        if not descriptors:
            raise OSError("a message came without its file: too many files are open")
        return Kind(kind), memoryview(_opened(descriptors[0], size))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _written(pieces: Sequence[Any]) -> io.FileIO:
    """Put pieces end to end into a file without a name."""
    file = io.FileIO(nameless(), "wb")
    try:
        write(file.fileno(), pieces)
    except BaseException:
        file.close()
        raise
    return file


def _opened(descriptor: int, size: int) -> mmap.mmap | bytearray:
    """Map a file for this process alone; beyond some maps, copy it."""
    with _maps_lock, contextlib.suppress(OSError):  # no descriptor is left for the map
        if len(_maps) < MOST_MAPS:
            found = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
            _maps.add(found)
            return found
    copied, done = bytearray(size), 0
    while done < size:
        done += _some(os.preadv(descriptor, [memoryview(copied)[done:]], done))
    return copied


def _received(way: socket.socket, size: int) -> bytearray:
    received, done = bytearray(size), 0
    while done < size:
        done += _some(way.recv_into(memoryview(received)[done:]))
    return received


def _some(count: int) -> int:
    if not count:
        raise EOFError("the other side is gone")
    return count
