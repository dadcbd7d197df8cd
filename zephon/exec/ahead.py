"""Runs an iterator on a thread of its own, a bounded number of items ahead of the consumer."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
THREAD_NAME = "zephon-pump"


class Ahead(Generic[T]):
    """The consumer's end of a bounded queue that a thread fills from ``items``.

    The thread starts with the first ``next`` and ends with the items, an error, or ``close``.
    An error is raised after the items that came before it.

    Args:
        items: what the thread takes.
        depth: sizes of items in the queue that are enough, >= 1.
        size: says for how many an item counts, >= 1.
    """

    def __init__(
        self, items: Iterator[T], depth: int, size: Callable[[T], int] = lambda _: 1
    ) -> None:
        self._items = items
        self._depth = depth
        self._size = size
        self._held = 0  # sizes of items in the queue
        self._low = depth - 1 - depth // 4  # room for more items than one is worth waking up for
        self._queue: deque[T] = deque()
        self._changed = threading.Condition()
        self._awaited = False  # a thread waits for a change: only then is it worth telling of one
        self._done = False
        self._closed = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._thread is None:
            thread = threading.Thread(target=self._fill, name=THREAD_NAME, daemon=True)
            thread.start()
            self._thread = thread  # only now: one that did not start cannot be joined
        with self._changed:
            while not self._queue and not self._done:
                self._wait()
            if self._queue:
                item = self._queue.popleft()
                self._held -= self._size(item)
                if self._awaited and self._held <= self._low:
                    self._tell()
                return item
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """Tell the thread to stop, without waiting for it."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._held = 0
            self._tell()

    def join(self) -> None:
        """Wait until the thread has ended."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        if not sys.is_finalizing():  # an ending interpreter has frozen the thread already
            thread.join()

    def _fill(self) -> None:
        try:
            for item in self._items:
                with self._changed:
                    while self._held >= self._depth and not self._closed:
                        self._wait()
                    if self._closed:
                        break
                    self._queue.append(item)
                    self._held += self._size(item)
                    if self._awaited:
                        self._tell()
        except BaseException as exc:
            self._error = exc
        finally:
            with self._changed:
                self._done = True
                self._tell()

    def _wait(self) -> None:
        self._awaited = True
        self._changed.wait()

    def _tell(self) -> None:
        self._awaited = False
        self._changed.notify_all()
