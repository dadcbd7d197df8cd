"""Errors of the local disk, told from those of the store whose bytes it takes."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from contextlib import contextmanager

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class DiskError(Exception):
    """The local disk does not take it."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.cause = cause


class PartFile(io.FileIO):
    """A file on the local disk that remembers whether it was the disk that failed."""

    failed: OSError | None = None

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write some bytes, as ``io.FileIO`` does."""
        try:
            return super().write(data) or 0
        except OSError as exc:
            self.failed = exc
            raise


@contextmanager
def on_disk() -> Iterator[None]:
    """Tell the local disk's errors from a store's.

    Raises:
        DiskError: from whatever the system raised.
    """
    try:
        yield
    except OSError as exc:
        raise DiskError(exc) from exc


def no_space(exc: BaseException | None) -> OSError | None:
    """Find a full disk behind an error that was raised from it."""
    while exc is not None:
        if isinstance(exc, OSError) and exc.errno in NO_SPACE:
            return exc
        exc = exc.__cause__ or exc.__context__
    return None
