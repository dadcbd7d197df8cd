"""Files of a dataset that lie in a far place: which version each has, and a copy for a while.

Where a listing told of the files, their versions are those of the listing. Where an index did, the
place is asked for a file's version when it is needed first, and that is its version from then on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zephon.errors import ShardError, StorageError
from zephon.io.storage.place import Place, StoredFile

_ENDING = 40  # signs of a file's name that its copy has


@dataclass(frozen=True, slots=True)
class FarFile:
    """One file of a place, in one version."""

    place: Place
    file: StoredFile

    @contextmanager
    def copied(self, stop: int | None = None) -> Iterator[str]:
        """Give the path of a copy, which is gone afterwards; of its size, and written when it was.

        Args:
            stop: only bytes before this are those of the file, and the rest takes no room; None:
                all are.

        Raises:
            AccessError, ShardError, StorageError: the place does not give the file.
        """
        file = self.file
        ending = file.name.rpartition("/")[2][-_ENDING:]  # which says how it is compressed
        descriptor, path = tempfile.mkstemp(prefix="zephon-", suffix=f"-{ending}")
        try:
            with open(descriptor, "r+b") as target:
                try:
                    if stop is None or stop >= file.size:
                        self.place.fetch(file, target)
                    else:
                        target.write(self.place.read(file, [(0, stop)])[0])
                        target.flush()
                        target.truncate(file.size)
                except OSError as exc:
                    if isinstance(exc, ShardError | StorageError):
                        raise
                    raise StorageError(
                        f"{self.place.url}: {file.name}: a copy of up to {file.size:,} bytes must "
                        f"fit in {tempfile.gettempdir()!r} for a while, got {exc}; set TMPDIR to a "
                        "directory with more room, or write an index"
                    ) from exc
            os.utime(path, ns=(file.modified_ns, file.modified_ns))
            yield path
        finally:
            os.unlink(path)


class FarFiles:
    """The files of a dataset in a place.

    Args:
        place: where they lie.
        listed: what a listing told of them; None: an index told of them.
    """

    def __init__(self, place: Place, listed: Iterable[StoredFile] | None) -> None:
        self.place = place
        self.listed = listed is not None
        self._known = {file.name: file for file in listed or ()}

    def at(self, name: str) -> FarFile:
        """Give the file of a name; a look at the place, for one that only an index told of.

        Raises:
            ShardError: it is not there.
            AccessError, StorageError: the place does not tell.
        """
        found = self._known.get(name)
        if found is None:
            found = self.place.look(name)
            if found is None:
                raise ShardError(
                    f"{self.place.url}: {name}: the file must be there, as an index or a listing "
                    "says, and it is not; put it back, or make the index anew"
                )
            found = self._known.setdefault(name, found)
        return FarFile(self.place, found)

    def list_all(self) -> None:
        """Learn the versions of all files by one listing, unless that was done.

        Raises:
            AccessError, StorageError: the place does not tell.
        """
        if self.listed:
            return
        for file in self.place.listed(deep=True).files:
            self._known.setdefault(file.name, file)
        self.listed = True

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.place, self.listed, list(self._known.values()))


def _again(place: Place, listed: bool, known: list[StoredFile]) -> FarFiles:
    made = FarFiles(place, known)
    made.listed = listed
    return made
