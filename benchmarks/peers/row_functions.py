"""Functions on rows that both packages are timed with; imports the standard library alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

BUSY_SECONDS = 100e-6

Row = dict[str, Any]


def below(row: Row, column: str, limit: int) -> Row | None:
    """Keep rows with a value below a limit."""
    return row if row[column] < limit else None


def mark(row: Row) -> Row:
    """Add a field, which costs next to nothing."""
    row["marked"] = True
    return row


def busy(row: Row) -> Row:
    """Compute for 100 microseconds, as parsing a page might.

    Counted in time of the processor, not of the clock: what waits for a processor makes no headway.
    """
    stop = time.thread_time() + BUSY_SECONDS
    while time.thread_time() < stop:
        pass
    return row


def function(job: dict[str, Any]) -> Callable[[Row], Row | None]:
    """Choose the function of a job: "below", "mark" or "busy"."""
    if job["call"] == "below":
        return partial(below, column=job["column"], limit=job["limit"])
    return {"mark": mark, "busy": busy}[job["call"]]
