"""Each task runs on the caller's thread when its result is asked for: the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from zephon.exec.runners.runner import Handle, Runner

T = TypeVar("T")


class _Lazy(Generic[T]):
    """Runs its task once, at the first ``result``."""

    def __init__(self, task: Callable[[], T]) -> None:
        self._task: Callable[[], T] | None = task
        self._result: list[T] = []

    def result(self) -> T:
        if self._task is not None:
            self._result.append(self._task())
            self._task = None
        return self._result[0]

    def done(self) -> bool:
        return True


class InlineRunner(Runner):
    """No threads at all."""

    workers = 1
    lookahead = False

    def submit(self, task: Callable[[], T]) -> Handle[T]:
        """Keep the task for later."""
        return _Lazy(task)

    def close(self) -> None:
        """Nothing to let go."""
