"""One worker process, as the process that started it sees it: asked, waited for, ended."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from zephon.errors import told
from zephon.exec.runners.bodies import unpack
from zephon.exec.runners.crossing import SentWarning
from zephon.exec.runners.interpreter import ended, start
from zephon.exec.runners.transport import Kind, Parcel, collect

_LOOK_MILLISECONDS = 1000  # how often to look whether a worker lives, where its end stays open

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS",
               "POLARS_MAX_THREADS")  # fmt: skip


class WorkerDiedError(Exception):
    """A worker ended before it answered; says how."""


class UnreadableError(Exception):
    """What a worker sent cannot be made again here; its cause says why."""


class WorkerProcess:
    """A fresh interpreter that answers one task at a time; one thread at a time may ask.

    Args:
        first: messages that it gets before its first task; the caller's, who keeps them open.
    """

    def __init__(self, first: Sequence[tuple[Kind, Parcel]]) -> None:
        self._first = list(first)
        self._at_task = self._finishing = False
        self._asking = threading.RLock()
        self._way, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = start(
                    "zephon.exec.runners.worker",
                    theirs,
                    {**dict.fromkeys(_ONE_THREAD, "1"), "TOKENIZERS_PARALLELISM": "false"},
                    "runner='process'",
                    "use runner='threads'",
                )
        except BaseException:
            self._way.close()
            raise

    @property
    def process_id(self) -> int:
        """The process's id."""
        return self._process.pid

    def ask(self, task: Parcel, warned: Callable[[SentWarning], None]) -> tuple[Kind, memoryview]:
        """Send a task and wait for what comes of it.

        Args:
            task: the body.
            warned: gets each warning that the worker sends meanwhile.

        Raises:
            WorkerDiedError: the worker is gone.
            UnreadableError: a warning that it sent cannot be made again.
        """
        with self._asking:
            self._at_task = True
            try:
                while self._first:
                    kind, parcel = self._first[0]
                    parcel.post(self._way, kind)
                    del self._first[0]
                task.post(self._way, Kind.TASK)
                return self._answer(warned)
            except (EOFError, ConnectionError) as exc:
                raise WorkerDiedError(self.end()) from exc
            finally:
                self._at_task = False

    def begin_to_finish(self, parcel: Parcel, until: float) -> bool:
        """Tell the worker that no task follows; nobody may ask it until ``let_go``.

        Args:
            parcel: any body.
            until: on the monotonic clock: how long to wait for the task that it is at.

        Returns:
            False: it is still at a task.
        """
        if not self._asking.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        if self._at_task:  # it is this thread's own: something is collected amid the task
            self._asking.release()
            return False
        # One that was never asked has built nothing; one that is gone has nothing to let go of.
        with contextlib.suppress(OSError):
            if not self._first:
                parcel.post(self._way, Kind.FINISH)
                self._finishing = True
        return True

    def finished(
        self, until: float, warned: Callable[[SentWarning], None]
    ) -> tuple[Kind, memoryview] | None:
        """Wait for what the worker says when it has finished; None if it had nothing to do.

        Raises:
            TimeoutError: it says nothing in time.
            UnreadableError: a warning that it sent cannot be made again.
        """
        try:
            return self._answer(warned, until) if self._finishing else None
        except (EOFError, ConnectionError):
            return None

    def let_go(self) -> None:
        """Say that nobody waits for the end any more; the thread that began to wait calls it."""
        self._asking.release()

    def hang_up(self) -> None:
        """Let the worker end, whatever it does; waits for nothing."""
        with contextlib.suppress(OSError):
            self._way.shutdown(socket.SHUT_RDWR)

    def end(self) -> str:
        """Hang up, wait until the process is gone, and say how it ended; safe to call twice."""
        self.hang_up()
        how = ended(self._process)
        with self._asking:  # else a thread might read from whatever opens next
            self._way.close()
        return how

    def _answer(
        self, warned: Callable[[SentWarning], None], until: float | None = None
    ) -> tuple[Kind, memoryview]:
        kind, body = self._message(until)
        while kind == Kind.WARNED:
            warned(made_again(body))
            kind, body = self._message(until)
        return kind, body

    def _message(self, until: float | None) -> tuple[Kind, memoryview]:
        waiting = select.poll()
        waiting.register(self._way, select.POLLIN)
        while not waiting.poll(_look(until)):
            # A process that the worker forked may hold its end open after its death.
            if self._process.poll() is not None and not waiting.poll(0):
                raise EOFError
            if until is not None and time.monotonic() >= until:
                raise TimeoutError
        return collect(self._way)


def made_again(body: memoryview) -> Any:
    """Make what a worker sent.

    Raises:
        UnreadableError: it cannot be made here, as of a class of which this process knows nothing.
    """
    try:
        return unpack(body)
    except Exception as exc:  # what is in it is the user's, and so is what that raises
        raise UnreadableError(" ".join(told(exc).split())) from exc


def _look(until: float | None) -> int:
    """Say for how many milliseconds to wait at most."""
    if until is None:
        return _LOOK_MILLISECONDS
    return min(_LOOK_MILLISECONDS, max(0, int(1000 * (until - time.monotonic())) + 1))
