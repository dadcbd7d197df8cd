"""Says what is being fetched while somebody has to wait for it: one line that redraws itself.

It is shown on a terminal alone, by the first rank of a machine alone, and after a moment; when
nobody waits any more, as when shards come ahead of their turn, the line goes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from zephon.io.progress import size_text

_FIRST_SECONDS, _PAUSE_SECONDS = 0.5, 0.1


class DownloadProgress:
    """Counts what comes, and draws it; for all threads.

    out: where to write; None: the error stream, where it is a terminal.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._waiting = 0
        self._done = 0
        self._coming: dict[int, tuple[int, int]] = {}  # bytes that came, and all, by number
        self._bytes = 0
        self._numbers = 0
        self._since = self._shown = 0.0
        self._bytes_before = 0
        self._drawn = False

    @contextmanager
    def waiting(self, seen: bool) -> Iterator[None]:
        """Show the line while the block runs, if it is ``seen``: if somebody waits there."""
        if not seen:
            yield
            return
        with self._lock:
            self._waiting += 1
            if self._waiting == 1:
                self._since, self._bytes_before = time.monotonic(), self._bytes
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting and self._drawn:
                    self._drawn = False
                    self._write("\r\x1b[K")

    @contextmanager
    def fetching(self, size: int) -> Iterator[Callable[[int], None]]:
        """Count a shard that is fetched while the block runs; give what takes bytes as they come.

        Args:
            size: of the shard.
        """
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._coming[number] = (0, size)

        def moved(count: int) -> None:
            with self._lock:
                came, size = self._coming[number]
                self._coming[number] = (came + count, size)
                self._bytes += count
                self._draw()

        try:
            yield moved
            with self._lock:
                self._done += 1
        finally:
            with self._lock:
                del self._coming[number]

    def _draw(self) -> None:
        now = time.monotonic()
        late = now - self._since >= _FIRST_SECONDS and now - self._shown >= _PAUSE_SECONDS
        if not self._waiting or not late or not self._seen():
            return
        self._shown = now
        self._drawn = True
        came = sum(came for came, _ in self._coming.values())
        size = sum(size for _, size in self._coming.values())
        rate = (self._bytes - self._bytes_before) / (now - self._since)
        self._write(
            f"\rfetching shards: {self._done:,} done, {len(self._coming)} under way "
            f"({size_text(min(came, size))} of {size_text(size)}), {size_text(int(rate))}/s\x1b[K"
        )

    def _seen(self) -> bool:
        out = self._out or sys.stderr
        first = os.environ.get("LOCAL_RANK") or os.environ.get("RANK") or "0"
        return out is not None and out.isatty() and first == "0"

    def _write(self, text: str) -> None:
        out = self._out or sys.stderr
        try:
            out.write(text)
            out.flush()
        except (OSError, ValueError):  # a terminal that has gone is no reason to stop
            self._waiting = min(self._waiting, 0)
