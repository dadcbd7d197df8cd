"""Tasks run on one pool of threads that all pipelines of the process share.

The pool starts with the first runner and ends with the last one. A runner keeps at most
``workers`` tasks in the pool, so that one pipeline cannot crowd out another.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from zephon.exec.runners.runner import Handle, Runner

T = TypeVar("T")
MOST_THREADS = 16
THREAD_NAME = "zephon-worker"


def usable_cores() -> int:
    """Count the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadPool:
    """Threads, and how many runners use them; they start with the first and end with the last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._users = 0

    def enter(self) -> ThreadPoolExecutor:
        """Begin to use the threads."""
        with self._lock:
            self._users += 1
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    max_workers=self._size,
                    thread_name_prefix=THREAD_NAME,
                )
            return self._pool

    def leave(self) -> None:
        """End it; with the last user the threads end."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            pool, self._pool = self._pool, None
        if pool is not None:
            wait = not _on_worker() and not sys.is_finalizing()
            pool.shutdown(wait=wait, cancel_futures=True)

    def forget(self) -> None:
        """Start anew in a forked child: the parent's threads are not there."""
        self._lock = threading.Lock()
        self._pool = None
        self._users = 0


def _on_worker() -> bool:
    # A pipeline may be collected on one of the pool's own threads, which cannot wait for itself.
    return threading.current_thread().name.startswith(THREAD_NAME)


_POOL = ThreadPool(max(2, min(usable_cores(), MOST_THREADS)))
os.register_at_fork(after_in_child=_POOL.forget)


class ThreadsRunner(Runner):
    """At most ``workers`` tasks at once, on the pool of the process or on one of their own."""

    lookahead = True

    def __init__(self, workers: int, threads: ThreadPool = _POOL) -> None:
        self.workers = workers
        self._lock = threading.Condition()
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = threads.enter()
        self._waiting: deque[tuple[Future, Callable[[], object]]] = deque()
        self._claimed = 0  # tasks handed to the pool and not finished
        self._running = 0
        self._handed: set[Future] = set()  # what the pool has and has not begun

    def submit(self, task: Callable[[], T]) -> Handle[T]:
        """Queue a task; it starts as soon as a worker is free."""
        future: Future[T] = Future()
        with self._lock:
            if self._pool is None:
                future.cancel()
                return future
            self._waiting.append((future, task))
        self._start_next(finished=0)
        return future

    def close(self) -> None:
        """Cancel what has not started; return when nothing of this runner runs any more."""
        with self._lock:
            pool, self._pool = self._pool, None
            waiting, self._waiting = self._waiting, deque()
            handed, self._handed = self._handed, set()
        for future in (*handed, *(future for future, _ in waiting)):
            future.cancel()
        if pool is None:
            return
        try:
            if not _on_worker() and not sys.is_finalizing():
                with self._lock:
                    self._lock.wait_for(lambda: not self._running)
        finally:
            self._threads.leave()

    def _start_next(self, finished: int) -> None:
        with self._lock:
            self._claimed -= finished
            while self._pool is not None and self._waiting and self._claimed < self.workers:
                future, task = self._waiting.popleft()
                self._claimed += 1
                self._handed.add(future)
                try:
                    self._pool.submit(self._run, future, task)
                except RuntimeError:  # the interpreter is ending: nothing starts any more
                    self._claimed -= 1
                    future.cancel()

    def _run(self, future: Future, task: Callable[[], object]) -> None:
        # Counted here and not where it is submitted: Ctrl-C may come between the two, and
        # ``close`` must wait for what runs, no more and no less.
        with self._lock:
            self._handed.discard(future)
            if self._pool is None:
                future.cancel()
                return
            self._running += 1
        try:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(task())
                except BaseException as exc:  # the waiter raises it
                    future.set_exception(exc)
        finally:
            with self._lock:
                self._running -= 1
                self._lock.notify_all()
            self._start_next(finished=1)
