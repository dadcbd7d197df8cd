"""The end of worker processes that have something to let go of: they are told, and waited for.

The wait is for a few seconds in all, however many workers there are: whoever leaves a run wants to
go on. A worker that is not done by then is ended as others are, and a warning says so.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Sequence

from zephon.errors import ExecutionError
from zephon.exec.runners.crossing import SentWarning
from zephon.exec.runners.transport import Kind, pack
from zephon.exec.runners.worker_process import UnreadableError, WorkerProcess, made_again

FINISH_SECONDS = 5.0
"""How long workers may take for the tasks that they are at, and to finish after them."""


def finish(
    workers: Sequence[WorkerProcess], warned: Callable[[SentWarning], None]
) -> BaseException | None:
    """Let workers close what answers their tasks; wait for them.

    Args:
        workers: none gets a task any more; those that are at none come first, since they begin at
            once.
        warned: gets each warning that a worker sends meanwhile.

    Returns:
        What the first of them raised, if one did.
    """
    until = time.monotonic() + FINISH_SECONDS
    failure, late, begun = None, 0, []
    with pack(None) as parcel, contextlib.ExitStack() as stack:
        for worker in workers:
            if worker.begin_to_finish(parcel, until):
                stack.callback(worker.let_go)
                begun.append(worker)
            else:
                late += 1
        for worker in begun:
            try:
                answer = worker.finished(until, warned)
                if answer is not None and answer[0] != Kind.DONE and failure is None:
                    failure = made_again(answer[1]).error()
            except TimeoutError:
                late += 1
            except UnreadableError as exc:
                failure = failure or ExecutionError(
                    "options: runner='process' needs errors and warnings of teardown() that this "
                    f"process can make again of what a worker sends, got {exc}; use classes that "
                    "both can import, or runner='threads'"
                )
    if late:
        warnings.warn(
            f"options: runner='process' waits {FINISH_SECONDS:g} s at the end, for the tasks that "
            f"workers are at and for teardown(), and {late} of {len(workers)} took longer; they "
            "were ended without it",
            RuntimeWarning,
            stacklevel=2,
        )
    return failure
