"""What a running stream shows: a bar that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TextIO

_BAR = 20  # cells
_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.1, 1.0  # between two pictures


class Progress:
    """Shows how far a mixture is, how fast, and how near each dataset is to its share.

    total: documents until the end of the stream.
    targets: the share of documents that each dataset should have, summing to 1.
    """

    def __init__(self, out: TextIO, *, total: float, targets: Mapping[str, float]) -> None:
        self._out = out
        self._redraws = out.isatty()
        self._total = total
        self._targets = targets
        self._started = self._shown = time.perf_counter()

    def due(self) -> bool:
        """Tell whether the last picture is old enough for a new one."""
        wait = _TERMINAL_SECONDS if self._redraws else _PLAIN_SECONDS
        return time.perf_counter() - self._shown >= wait

    def show(self, documents: Mapping[str, int], tokens: Mapping[str, int]) -> None:
        """Draw where the stream is: documents and tokens so far, by dataset."""
        self._shown = time.perf_counter()
        seen = sum(documents.values())
        rate = sum(tokens.values()) / (self._shown - self._started) / 1e6
        shares = "  ".join(
            f"{name} {documents[name] / max(1, seen):.1%} (target {target:.0%})"
            for name, target in self._targets.items()
        )
        line = f"  {bar(seen / self._total)}  {rate:.1f} M tokens/s  {shares}"
        self._out.write(f"\r{line}\x1b[K" if self._redraws else f"{line}\n")
        self._out.flush()

    def close(self, documents: Mapping[str, int], tokens: Mapping[str, int]) -> None:
        """Draw the last picture, and say what the stream came to."""
        self.show(documents, tokens)
        total = sum(tokens.values())
        shares = ", ".join(f"{name} {count / max(1, total):.1%}" for name, count in tokens.items())
        end = "\n" if self._redraws else ""
        seconds = self._shown - self._started
        self._out.write(f"{end}  {total:,} tokens in {seconds:.2f} s; by tokens: {shares}\n")
        self._out.flush()


def bar(done: float, width: int = _BAR) -> str:
    """Draw a share of the whole, between 0 and 1.

    >>> bar(0.5, 10)
    '[#####-----]  50 %'
    """
    part = min(1.0, max(0.0, done))
    full = int(part * width)
    return f"[{'#' * full}{'-' * (width - full)}] {part * 100:3.0f} %"
