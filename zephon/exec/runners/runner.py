"""What a runner promises: tasks in, handles out, each handle waits for its own task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Handle(Protocol, Generic[T_co]):
    """A task's result, now or later."""

    def result(self) -> T_co:
        """Wait for the task; raise what it raised."""
        ...

    def done(self) -> bool:
        """Whether ``result`` would not wait."""
        ...


class Runner(ABC):
    """Runs tasks; which worker runs which task never shows in the results.

    workers: tasks that run at once. lookahead: whether tasks run before they are waited for.
    """

    workers: int
    lookahead: bool

    @abstractmethod
    def submit(self, task: Callable[[], T]) -> Handle[T]:
        """Queue a task."""

    @abstractmethod
    def close(self) -> None:
        """Drop what has not started and let go of the workers; safe to call twice."""
