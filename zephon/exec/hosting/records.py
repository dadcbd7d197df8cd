"""Records of one size between a process and the child that hosts its engine.

What a record is about lies in shared memory (``segments``), so none is ever longer than another:
an interrupt between two reads can lose a record, and never the place where the next one begins.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

_RECORD = struct.Struct("<BxxxIIIQQQ")
_LOOK_MILLISECONDS = (
    1000  # how often to look whether the other side lives, where its end stays open
)


class Kind(IntEnum):
    """What a record says.

    To the child: START, make batches; TAKEN, so many batches in all were handed out; FREE, nothing
    refers to a segment; RETIRED, likewise, and it must not be written again; STATE, ACCOUNT and
    RECIPE, questions; LEAVE, no further batch is asked for.
    To the parent: OPENED, the engine stands; BATCHES; END, no batch follows; RAISED, nor here;
    WARNED; ANSWER and REFUSED, to a question; LEFT, the engine is closed; DROPPED, a segment that
    is gone.
    """

    START = 0
    TAKEN = 1
    FREE = 2
    RETIRED = 3
    STATE = 4
    ACCOUNT = 5
    RECIPE = 6
    LEAVE = 7
    OPENED = 8
    BATCHES = 9
    END = 10
    RAISED = 11
    WARNED = 12
    ANSWER = 13
    REFUSED = 14
    LEFT = 15
    DROPPED = 16


class Record(NamedTuple):
    """One record.

    number: of TAKEN, how many; of BATCHES, END and RAISED, how many batches came before; of a
    question and its answer, which. many: of BATCHES, how many; of LEAVE, whether the caller came
    to the end. behind: of BATCHES, those that are made and wait for room; of LEAVE, whether all
    ranks came to the end. segment: where the body lies, 0 for none; or which one FREE, RETIRED and
    DROPPED name. size: bytes of the body. sure: of BATCHES, steps that all lanes hold, where ranks
    ask each other for them.
    """

    kind: Kind
    many: int = 0
    behind: int = 0
    segment: int = 0
    size: int = 0
    number: int = 0
    sure: int = 0

    def packed(self) -> bytes:
        """Write it down."""
        return _RECORD.pack(*self)


@dataclass(frozen=True, slots=True)
class Room:
    """How far the child may be ahead: batches, and bytes of them, that were not handed out."""

    batches: int
    bytes: int


class Receiver:
    """Takes records off a socket.

    Args:
        way: the socket.
        is_there: says whether the other side lives, where a process that it forked may hold its
            end open after its death.
    """

    def __init__(self, way: socket.socket, is_there: Callable[[], bool]) -> None:
        self._way = way
        self._is_there = is_there

    def ready(self, milliseconds: int = 0) -> bool:
        """Wait until a record is there, or the other side gone; say whether that is so."""
        # Of its own: a handler of signals may wait while its thread does.
        waiting = select.poll()
        waiting.register(self._way, select.POLLIN)
        return bool(waiting.poll(milliseconds))

    def next(self, milliseconds: int | None = None) -> tuple[Record, int | None]:
        """Wait for a record; return it and the descriptor that came with it, the caller's to close.

        Args:
            milliseconds: how long to wait; None: for ever.

        Raises:
            EOFError: the other side is gone.
            OSError: likewise.
            TimeoutError: nothing came.
        """
        while (found := self._received(milliseconds)) is None:
            pass
        return found

    def _received(self, milliseconds: int | None) -> tuple[Record, int | None] | None:
        """Do what ``next`` does; None: a handler of signals took what had come, in between."""
        left = milliseconds
        while not self.ready(_LOOK_MILLISECONDS if left is None else min(left, 1000)):
            if not self._is_there() and not self.ready():
                raise EOFError("the other side is gone")
            if left is not None:
                left -= 1000
                if left <= 0:
                    raise TimeoutError
        try:
            found, descriptors = _with_descriptors(self._way)
        except BlockingIOError:
            if milliseconds is not None:  # it may be what the caller waits for
                raise TimeoutError from None
            return None
        while len(found) < _RECORD.size:
            more = self._way.recv(_RECORD.size - len(found))
            if not more:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise EOFError("the other side is gone")
            found += more
        kind, *fields = _RECORD.unpack(found)
        return Record(Kind(kind), *fields), descriptors[0] if descriptors else None


def _with_descriptors(way: socket.socket) -> tuple[bytes, list[int]]:
    """Receive a record, and descriptors, as ``socket.recv_fds`` does, which forgets flags in 3.11.

    Raises:
        BlockingIOError: nothing has come.
    """
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0) | socket.MSG_DONTWAIT
    descriptors = array("i")
    found, beside, _, _ = way.recvmsg(_RECORD.size, socket.CMSG_LEN(descriptors.itemsize), flags)
    for level, kind, value in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(value[: len(value) - len(value) % descriptors.itemsize])
    return found, descriptors.tolist()
