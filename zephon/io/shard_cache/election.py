"""Which of many processes fetches a shard, so that the others need not: a courtesy, no lock.

Who comes first writes a claim that names the file it is going to write, and the others wait as
long as that file grows. A claim of a dead process, or of one that stands still, is taken over. At
worst a shard is fetched more than once, and each time comes whole.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from zephon.io.own_directory import PRIVATE_FILE
from zephon.io.shard_cache.names import PART
from zephon.io.shard_cache.owners import lives

_STILL_SECONDS = 20.0  # who fetches and does not get on for so long is not waited for
_FIRST_PAUSE, _MOST_PAUSE = 0.005, 0.25


class Claim:
    """A claim on one shard.

    Args:
        path: of the file that says it.
        part: name of the file that this process would write, in the same folder.
        heard: is called while another process gets on.
        still_s: who does not get on for so long is not waited for; at most 20.
    """

    def __init__(self, path: str, part: str, *, heard: Callable[[], None], still_s: float) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._part = part
        self._heard = heard
        self._still_s = min(still_s, _STILL_SECONDS)
        self._mine = False

    def wait(self, is_there: Callable[[], bool]) -> bool:
        """Claim the shard, or wait until another process has fetched it or gave it up.

        Args:
            is_there: looks whether the shard is there.

        Returns:
            whether the caller has to fetch it.
        """
        if is_there():
            return False
        if self._written(os.O_EXCL):
            return not is_there()  # whoever had the claim may have ended right before
        pause, last, changed = _FIRST_PAUSE, (), time.monotonic()
        while True:
            other = self._read()
            if is_there():
                return False
            if other is None:
                return True  # it ended without: from here on each tries for itself
            now = self._progress(other)
            if now != last:
                last, changed = now, time.monotonic()
                self._heard()
            if time.monotonic() - changed > self._still_s or not self._lives(other):
                self._written(os.O_TRUNC)
                return True
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)

    def renew(self) -> None:
        """Say that this process is still at it, between two attempts."""
        with contextlib.suppress(OSError):
            os.utime(self._path)

    def release(self) -> None:
        """Take the claim back, if it is this process's still."""
        if self._mine and self._read() == self._part:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._mine = False

    def _written(self, how: int) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how
        try:
            descriptor = os.open(self._path, flags, PRIVATE_FILE)
        except FileExistsError:
            return False
        except OSError:
            return True  # no claims can be made here: whoever writes the shard says why
        with open(descriptor, "wb") as file:
            file.write(self._part.encode())
        self._mine = True
        return True

    def _read(self) -> str | None:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def _progress(self, part: str) -> tuple[object, ...]:
        """Give what changes while the other one gets on."""
        seen: list[object] = [part]
        for path in (self._path, os.path.join(self._folder, part or "-")):
            try:
                status = os.stat(path)
            except OSError:
                seen.append(None)
            else:
                seen += [status.st_size, status.st_mtime_ns]
        return tuple(seen)

    def _lives(self, part: str) -> bool:
        found = PART.fullmatch(part)
        if found is None:
            return True  # it is being written right now, or never will be: time tells
        try:
            heard_s = os.stat(self._path).st_mtime
        except OSError:
            return True
        return lives(found[3], heard_s)
