"""One shard of a dataset: its name, its size, and where its row groups begin."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ShardError
from zephon.io.data_file import DataFile
from zephon.io.far_files import FarFile, FarFiles
from zephon.io.in_memory import InMemoryShard
from zephon.io.marks import mark_of

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def odd_kind(status: os.stat_result) -> str | None:
    """Say what it is instead of a regular file; None if it is one.

    To be asked before a file is opened: opening a named pipe waits for whoever writes to it.
    """
    if stat.S_ISREG(status.st_mode):
        return None
    return next((told for test, told in _KINDS if test(status.st_mode)), "no regular file")


def file_status(dataset: str, file: DataFile) -> os.stat_result:
    """Look at a file that is to be counted, before it is opened.

    Raises:
        ShardError: it is no regular file.
        OSError: it cannot be looked at.
    """
    status = os.stat(file)
    kind = odd_kind(status)
    if kind is not None:
        raise ShardError(
            f"dataset {dataset!r}, shard {file.name!r}: it must be a regular file, but it is "
            f"{kind}; write the file again, or move it out of the directory"
        )
    return status


class ListedBy:
    """The file that told of shards which were not looked at themselves.

    It says nothing of when a shard was written, since a copied directory is as good as its
    original. So the first look at a shard counts, and is remembered here for the whole dataset, as
    is which shards were found to hold what their marks tell.

    file: its name: "index.json", "_index.json" or "_catalog.arrow".
    dataset: the name of the dataset, for messages.
    words: what names its files in a command (``Selection.words``).
    """

    __slots__ = ("_modified", "_words", "checked", "dataset", "file")

    def __init__(self, file: str, dataset: str, words: str = "") -> None:
        self.file = file
        self._words = words
        self.dataset = dataset
        self._modified: dict[str, int] = {}
        self.checked: set[str] = set()

    def modified(self, shard: str, mtime_ns: int) -> int:
        """Give when a shard had been written at the first look; this one, if it is the first."""
        return self._modified.setdefault(shard, mtime_ns)

    def first_look(self, shard: str) -> int | None:
        """Give when a shard had been written at the first look, if there was one."""
        return self._modified.get(shard)

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedBy, (self.file, self.dataset, self._words)  # another process looks for itself

    def command(self, directory: str) -> str:
        """Give the command that makes the file anew."""
        catalog = "--catalog " * self.file.endswith(".arrow")
        return f"zephon index {catalog}{self._words}{shlex.quote(directory)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What is known of one shard once it has been counted, or an index has told of it.

    Two are equal if they have the same name, place, rows and bytes, whenever they were written.

    name: relative to the dataset's directory; for rows in memory, the user's key.
    path: the file, or "" for rows in memory.
    rows: rows that count; blank lines do not.
    bytes: size of the file; for rows in memory, an estimate.
    decoded_bytes: bytes of all rows once decompressed, estimated where unknown.
    group_rows: rows of each row group (the unit of decoding), shape [groups], int64.
    mtime_ns: when the file was last written; guards a running job against a changed file. 0 if
        the file was not looked at.
    layout: what the format needs to find a row group; opaque to everyone else.
    memory: the rows themselves, for rows in memory.
    listed_by: what told of the shard; None if the shard itself was read.
    mark: its content mark (``marks``), where an index tells it or is being made.
    full_hash: the first 48 bits of the SHA-256 of the whole file, likewise.
    far: the files of the dataset, if it lies in a far place; then ``path`` is a url.
    """

    name: str
    path: str
    rows: int
    bytes: int
    decoded_bytes: int = field(compare=False)
    group_rows: NDArray[np.int64] = field(compare=False, repr=False)
    mtime_ns: int = field(default=0, compare=False)
    layout: object = field(default=None, compare=False, repr=False)
    memory: InMemoryShard | None = None
    listed_by: ListedBy | None = field(default=None, compare=False, repr=False)
    mark: int | None = field(default=None, compare=False, repr=False)
    full_hash: int | None = field(default=None, compare=False, repr=False)
    far: FarFiles | None = field(default=None, compare=False, repr=False)

    @property
    def far_file(self) -> FarFile | None:
        """The file and its version, if it lies in a far place.

        Raises:
            ShardError, AccessError, StorageError: as ``FarFiles.at``.
        """
        return None if self.far is None else self.far.at(self.name)

    @property
    def directory(self) -> str:
        """The dataset's directory, which the name is relative to."""
        return self.path.removesuffix(self.name).rstrip("/") or "/"

    @property
    def identity(self) -> Hashable:
        """Equal for the same data, different for any other; keys decoded row groups.

        A file that was not looked at yet is looked at now.

        Raises:
            ShardError: an index tells of a file that is not there, or is none.
        """
        if self.memory is not None:
            return self.memory
        if self.far is not None:
            return (self.path, self.bytes, self.far.at(self.name).file.version)
        return (self.path, self.bytes, self.written_ns())

    def written_ns(self) -> int:
        """Say when the file had been written when it was counted, or at the first look at it.

        Raises:
            ShardError: as ``identity``.
        """
        if self.far is not None:
            return self.far.at(self.name).file.modified_ns
        return self.mtime_ns if self.listed_by is None else self._first_look(self.listed_by)

    def check_unchanged(self, dataset: str, status: os.stat_result) -> None:
        """Refuse a file that was written to after its rows were counted.

        Raises:
            ShardError: it is no regular file; size or modification time differ from those seen at
                counting; or, where an index told of the shard, size or content mark from the
                index's, or the time from that seen first.
            OSError: the file cannot be read.
        """
        self.check_written(dataset, status)
        if self.mark is not None and self.listed_by is not None:
            self._check_mark(dataset, self.mark, self.listed_by)

    def check_written(self, dataset: str, status: os.stat_result) -> None:
        """Refuse a file by its kind, size or time, as ``check_unchanged``; nothing is read."""
        kind = odd_kind(status)
        if kind is not None:
            raise self.stale(dataset, f"it is {kind}")
        mtime_ns, since = self.mtime_ns, "its rows were counted"
        if self.listed_by is not None:
            if status.st_size != self.bytes:
                raise self.stale(dataset, f"the file has {status.st_size} bytes, not {self.bytes}")
            mtime_ns = self.listed_by.modified(self.name, status.st_mtime_ns)
            since = "it was first read"
        if (status.st_size, status.st_mtime_ns) != (self.bytes, mtime_ns):
            raise ShardError(
                f"dataset {dataset!r}, shard {self.name!r}: the file must stay as it was when "
                f"{since}, but it was written to since ({self.bytes} bytes then, "
                f"{status.st_size} now); open the dataset again with Dataset.from_path"
            )

    def check_far(self, dataset: str) -> FarFile | None:
        """Give the file if it lies in a far place, and refuse it if it is not as an index says.

        Raises:
            ShardError: it has another size; or it is not there.
            AccessError, StorageError: the place does not tell.
        """
        far = self.far_file
        if far is not None and far.file.size != self.bytes:
            raise self.stale(dataset, f"the file has {far.file.size} bytes, not {self.bytes}")
        return far

    def stale(self, dataset: str, difference: str) -> ShardError:
        """Make the error of a file that is not what was told of it."""
        if self.listed_by is None:
            return ShardError(
                f"dataset {dataset!r}, shard {self.name!r}: the file must stay as it was when its "
                f"rows were counted, but {difference}; open the dataset again"
            )
        return ShardError(
            f"dataset {dataset!r}, shard {self.name!r}: the file must be as {self.listed_by.file} "
            f"says, but {difference}; make that anew with "
            f"`{self.listed_by.command(self.directory)}`"
        )

    def _check_mark(self, dataset: str, mark: int, listed_by: ListedBy) -> None:
        if self.name in listed_by.checked:
            return
        file = os.open(self.path, os.O_RDONLY)
        try:
            found = mark_of(file, self.bytes)
        finally:
            os.close(file)
        if found != mark:
            raise self.stale(dataset, "it holds something else in as many bytes")
        listed_by.checked.add(self.name)

    def _first_look(self, listed_by: ListedBy) -> int:
        known = listed_by.first_look(self.name)
        if known is not None:
            return known
        directory = self.directory
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError) as exc:
            raise ShardError(
                f"dataset {listed_by.dataset!r}, shard {self.name!r}: the file must be there, as "
                f"{listed_by.file} in {directory!r} says, and it is not; put it back, or "
                f"make {listed_by.file} anew with `{listed_by.command(directory)}`"
            ) from exc
        except OSError:
            return 0  # whoever opens it says what is wrong
        kind = odd_kind(status)
        if kind is not None:
            raise self.stale(listed_by.dataset, f"it is {kind}")
        return listed_by.modified(self.name, status.st_mtime_ns)
