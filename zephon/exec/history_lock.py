"""Guards what one thread changes while another reads, where a handler of signals may read, too.

Such a handler runs on the main thread between any two steps of it, so also while that reads, or
changes. A lock that its own thread cannot take twice would then wait for itself for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from zephon.errors import ExecutionError


class HistoryLock:
    """Entered to change; ``read`` reads. Both wait for other threads, reads nest in reads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changes = 0  # that this thread is in

    def __enter__(self) -> None:
        self._lock.acquire()
        self._changes += 1

    def __exit__(self, *_: object) -> None:
        self._changes -= 1
        self._lock.release()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Read what stands still meanwhile.

        Raises:
            ExecutionError: this thread is in the middle of a change.
        """
        with self._lock:
            if self._changes:
                raise ExecutionError(
                    "checkpoint: a handler of signals asked for the state in the middle of a step "
                    "of this run; let it set a flag, and call checkpoint() after the next batch"
                )
            yield
