"""Says how far a look at many files is: a bar that redraws itself on a terminal, else a few lines.

How long it takes is told by bytes where files are read whole, and by files otherwise.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from zephon.io.stamps import file_stamps

_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.1, 5.0  # between two lines
_BAR = 24
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class CountedFiles:
    """Looks at files as ``each_file`` does, and writes how many are done.

    each: looks at the files.
    out: where to write, such as the error stream.
    whole: files are read whole, so that their bytes tell how far it is.
    """

    def __init__(
        self, each: Callable[..., Iterator[Any]], out: TextIO, *, whole: bool = False
    ) -> None:
        self._each = each
        self._out = out
        self._whole = whole
        self._redraws = out.isatty()

    def __call__(self, *where: Any) -> Iterator[Any]:
        """Look at files; the last two arguments are their directory and their names."""
        files: Sequence[str] = where[-1]
        sizes = file_stamps(os.fspath(where[-2]), files).bytes.clip(0).tolist()
        total, done_bytes = sum(sizes), 0
        wait = _TERMINAL_SECONDS if self._redraws else _PLAIN_SECONDS
        began = shown = time.perf_counter()
        for done, found in enumerate(self._each(*where), 1):
            yield found
            done_bytes += sizes[done - 1]
            now = time.perf_counter()
            if done < len(files) and now - shown >= wait:
                shown = now
                share = done_bytes / total if self._whole and total else done / len(files)
                self._show(self._line(done, len(files), done_bytes, total, now - began, share))
        took = time.perf_counter() - began
        self._show(self._line(len(files), len(files), total, total, took, 1.0), end="\n")

    def _line(
        self, done: int, files: int, bytes_done: int, total: int, took: float, share: float
    ) -> str:
        parts = [f"{done:,} of {files:,} files"]
        if self._whole:
            many = size_text(total)
            parts.append(many if done == files else f"{size_text(bytes_done)} of {many}")
            parts.append(f"{size_text(int(bytes_done / max(took, 1e-3)))}/s")
        if done == files:
            parts.append(f"{duration_text(took)}")
        elif share > 0:
            parts.append(f"{duration_text(took / share - took)} left")
        text = "looked at " + ", ".join(parts)
        if not self._redraws:
            return text
        filled = int(share * _BAR)
        bar = f"[{'#' * filled}{'-' * (_BAR - filled)}] "
        width = shutil.get_terminal_size().columns - 1
        return (bar + text if len(bar + text) <= width else text)[:width]

    def _show(self, line: str, end: str = "") -> None:
        self._out.write(f"\r{line}\x1b[K{end}" if self._redraws else f"{line}\n")
        self._out.flush()


def size_text(size: int) -> str:
    """Write a number of bytes as people say it.

    >>> size_text(999), size_text(1_234), size_text(5 << 32)
    ('999 B', '1.23 kB', '21.5 GB')
    """
    number, unit = float(size), 0
    while number >= 999.5 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {_UNITS[unit]}"


def duration_text(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration_text(0.4), duration_text(75), duration_text(7300)
    ('0.4 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
