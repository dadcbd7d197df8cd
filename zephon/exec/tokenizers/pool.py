"""Encoders, lent one a call: as many as there are threads that encode at once.

Each gigatoken object takes 0.1 to 1 s to load, with the interpreter lock held, and 60 MB or more.
So another is loaded only once the pool has encoded as much text as loading costs; until then
callers wait their turn, and the first batch waits for one load, not for one a thread. More than
one a processor are not worth their memory.

A gigatoken object also keeps every distinct word that it meets, without bound: about 0.2 bytes a
byte of prose, 5 to 10 a byte of random text. When the process has grown by ``GROWTH_BYTES`` since
the encoders were warm, the next one that comes back is dropped and a fresh one takes its place.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from zephon.exec.tokenizers.encoder import Encoder

LOAD_WORTH_BYTES = 16 << 20
WARM_BYTES = 64 << 20
GROWTH_BYTES = 256 << 20
UNSEEN_BYTES = 4 << 30  # where the size of the process cannot be read: text before a fresh start

_PROCESSORS = max(
    2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
)


@dataclass(slots=True)
class _Member:
    encoder: Encoder
    text_bytes: int = 0


class EncoderPool:
    """Lends encoders that one function makes; any number of threads may ask."""

    def __init__(
        self,
        make: Callable[[], Encoder],
        *,
        first: Encoder | None = None,
        load_worth: int = LOAD_WORTH_BYTES,
    ) -> None:
        """Start with ``first``, if it was made already.

        Args:
            make: loads an encoder.
            first: an encoder that is there already.
            load_worth: bytes of text that are worth one more load; 0 where loading is free.
        """
        self._make = make
        self._load_worth = load_worth
        self._idle = [] if first is None else [_Member(first)]
        self._made = len(self._idle)
        self._text_bytes = 0
        self._resident: int | None = None
        self._changed = threading.Condition()

    @contextmanager
    def lend(self, text_bytes: int) -> Iterator[Encoder]:
        """Lend one encoder for ``text_bytes`` of text; one that raised does not come back."""
        member = self._take()
        try:
            yield member.encoder
        except BaseException:
            self._let_go()
            raise
        self._give_back(member, text_bytes)

    def _take(self) -> _Member:
        with self._changed:
            while not self._idle:
                if self._is_worth_a_load():
                    break
                # Whoever holds the first one may be busy with a huge document: not for ever.
                if not self._changed.wait(timeout=0.5):
                    break
            else:
                return self._idle.pop()
            self._made += 1
        try:
            return _Member(self._make())
        except BaseException:
            self._let_go()
            raise

    def _is_worth_a_load(self) -> bool:
        if not self._made or not self._load_worth:
            return True
        return self._made < _PROCESSORS and self._text_bytes >= self._made * self._load_worth

    def _let_go(self) -> None:
        with self._changed:
            self._made -= 1
            self._changed.notify()

    def _give_back(self, member: _Member, text_bytes: int) -> None:
        with self._changed:
            self._text_bytes += text_bytes
            member.text_bytes += text_bytes
            if self._is_full(member):
                self._made -= 1
            else:
                self._idle.append(member)
            self._changed.notify()

    def _is_full(self, member: _Member) -> bool:
        if not self._load_worth or member.text_bytes < WARM_BYTES:
            return False
        resident = resident_bytes()
        if resident is None:
            return member.text_bytes >= UNSEEN_BYTES
        if self._resident is None:
            self._resident = resident
        if resident - self._resident < GROWTH_BYTES:
            return False
        self._resident = None  # measured again once this one is gone
        return True


def resident_bytes() -> int | None:
    """Return the memory that this process holds, None where the system does not say (15 µs)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
