"""A directory that all ranks see, such as one on a shared file system."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from zephon.errors import CoordinationError


class DirectoryStore:
    """A file a key. Values appear by renaming, so that nobody reads half of one.

    Nothing depends on clocks, on locks, or on what other jobs left there.
    """

    pace = (0.0002, 0.05)
    passes = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._root = Path(path).expanduser()
        self.told = f"aggregate_dir={os.fspath(path)!r}"

    def set(self, key: str, value: bytes) -> None:
        """Put a value; see ``Store``."""
        path = self._root / key
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            for last in (False, True):
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    draft.write_bytes(value)
                    break
                except FileNotFoundError:  # who drops keys takes away what is empty just then
                    if last:
                        raise
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise self._refused(error) from error

    def get(self, key: str) -> bytes | None:
        """Give a value; see ``Store``."""
        try:
            return (self._root / key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(error) from error

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away, and the directories that are empty then."""
        for key in keys:
            path = self._root / key
            with suppress(OSError):
                path.unlink()
                path.parent.rmdir()

    def _refused(self, error: OSError) -> CoordinationError:
        return CoordinationError(
            f"options: {self.told} cannot be used: {error.strerror or error}; name a directory "
            "that every rank can write to, or use aggregate_store"
        )
