"""A fresh interpreter at the other end of a socket: how it is started, begins, and is ended.

Nothing of its parent's state is in it but the path that modules are found on, and what it is sent.
The main program is not run again in it, so no script needs to guard against that.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from types import FrameType

from zephon.errors import ExecutionError

_GRACE_SECONDS = 1.0

_ASIDE = {signal.SIGINT, signal.SIGTERM}
"""Signals that are the parent's alone, where Ctrl-C or a launcher sends them to all of a job.

It may save a checkpoint before it ends, and ends us.
"""

# The parent's path, since a script's own folder is on it, and the current folder need not be.
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {} import main; main()"


def start(
    module: str, theirs: socket.socket, environment: Mapping[str, str], who: str, instead: str
) -> subprocess.Popen[bytes]:
    """Start an interpreter that has one end of a socket pair.

    Args:
        module: whose ``main`` it runs, which calls ``begin``.
        theirs: the end, which the caller closes.
        environment: variables that are others than here.
        who, instead: the option that asked for it, and what to do without it, for a message.

    Raises:
        ExecutionError: there is no interpreter to start.
    """
    if not sys.executable:
        raise ExecutionError(
            f"options: {who} starts sys.executable, which this interpreter does not have; set it, "
            f"or {instead}"
        )
    path = json.dumps([each for each in sys.path if isinstance(each, str)])
    optimized = ["-O"] * sys.flags.optimize
    # Of one seed: a function that goes through a set must give the same rows in each of them.
    variables = {"PYTHONHASHSEED": "0", **os.environ, **environment}
    # Blocked until ``begin`` ignores them: else Ctrl-C would print a traceback of a starting one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASIDE)
    try:
        return subprocess.Popen(
            [sys.executable, *optimized, "-P", "-c", _PROGRAM.format(module),
             str(theirs.fileno()), str(os.getpid()), path],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=variables,
        )  # fmt: skip
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin() -> tuple[socket.socket, int]:
    """Take up, in the interpreter that was started, its end of the socket pair.

    Returns:
        the socket, and the parent's process id.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _pass)  # of ours alone: what is ignored would be in programs that
    os.register_at_fork(after_in_child=_end_by_term)  # functions of the user start, and may end so
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASIDE)
    way, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    way.set_inheritable(False)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # None where the parent has closed it
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return way, parent


def _pass(number: int, frame: FrameType | None) -> None:
    """Do nothing about a signal."""


def _end_by_term() -> None:
    """Let a forked process be ended as any other is."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def ended(process: subprocess.Popen[bytes]) -> str:
    """Wait until an interpreter is gone to which nobody holds the socket; say how it ended."""
    try:
        code = process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:  # code that holds the interpreter, and never lets go
        process.kill()
        code = process.wait()
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
