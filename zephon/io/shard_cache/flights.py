"""Shards on their way here: each once a process, however many threads wait for it.

Each is fetched by a thread of its own, so that whoever waits can give up: a store that falls
silent for ever is an error, not a run that hangs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from zephon.errors import StorageError

_LOOK_SECONDS = 1.0


class Flight:
    """One shard on its way; any number of threads may wait for it.

    label: of the shard, for messages. timeout_s: of silence, after which waiting ends.
    """

    def __init__(self, label: str, timeout_s: float) -> None:
        self.label = label
        self.error: BaseException | None = None
        self._timeout_s = timeout_s
        self._done = threading.Event()
        self._heard = time.monotonic()

    def start(self, bring: Callable[[], None], landed: Callable[[], None]) -> None:
        """Begin.

        Args:
            bring: fetches the shard.
            landed: is called after that, however it ended, and before anybody hears of it.
        """

        def fly() -> None:
            try:
                bring()
            except BaseException as exc:
                self.error = exc
            finally:
                landed()
                self._done.set()

        # A daemon: a store that never answers must not keep the process from ending.
        threading.Thread(target=fly, name="zephon-shard", daemon=True).start()

    def heard(self) -> None:
        """Note that it gets on."""
        self._heard = time.monotonic()

    def wait(self) -> None:
        """Wait for its end, which ``error`` tells of.

        Raises:
            StorageError: nothing was heard of it for too long.
        """
        while not self._done.wait(min(_LOOK_SECONDS, self._timeout_s)):
            silent = time.monotonic() - self._heard
            if silent > self._timeout_s:
                raise StorageError(
                    f"{self.label}: bytes must come within {self._timeout_s:g} s of one another, "
                    f"and for {silent:.0f} s none came; look at the store and the network, or "
                    "raise io_options.cache.download_timeout"
                )
