"""Records of one size between a process and the child that hosts its engine.

What a record is about lies in shared memory (``segments``), so none is ever longer than another:
an interrupt between two reads can lose a record, and never the place where the next one begins.
"""

from __future__ import annotations

import os
import select
import socket
import struct
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
        self._waiting = select.poll()
        self._waiting.register(way, select.POLLIN)

    def ready(self) -> bool:
        """Say whether a record is there, or the other side gone."""
        return bool(self._waiting.poll(0))

    def next(self, milliseconds: int | None = None) -> tuple[Record, int | None]:
        """Wait for a record; return it and the descriptor that came with it, the caller's to close.

        Args:
            milliseconds: how long to wait; None: for ever.

        Raises:
            EOFError: the other side is gone.
            OSError: likewise.
            TimeoutError: nothing came.
        """
        left = milliseconds
        while not self._waiting.poll(_LOOK_MILLISECONDS if left is None else min(left, 1000)):
            if not self._is_there() and not self.ready():
                raise EOFError("the other side is gone")
            if left is not None:
                left -= 1000
                if left <= 0:
                    raise TimeoutError
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        found, descriptors, _, _ = socket.recv_fds(self._way, _RECORD.size, 1, flags)
        while len(found) < _RECORD.size:
            more = self._way.recv(_RECORD.size - len(found))
            if not more:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise EOFError("the other side is gone")
            found += more
        kind, *fields = _RECORD.unpack(found)
        return Record(Kind(kind), *fields), descriptors[0] if descriptors else None
