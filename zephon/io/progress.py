"""Says how far a look at many files is: one line that redraws itself on a terminal, else a few."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.1, 5.0  # between two lines


class CountedFiles:
    """Looks at files as ``each_file`` does, and writes how many are done.

    each: looks at the files.
    out: where to write, such as the error stream.
    """

    def __init__(self, each: Callable[..., Iterator[Any]], out: TextIO) -> None:
        self._each = each
        self._out = out
        self._redraws = out.isatty()

    def __call__(self, *where: Any) -> Iterator[Any]:
        """Look at files; the last argument is their names."""
        files: Sequence[str] = where[-1]
        wait = _TERMINAL_SECONDS if self._redraws else _PLAIN_SECONDS
        shown = time.perf_counter()
        for done, found in enumerate(self._each(*where), 1):
            yield found
            if done < len(files) and time.perf_counter() - shown >= wait:
                shown = time.perf_counter()
                self._show(done, len(files))
        self._show(len(files), len(files), end="\n")

    def _show(self, done: int, files: int, end: str = "") -> None:
        line = f"looked at {done:,} of {files:,} files"
        self._out.write(f"\r{line}\x1b[K{end}" if self._redraws else f"{line}\n")
        self._out.flush()
