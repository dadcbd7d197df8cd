"""Closing several things: all of them, whatever one of them raises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def close_all(closers: Sequence[Callable[[], None]]) -> None:
    """Call every function; raise the first failure afterwards.

    Where an error is under way already it stays the one that is raised, and is told of the failure.
    """
    under_way = sys.exc_info()[1]
    failures: list[Exception] = []
    for close in closers:
        try:
            close()
        except Exception as exc:  # the others are still to be closed
            failures.append(exc)
    if not failures:
        return
    if under_way is None:
        raise failures[0]
    for failure in failures:
        under_way.add_note(f"while closing after this: {failure}")
