"""Messages between a process and its workers: pickles whose large buffers both sides map.

A message has one body: the pickle, and behind it, out of band, the memory of arrays and tables.
A large body lies in an anonymous file whose descriptor crosses the socket; who receives it maps it
and has the arrays without copying them. Nothing has a name, so nothing stays behind when either
side is killed. A body below 256 KiB goes through the socket itself, and so does an array below
4 KiB inside the pickle, so that nothing small keeps a large body mapped.

A map keeps its descriptor open: beyond 256 of them at a time a body is copied out of its file.
"""

from __future__ import annotations

import contextlib
import functools
import io
import mmap
import os
import pickle
import socket
import struct
import tempfile
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from zephon.io.formats.arrow_rows import TableRows
from zephon.io.payload import RowSource

IN_FILE = 256 << 10
"""Bytes from which on a body lies in a file."""

MOST_MAPS = 256

_PROTOCOL = 5
_OUT_OF_BAND = 4096
_ALIGNED = 64
_MOST_PIECES = 512  # that one system call writes; POSIX promises 16, Linux and macOS have 1,024
_HEAD = struct.Struct("<BBQ")  # the kind, whether the body lies in a file, bytes of the body
_BODY = struct.Struct("<QQ")  # bytes of the pickle, how many buffers follow

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
    """Make a body of a value; functions and classes of the main program go by what they hold.

    Rows that are Python objects are pickled by themselves, so that what is left of a few of them
    does not keep the whole body; tables of rows are not, for they are copied out of it.

    Raises:
        Exception: something in the value cannot be pickled.
    """
    views: list[memoryview] = []
    stream = io.BytesIO()

    def keep_in(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < _OUT_OF_BAND:
            return True
        views.append(view)
        return False

    _pickler()(stream, protocol=_PROTOCOL, buffer_callback=keep_in).dump(value)
    text = stream.getbuffer()
    table = np.array([(view.nbytes, view.readonly) for view in views], np.int64).tobytes()
    pieces = [_BODY.pack(text.nbytes, len(views)), table, text]
    size = sum(len(piece) for piece in pieces)
    for view in views:
        gap = -size % _ALIGNED
        pieces += [bytes(gap), view]
        size += gap + view.nbytes
    return Parcel(pieces, size)


def pack_alone(value: object) -> bytes:
    """Pickle a value and all of its memory; ``pickle.loads`` makes it again.

    Raises:
        Exception: something in the value cannot be pickled.
    """
    from cloudpickle import dumps  # late: only runs with worker processes need it

    return dumps(value, _PROTOCOL)


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


def unpack(body: memoryview) -> Any:
    """Make the value of a body; its arrays share the body's memory.

    Arrays may be written exactly where they could be before, and no other process sees it.

    Raises:
        Exception: something in it cannot be made here, such as a class of a missing module.
    """
    length, count = _BODY.unpack_from(body)
    table = np.frombuffer(body, np.int64, 2 * count, _BODY.size).reshape(count, 2).tolist()
    at = _BODY.size + 16 * count + length
    text, views = body[at - length : at], []
    for size, read_only in table:
        at += -at % _ALIGNED
        view = body[at : at + size]
        views.append(view.toreadonly() if read_only else view)
        at += size
    return pickle.loads(text, buffers=views)


@functools.cache
def _pickler() -> type[pickle.Pickler]:
    from cloudpickle import Pickler  # late: only runs with worker processes need it

    class Crossing(Pickler):
        """Pickles rows that are Python objects by themselves, and the file that code stands in."""

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, RowSource) and not isinstance(obj, TableRows):
                return pickle.loads, (pack_alone(obj),)
            if isinstance(obj, types.CodeType):
                make, parts = Pickler.dispatch_table[types.CodeType](obj)[:2]
                return _placed, (make, parts, obj.co_filename)
            return super().reducer_override(obj)

    return Crossing


def _placed(make: Callable[..., Any], parts: Sequence[Any], file: str) -> types.CodeType:
    """Make code that says in tracebacks where it stands, which cloudpickle leaves out."""
    return make(*parts).replace(co_filename=file)


def _written(pieces: Sequence[Any]) -> io.FileIO:
    """Put pieces end to end into a file without a name."""
    if hasattr(os, "memfd_create"):
        file = io.FileIO(os.memfd_create("zephon", os.MFD_CLOEXEC), "wb")
    else:
        with tempfile.TemporaryFile(buffering=0) as found:
            file = io.FileIO(os.dup(found.fileno()), "wb")
    try:
        for at in range(0, len(pieces), _MOST_PIECES):
            some = pieces[at : at + _MOST_PIECES]
            left = [memoryview(piece).cast("B") for piece in some if len(piece)]
            while left:
                done = os.writev(file.fileno(), left)
                while left and done >= left[0].nbytes:
                    done -= left.pop(0).nbytes
                if left:
                    left[0] = left[0][done:]
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
