"""Whether this process was forked from one that had used obstore: its threads are lost there.

What is asked of obstore in such a process waits for ever, and cannot be begun anew.
"""

from __future__ import annotations

import os

from zephon.errors import ForkedError

_used = _lost = False


def obstore_is_lost() -> bool:
    """Say whether obstore cannot be used in this process."""
    return _lost


def obstore_needed(what: str) -> None:
    """Say that obstore is going to be used.

    Raises:
        ForkedError: its threads were lost in a fork; says what to do.
    """
    global _used
    if _lost:
        raise ForkedError(
            f"{what} cannot be read here: this process was forked from one that had read object "
            "stores, whose threads are lost in a fork; start workers with "
            "multiprocessing_context='spawn', or use num_workers=0"
        )
    _used = True


def _in_child() -> None:
    global _lost
    _lost = _lost or _used


os.register_at_fork(after_in_child=_in_child)
