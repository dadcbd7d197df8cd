"""Files in memory without a name: nothing of them stays behind when who has them is killed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

_MOST_PIECES = 512  # that one system call writes; POSIX promises 16, Linux and macOS have 1,024


def nameless() -> int:
    """Make an empty file; return its descriptor, which programs that are started do not get.

    Raises:
        OSError: this process may open no further file.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("zephon", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(buffering=0) as found:
        return os.dup(found.fileno())


def write(descriptor: int, pieces: Sequence[Any]) -> None:
    """Write pieces end to end, from the beginning of a file on.

    Raises:
        OSError: there is no room for them.
    """
    at = 0
    for first in range(0, len(pieces), _MOST_PIECES):
        some = pieces[first : first + _MOST_PIECES]
        left = [memoryview(piece).cast("B") for piece in some if len(piece)]
        while left:
            done = os.pwritev(descriptor, left, at)
            at += done
            while left and done >= left[0].nbytes:
                done -= left.pop(0).nbytes
            if left:
                left[0] = left[0][done:]
