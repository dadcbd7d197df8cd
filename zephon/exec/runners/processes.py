"""Tasks run in worker processes: fresh interpreters, each asked by a thread that only waits.

A worker costs the start of an interpreter, half a second or more, and a copy of what the factory
carries. What tasks give comes back through memory that both sides map. Use it where functions of
the user hold the interpreter; where they do not, threads need none of this.

A task whose worker dies is run again in a new one. Tasks must give the same each time.

The file is long because one class tells all that a pool does when workers die or are closed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from zephon.errors import ExecutionError, ZephonError, told
from zephon.exec.runners.crossing import SentWarning
from zephon.exec.runners.finishing import finish
from zephon.exec.runners.runner import Handle, Runner
from zephon.exec.runners.threads import ThreadPool, ThreadsRunner
from zephon.exec.runners.transport import Kind, Parcel, pack
from zephon.exec.runners.worker import Setup
from zephon.exec.runners.worker_process import (
    UnreadableError,
    WorkerDiedError,
    WorkerProcess,
    made_again,
)

T = TypeVar("T")

_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()
_pools_lock = threading.Lock()


class WorkerPool:
    """Worker processes of one run; they start with the first tasks and stay until ``close``.

    Args:
        factory: makes, in a worker, the function that answers tasks; cloudpickle must take it.
        workers: processes at most.
        max_retries: how often a task is run again whose worker died.
        finishes: what answers tasks has a method ``close``, which workers are to call at the end.
    """

    def __init__(
        self,
        factory: Callable[[], Callable[[Any], object]],
        workers: int,
        max_retries: int,
        *,
        finishes: bool = False,
    ) -> None:
        self._factory = factory
        self.workers = workers
        self._max_retries = max_retries
        self._finishes = finishes
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._first: list[tuple[Kind, Parcel]] = []
        self._free: list[WorkerProcess | None] = [None] * workers  # None: one yet to be started
        self._alive: set[WorkerProcess] = set()
        self._warned: set[SentWarning] = set()
        self._closed = False
        self._process = os.getpid()
        with _pools_lock:
            _pools.add(self)

    def prepare(self) -> None:
        """Pickle what workers are told first; the first task does it otherwise.

        Raises:
            ExecutionError: the factory cannot be pickled.
        """
        with self._changed:
            if self._first or self._closed:
                return
            try:
                factory = pack(self._factory)
            except Exception as exc:  # what is in it is the user's, and so is what that raises
                raise ExecutionError(
                    "options: runner='process' needs functions, operators and rows in memory that "
                    f"cloudpickle takes, got {told(exc)}; keep such objects out of "
                    "them, or use runner='threads'"
                ) from exc
            self._first = [(Kind.SETUP, pack(Setup.of_this_process())), (Kind.FACTORY, factory)]

    def ask(self, task: object, place: Callable[[], str]) -> Any:
        """Let a worker answer a task; wait for it.

        Args:
            task: what the function in the worker gets.
            place: says what the task is about, for an error.

        Raises:
            ExecutionError: its workers died, more often than may be; no worker can be built; or
                what one answered cannot be made again here.
            CancelledError: the pool was closed.
            BaseException: what the task raised.
        """
        self.prepare()
        deaths = 0
        with pack(task) as parcel:
            while True:
                try:
                    return self._asked(parcel)
                except UnreadableError as exc:
                    raise ExecutionError(
                        "options: runner='process' needs rows and warnings that this process can "
                        f"make again of what a worker sends, on {place()} got {exc}; keep objects "
                        "out of rows whose classes take more to make, or use runner='threads'"
                    ) from exc.__cause__
                except WorkerDiedError as exc:
                    if self._closed:
                        raise CancelledError from None
                    deaths += 1
                    if deaths > self._max_retries:
                        raise _gave_up(str(exc), deaths, place()) from None

    def process_ids(self) -> list[int]:
        """Give the ids of the workers that were started and not ended."""
        if os.getpid() != self._process:
            return []
        with self._changed:
            return sorted(worker.process_id for worker in self._alive)

    def close(self) -> None:
        """End all workers; return when they are gone. Safe to call twice.

        What they do is cut off; where they are to finish, they get some seconds for both.
        """
        if os.getpid() != self._process:
            return  # a fork: the workers are the parent's
        with self._changed:
            self._closed = True
            alive, self._alive = self._alive, set()
            first, self._first = self._first, []
            idle = {worker for worker in self._free if worker is not None}
            self._free.clear()
            self._changed.notify_all()
        try:
            if self._finishes and alive:
                self._failure = finish([*idle, *(alive - idle)], self._warn)
        finally:
            for worker in alive:
                worker.hang_up()
            for worker in alive:
                worker.end()
            for _, parcel in first:
                parcel.close()

    def raise_failure(self) -> None:
        """Raise what a worker raised when it finished, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _asked(self, parcel: Parcel) -> Any:
        worker, kept = self._taken(), False
        try:
            kind, body = worker.ask(parcel, self._warn)
            kept = True
        finally:  # an interrupt too: a worker whose answer nobody took cannot be asked again
            self._give_back(worker, kept=kept)
        if kind == Kind.DONE:
            return made_again(body)
        error = made_again(body).error()
        if kind == Kind.UNBUILT and not isinstance(error, ZephonError):
            raise ExecutionError(
                "options: runner='process' needs workers that can build their steps, and building "
                f"raised {told(error)}; keep what steps use in modules that a "
                "fresh interpreter can import, or in the main program"
            ) from error
        raise error

    def _taken(self) -> WorkerProcess:
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise CancelledError
            worker = self._free.pop()
            first = self._first
        if worker is not None:
            return worker
        try:
            worker = WorkerProcess(first)
        except BaseException:
            with self._changed:
                self._free.insert(0, None)
                self._changed.notify()
            raise
        with self._changed:
            closed = self._closed
            if not closed:
                self._alive.add(worker)
        if closed:
            worker.end()
            raise CancelledError
        return worker

    def _give_back(self, worker: WorkerProcess, *, kept: bool) -> None:
        if not kept:
            worker.end()
        with self._changed:
            if self._closed:
                return
            if kept:
                self._free.append(worker)  # the last one used is the first one used again
            else:
                self._alive.discard(worker)
                self._free.insert(0, None)
            self._changed.notify()

    def _warn(self, warning: SentWarning) -> None:
        with self._changed:
            if warning in self._warned:
                return
            self._warned.add(warning)
        warning.issue()


def worker_process_ids() -> list[int]:
    """Give the ids of all workers that this process started and did not end."""
    with _pools_lock:
        pools = list(_pools)
    return sorted(number for pool in pools for number in pool.process_ids())


class ProcessesRunner(Runner):
    """Runs what waits for a pool of workers: as many tasks at once as it has."""

    lookahead = True

    def __init__(self, pool: WorkerPool) -> None:
        pool.prepare()
        self.workers = pool.workers
        self._pool = pool
        self._waiters = ThreadsRunner(pool.workers, ThreadPool(pool.workers))

    def submit(self, task: Callable[[], T]) -> Handle[T]:
        """Queue a task; it starts as soon as a thread is free, and asks the pool."""
        return self._waiters.submit(task)

    def close(self) -> None:
        """End the workers, and with them what waits for one."""
        self._pool.close()
        self._waiters.close()


def _gave_up(died: str, deaths: int, place: str) -> ExecutionError:
    times = "once" if deaths == 1 else f"{deaths} times in a row"
    return ExecutionError(
        f"options: runner='process' needs workers that live until a task is done, and one {died} "
        f"on {place}, {times}; look there for what ends the process (exit, native code, memory), "
        "or raise max_worker_retries"
    )
