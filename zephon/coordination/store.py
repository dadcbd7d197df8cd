"""The little that a place must offer so that ranks can meet in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from zephon.errors import CoordinationError

T = TypeVar("T")


class Store(Protocol):
    """Values by key, where all ranks see them. A key is words of ``[A-Za-z0-9._-]`` joined by `/`.

    pace: seconds between two looks for what is not there yet, at first and at most.
    passes: the values are gone once the process that leads has ended.
    told: how messages call it, without secrets.
    """

    pace: tuple[float, float]
    passes: bool
    told: str

    def set(self, key: str, value: bytes) -> None:
        """Put a value; whoever looks sees all of it, or what was there before."""
        ...

    def get(self, key: str) -> bytes | None:
        """Give a value; None: there is none."""
        ...

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away; those that are not there do not matter."""
        ...


def awaited(
    store: Store, look: Callable[[], T | None], seconds: float, missing: Callable[[], str]
) -> T:
    """Look into a store, ever less often, until there is what is looked for.

    Args:
        store: what ``look`` looks into.
        look: gives it, or None.
        seconds: how long.
        missing: says what was not there.

    Raises:
        CoordinationError: it did not come.
    """
    pause, longest = store.pace
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None:
            return found
        left = end - time.monotonic()
        if left <= 0:
            raise CoordinationError(
                f"{missing()} within {seconds:g} s in {store.told}; see whether all ranks run "
                "still and make the same calls, or raise aggregate_timeout_s"
            )
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, longest)
