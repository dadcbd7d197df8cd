"""What every format of files can do beside reading: tell of shards, and take others' word for it.

An index describes a shard by an ``Entry``; what a format adds to it is the entry's ``extra``.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
import pyarrow as pa

from zephon.errors import ShardError
from zephon.io.data_file import DataFile
from zephon.io.formats.format import Format
from zephon.io.marks import FULL, MARK, full_hash, is_hash, mark_of, mark_text, number_of
from zephon.io.shard import ListedBy, Shard
from zephon.io.shards import Layouts

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

Extra = TypeVar("Extra")


class Entry(msgspec.Struct, Generic[Extra]):
    """A shard in an index.

    basename: the file, in the index's directory.
    bytes: size of the file.
    num_rows: rows that count.
    extra: what the format adds.
    hashes: digests of the file by algorithm, in hexadecimal.
    """

    basename: str
    bytes: Number
    num_rows: Number
    extra: Extra
    hashes: dict[str, str] = {}


class EntryProblem(Exception):
    """An entry of an index contradicts itself: which one, by its position, and why."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(position, why)
        self.position = position
        self.why = why


_DIGITS = {MARK: 12, FULL: 64}


def check_hashes(entry: Entry[Any], position: int) -> None:
    """Check the hashes of an entry that are used here.

    Raises:
        EntryProblem: one is none.
    """
    for name, text in entry.hashes.items():
        digits = _DIGITS.get(name)
        if digits is not None and not is_hash(text, digits):
            raise EntryProblem(
                position, f"hashes.{name} must be {digits} hexadecimal digits, got {text!r:.80}"
            )


def told_hash(hashes: Mapping[str, str], name: str) -> int | None:
    """Give the mark or the full hash that an entry tells, which was checked before."""
    text = hashes.get(name)
    return None if text is None else number_of(text)


def _hashes(dataset: str, shard: Shard, *, whole: bool) -> dict[str, str]:
    """Mark a file that was counted a moment ago, and hash it ``whole``."""
    shard.check_written(dataset, os.stat(shard.path))  # opening a pipe would wait
    with open(shard.path, "rb", buffering=0) as file:
        shard.check_written(dataset, os.fstat(file.fileno()))
        hashes = {MARK: mark_text(mark_of(file.fileno(), shard.bytes))}
        if whole:
            hashes[FULL] = full_hash(file)
        shard.check_written(dataset, os.fstat(file.fileno()))
    return hashes


class FileFormat(Format):
    """A format of files in a directory.

    entry_type: what an index of it holds.
    layout_types: the columns of its ``Layouts``.
    counts_quickly: counting a file takes no longer for a large one. Files of other formats are
        read whole to be counted, and so hashed whole for an index.
    further_suffixes: of files that are read where ``fmt`` names the format, and no file has one of
        ``suffixes``.
    gives_way: beside files of a format that does not, these are no data unless ``fmt`` says so.
    """

    entry_type: ClassVar[type[Entry[Any]]]
    layout_types: ClassVar[Mapping[str, pa.DataType]]
    counts_quickly: ClassVar[bool] = False
    further_suffixes: ClassVar[tuple[str, ...]] = ()
    gives_way: ClassVar[bool] = False

    @abstractmethod
    def describe(self, dataset: str, file: DataFile) -> tuple[Shard, dict[str, Any]]:
        """Count a file, and give what its ``extra`` in an index is.

        Raises:
            ShardError: the file is not of this format, or is cut off.
        """

    def indexed(self, dataset: str, file: DataFile) -> tuple[Shard, dict[str, Any], dict[str, str]]:
        """Find all that an index tells of a file: the shard, its ``extra`` and its ``hashes``.

        Raises:
            ShardError: as ``describe``; or the file was written to meanwhile.
        """
        shard, extra = self.describe(dataset, file)
        try:
            hashes = _hashes(dataset, shard, whole=not self.counts_quickly)
        except OSError as exc:
            raise ShardError(
                f"dataset {dataset!r}, shard {shard.name!r}: the file must stay readable while it "
                f"is hashed, got {exc}; make the index again"
            ) from exc
        return (
            replace(shard, mark=told_hash(hashes, MARK), full_hash=told_hash(hashes, FULL)),
            extra,
            hashes,
        )

    def described(self, dataset: str, file: DataFile) -> Shard:
        """Give the shard alone of what ``indexed`` finds."""
        return self.indexed(dataset, file)[0]

    def shortened(self, names: Sequence[str], extras: Sequence[dict[str, Any]]) -> None:
        """Let an ``extra`` refer to an earlier one instead of repeating it."""

    @abstractmethod
    def resolve(self, entries: Sequence[Entry[Any]]) -> None:
        """Check what the types of entries do not say, and fill in what refers to other entries.

        Raises:
            EntryProblem: an entry contradicts itself.
        """

    @abstractmethod
    def from_entry(self, entry: Entry[Any], path: str, listed_by: ListedBy) -> Shard | None:
        """Make the shard that an entry describes; None if the file must be counted after all."""

    @abstractmethod
    def layouts(self, shards: Sequence[Shard]) -> Layouts:
        """Join the layouts of shards to columns."""

    @abstractmethod
    def stored_layouts(self, columns: pa.RecordBatch, about: Mapping[str, Any]) -> Layouts:
        """Take up what ``Layouts.columns`` and ``about`` gave.

        Args:
            columns: of the types that ``layout_types`` names, without nulls; among others.
            about: read from JSON.

        Raises:
            ValueError: the columns contradict each other, or what they refer to; says why.
        """
