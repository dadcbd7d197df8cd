"""What every format of files can do beside reading: tell of shards, and take others' word for it.

An index describes a shard by an ``Entry``; what a format adds to it is the entry's ``extra``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
import pyarrow as pa

from zephon.io.formats.format import Format
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


class FileFormat(Format):
    """A format of files in a directory.

    entry_type: what an index of it holds.
    layout_types: the columns of its ``Layouts``.
    counts_quickly: counting a file takes no longer for a large one.
    """

    entry_type: ClassVar[type[Entry[Any]]]
    layout_types: ClassVar[Mapping[str, pa.DataType]]
    counts_quickly: ClassVar[bool] = False

    @abstractmethod
    def describe(self, dataset: str, path: Path) -> tuple[Shard, dict[str, Any]]:
        """Count a file, and give what its ``extra`` in an index is.

        Raises:
            ShardError: the file is not of this format, or is cut off.
        """

    def described(self, dataset: str, path: Path) -> Shard:
        """Count a file, and find all that an index tells of it.

        Raises:
            ShardError: as ``describe``.
        """
        return self.describe(dataset, path)[0]

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
