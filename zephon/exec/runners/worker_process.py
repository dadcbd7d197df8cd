"""One worker process, as the process that started it sees it: asked, waited for, ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from zephon.errors import ExecutionError
from zephon.exec.runners.crossing import SentWarning
from zephon.exec.runners.transport import Kind, Parcel, collect, unpack

_LOOK_MILLISECONDS = 1000  # how often to look whether a worker lives, where its end stays open
_GRACE_SECONDS = 1.0

# The parent's path, since a script's own folder is on it, and the current folder need not be.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from zephon.exec.runners.worker import main; main()"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS",
               "POLARS_MAX_THREADS")  # fmt: skip


class WorkerDiedError(Exception):
    """A worker ended before it answered; says how."""


class WorkerProcess:
    """A fresh interpreter that answers one task at a time; one thread at a time may ask.

    Args:
        first: messages that it gets before its first task; the caller's, who keeps them open.
    """

    def __init__(self, first: Sequence[tuple[Kind, Parcel]]) -> None:
        if not sys.executable:
            raise ExecutionError(
                "options: runner='process' starts sys.executable, which this interpreter does not "
                "have; set it, or use runner='threads'"
            )
        self._first = list(first)
        self._asking = threading.RLock()
        self._way, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _started(theirs.fileno())
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
        """
        with self._asking:
            try:
                while self._first:
                    kind, parcel = self._first[0]
                    parcel.post(self._way, kind)
                    del self._first[0]
                task.post(self._way, Kind.TASK)
                kind, body = self._answer()
                while kind == Kind.WARNED:
                    warned(unpack(body))
                    kind, body = self._answer()
            except (EOFError, ConnectionError) as exc:
                raise WorkerDiedError(self.end()) from exc
            return kind, body

    def hang_up(self) -> None:
        """Let the worker end, whatever it does; waits for nothing."""
        with contextlib.suppress(OSError):
            self._way.shutdown(socket.SHUT_RDWR)

    def end(self) -> str:
        """Hang up, wait until the process is gone, and say how it ended; safe to call twice."""
        self.hang_up()
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # code that holds the interpreter, and never lets go
            self._process.kill()
            code = self._process.wait()
        with self._asking:  # else a thread might read from whatever opens next
            self._way.close()
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    def _answer(self) -> tuple[Kind, memoryview]:
        waiting = select.poll()
        waiting.register(self._way, select.POLLIN)
        while not waiting.poll(_LOOK_MILLISECONDS):
            # A process that the worker forked may hold its end open after its death.
            if self._process.poll() is not None and not waiting.poll(0):
                raise EOFError
        return collect(self._way)


def _started(descriptor: int) -> subprocess.Popen[bytes]:
    """Start a worker that has this end of a socket pair."""
    path = json.dumps([each for each in sys.path if isinstance(each, str)])
    optimized = ["-O"] * sys.flags.optimize
    # Of one seed: a function that goes through a set must give the same rows in each of them.
    environment = {"PYTHONHASHSEED": "0", **os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    environment["TOKENIZERS_PARALLELISM"] = "false"
    # Blocked until the worker ignores it: else Ctrl-C would print a traceback of a starting one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, *optimized, "-P", "-c", _PROGRAM, str(descriptor), str(os.getpid()),
             path],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
            env=environment,
        )  # fmt: skip
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
