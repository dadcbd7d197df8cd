"""A directory that all ranks see, such as one on a shared file system."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from zephon.errors import CoordinationError

_JOINT = "~"  # in no key


class DirectoryStore:
    """A file a key. Values appear by renaming, so that nobody reads half of one.

    Nothing depends on clocks, on locks, or on what other jobs left there. The first part of a key
    is a directory, the others are one name in it: to make and to remove a directory for each
    question would take longer than all else.
    """

    pace = (0.0002, 0.05)
    passes = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._root = Path(path).expanduser()
        self.told = f"aggregate_dir={os.fspath(path)!r}"

    def set(self, key: str, value: bytes) -> None:
        """Put a value; see ``Store``."""
        path = self._path(key)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            for last in (False, False, True):
                try:
                    draft.write_bytes(value)
                    break
                except FileNotFoundError:  # it is not there yet, or whoever drops keys took it away
                    if last:
                        raise
                    path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise self._refused(error) from error

    def get(self, key: str) -> bytes | None:
        """Give a value; see ``Store``."""
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(error) from error

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away, and the directories that are empty then."""
        paths = [self._path(key) for key in keys]
        for path in paths:
            with suppress(OSError):
                path.unlink()
        for folder in dict.fromkeys(path.parent for path in paths):
            with suppress(OSError):
                folder.rmdir()

    def _path(self, key: str) -> Path:
        folder, _, name = key.partition("/")
        return self._root / folder / name.replace("/", _JOINT) if name else self._root / folder

    def _refused(self, error: OSError) -> CoordinationError:
        return CoordinationError(
            f"options: {self.told} cannot be used: {error.strerror or error}; name a directory "
            "that every rank can write to, or use aggregate_store"
        )
