"""How long a store is asked again: waits that grow, differ between processes, and end.

Only what may pass is tried again. Where the answer says how long to wait, nobody asks earlier, and
processes that were told the same do not come back at the same moment.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from zephon.errors import PlanError, StorageError

T = TypeVar("T")


class PassingFault(Exception):
    """An attempt failed in a way that may pass; its text says how, and holds no secret.

    wait: the seconds that the answer says to wait, if any.
    """

    def __init__(self, told: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(told)


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long something is tried.

    attempts: in all, at least 1.
    seconds: after these no attempt begins.
    stall: seconds in which at least something has to come, or an attempt has failed.
    first_wait, longest_wait: seconds between attempts, at first and at most.
    """

    attempts: int = 12
    seconds: float = 180.0
    stall: float = 60.0
    first_wait: float = 0.25
    longest_wait: float = 15.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise PlanError(f"patience: attempts must be at least 1, got {self.attempts}")
        for name in ("seconds", "stall", "first_wait", "longest_wait"):
            if not getattr(self, name) > 0:
                raise PlanError(f"patience: {name} must be above 0, got {getattr(self, name)}")


def patiently(what: str, patience: Patience, attempt: Callable[[], T]) -> T:
    """Give what an attempt gives, trying again while it raises ``PassingFault``.

    Args:
        what: is read, such as a url, for messages.
        patience: how often and how long.
        attempt: is called without arguments.

    Raises:
        StorageError: every attempt failed, or there is no time for the next.
    """
    begun = time.monotonic()
    number = 0
    while True:
        number += 1
        try:
            return attempt()
        except PassingFault as fault:
            last = fault
        wait = _wait(last, number, patience)
        took = time.monotonic() - begun
        if number == patience.attempts or took + wait > patience.seconds:
            asked = f", which asks to wait {last.wait:.0f} s" if last.wait else ""
            raise StorageError(
                f"{what}: no whole answer after {_times(number)} in {took:.1f} s; the last: "
                f"{last}{asked}; look whether the store is reachable from here, or come back later"
            ) from None
        time.sleep(wait)


def _wait(fault: PassingFault, number: int, patience: Patience) -> float:
    # Not of the seeds: it decides nothing but when a request is made.
    share = secrets.randbelow(1 << 20) / (1 << 20)
    if fault.wait is not None:
        return fault.wait + share * max(patience.first_wait, fault.wait / 4)
    longest = min(patience.longest_wait, patience.first_wait * 2 ** min(number - 1, 32))
    return longest * (1 + share) / 2


def _times(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"
