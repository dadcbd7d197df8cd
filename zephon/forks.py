"""Whether this process was forked from one in which Polars had threads.

A fork copies none of them, and Polars waits for ever for what it hands them. Our own pool begins
anew in a child, and so do those of Arrow and of the tokenizers; Polars' alone cannot.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from zephon.errors import ForkedError

_THREADS = Path("/proc/self/task")
_used = _had_threads = _lost = False


def polars_needed() -> None:
    """Say that Polars is going to compute something.

    Raises:
        ForkedError: its threads were lost in a fork; says what to do.
    """
    global _used
    if _lost:
        raise ForkedError(
            "Polars cannot compute here: this process was forked from one in which it had started "
            "its threads, which are lost in a fork, as filter() and with_columns() do when they "
            "are called; start workers with multiprocessing_context='spawn', or use num_workers=0"
        )
    _used = True


def _before() -> None:
    global _had_threads
    _had_threads = "polars" in sys.modules and (_used or _has_threads())


def _has_threads() -> bool:
    """Look for the threads of Polars by name, where the system tells: others may have used it."""
    if not _THREADS.is_dir():
        return False
    names = (_name(thread) for thread in _THREADS.iterdir())
    return any(name.startswith("polars-") and name[7:].isdigit() for name in names)


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text().strip()
    except OSError:  # it has just ended
        return ""


def _in_child() -> None:
    global _lost
    _lost = _lost or _had_threads


os.register_at_fork(before=_before, after_in_child=_in_child)
