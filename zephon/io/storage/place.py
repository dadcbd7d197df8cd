"""A place where files of a dataset lie, and can only be read: a store's prefix, a hub repository.

A place is pinned as far as its kind allows: whoever holds it, on any machine, reads the same bytes
or gets an error. A pickled one holds no secret; credentials are found where it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from zephon.errors import DatasetNotFoundError


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a place.

    name: below the place's root, parts joined by "/".
    size: in bytes.
    version: changes whenever the content does, such as an entity tag; never empty.
    modified_ns: when it was written, in nanoseconds since 1970; 0 where the place does not say.
    """

    name: str
    size: int
    version: str
    modified_ns: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """What one traversal of a place found.

    files: in bytewise order of their names.
    folders: names of the folders that were not looked into, in the same order.
    """

    files: tuple[StoredFile, ...]
    folders: tuple[str, ...] = ()


class Place(ABC):
    """Reads files of one root. Any number of threads may use one; it can be pickled.

    is_split: it is a list of files that were chosen before, all of them data of one format.
    """

    is_split: ClassVar[bool] = False

    @property
    @abstractmethod
    def url(self) -> str:
        """The root with its pinned version, as messages and checkpoints show it; no secrets."""

    @abstractmethod
    def listed(self, folder: str = "", *, deep: bool = False) -> Listed:
        """List the files of a folder in one traversal; markers of folders are left out.

        Args:
            folder: below the root, parts joined by "/"; the root itself by default.
            deep: go into folders too. A place that is a list of files gives all of them anyway.

        Raises:
            DatasetNotFoundError: there is no such root or folder.
            AccessError: it may not be read; says what is needed, and never a secret.
            StorageError: the store did not answer, in spite of retries.
        """

    def look(self, name: str) -> StoredFile | None:
        """Look at one file; None if it is not there.

        Args:
            name: below the root, parts joined by "/".

        Raises:
            AccessError, StorageError: as ``listed``.
        """
        try:
            found = self.listed(name.rpartition("/")[0]).files
        except DatasetNotFoundError:
            return None
        return next((file for file in found if file.name == name), None)

    @abstractmethod
    def read(self, file: StoredFile, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read some ranges [start, stop) of a file, close ones in one request, several at a time.

        Raises:
            ShardError: the file is gone, is of another version now, or shorter than told.
            AccessError, StorageError: as ``listed``.
        """

    @abstractmethod
    def fetch(
        self, file: StoredFile, target: BinaryIO, told: Callable[[int], None] | None = None
    ) -> None:
        """Write a whole file to an open one, and make sure that it is whole and of its version.

        Args:
            file: which.
            target: written from where it stands, and nothing before that; may be truncated to
                there and written again.
            told: is called with the bytes that came since the last call; a negative number takes
                back what has to come again.

        Raises:
            ShardError, AccessError, StorageError: as ``read``.
        """
