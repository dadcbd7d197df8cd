"""A worker process: answers one task after another until the process that started it is gone.

It is a fresh interpreter, started by ``worker_process``: nothing of the parent's state is in it
but what the first message brings. Tasks run on its main thread. Another thread listens, and ends
the process as soon as the parent hangs up or dies, whatever a task does meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

import pyarrow as pa

from zephon.exec.runners.bodies import unpack
from zephon.exec.runners.crossing import SentError, SentWarning, filters_to_send, take_warnings
from zephon.exec.runners.interpreter import begin
from zephon.exec.runners.transport import Kind, Parcel, collect, pack

_LOOK_SECONDS = 2.0  # how often to look whether the parent lives, where its end stays open

_Inbox = SimpleQueue[tuple[Kind, memoryview]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is told first: the parent's ``sys.argv``, and its filters of warnings.

    The second message is the factory: it makes, from nothing, what answers tasks, which is a
    function of what a task brings; what that returns is sent, as it is where it is a parcel. If it
    has a method ``close``, that is called where the worker is told to finish.
    """

    arguments: tuple[str, ...]
    filters: tuple[tuple[Any, ...], ...]

    @classmethod
    def of_this_process(cls) -> Setup:
        """Describe this process to its workers."""
        return cls(tuple(sys.argv), tuple(filters_to_send()))


class _Way:
    """The way back to the parent, for any thread of this process."""

    def __init__(self, way: socket.socket) -> None:
        self._way = way
        self._lock = threading.Lock()

    def post(self, kind: Kind, parcel: Parcel) -> None:
        with self._lock, parcel:
            parcel.post(self._way, kind)

    def warn(self, warning: SentWarning) -> None:
        try:
            parcel = pack(warning)
        except Exception:  # a class that cannot be pickled; the text can
            parcel = pack(warning._replace(category=UserWarning))
        self.post(Kind.WARNED, parcel)


def main() -> None:
    """Serve; the arguments are the descriptor of the socket and the parent's process id."""
    way, parent = begin()
    inbox: _Inbox = SimpleQueue()
    threading.Thread(target=_listen, args=(way, inbox, parent), daemon=True).start()
    pa.set_cpu_count(1)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        _serve(_Way(way), inbox)
    os._exit(0)


def _listen(way: socket.socket, inbox: _Inbox, parent: int) -> None:
    """Pass messages on; end the process when no more can come.

    A process that the parent forked may hold the other end open after the parent's death: so look
    for the parent itself, too.
    """
    code = 1
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(way, selectors.EVENT_READ)
            while (ready := selector.select(_LOOK_SECONDS)) or os.getppid() == parent:
                if ready:
                    inbox.put(collect(way))
        code = 0
    except (EOFError, ConnectionError):
        code = 0
    except BaseException:  # no memory, no file left: without a listener, nobody would end this
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(way: _Way, inbox: _Inbox) -> None:
    failed = Kind.RAISED
    (_, setup), (_, body) = inbox.get(), inbox.get()
    try:
        told: Setup = unpack(setup)
        sys.argv[:] = told.arguments
        answer = _built(body)
        take_warnings(told.filters, way.warn)
    except BaseException as exc:  # told to the parent with each task
        answer, failed = partial(_raise, exc), Kind.UNBUILT
    while True:
        del body
        asked, body = inbox.get()
        if asked == Kind.FINISH:
            kind, parcel = _answered(partial(_closed, answer), body, Kind.RAISED)
        else:
            kind, parcel = _answered(answer, body, failed)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        way.post(kind, parcel)
        del parcel


def _built(factory: memoryview) -> Callable[[Any], object]:
    """Make what answers tasks, in silence: the parent builds the same and says the same."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return unpack(factory)()
    finally:
        logging.disable(before)


def _answered(
    answer: Callable[[Any], object], task: memoryview, failed: Kind
) -> tuple[Kind, Parcel]:
    try:
        value = answer(unpack(task))
        return Kind.DONE, value if isinstance(value, Parcel) else pack(value)
    except BaseException as exc:  # SystemExit too: the parent raises what a task raised
        return failed, pack(SentError.of(exc))


def _closed(answer: object, _: Any) -> None:
    """Let what answers tasks let go of what it built; what could not be built has nothing."""
    close = getattr(answer, "close", None)
    if close is not None:
        close()


def _raise(error: BaseException, _: Any) -> None:
    raise error
