"""What every format can do: count a shard, list its fields, and decode a row group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import Statistics, no_columns
from zephon.errors import DatasetError, nearest
from zephon.io.data_file import DataFile
from zephon.io.faults import Faults
from zephon.io.field_types import FoundType
from zephon.io.fields import Column, Field, Seen
from zephon.io.payload import RowSource
from zephon.io.raw_rows import RawRow
from zephon.io.shard import Shard
from zephon.io.shards import Shards


@dataclass(frozen=True, slots=True, eq=False)
class DecodedGroup:
    """One row group, decoded.

    columns: one column a plan's column, named by its path, without nulls but of kind "any".
    faults: bad rows; several entries may name the same row.
    payload: the whole rows, if they were asked for.
    bytes: memory that all of it holds.
    """

    columns: pa.RecordBatch
    faults: tuple[Faults, ...]
    payload: RowSource | None
    bytes: int


class Texts(Protocol):
    """Keeps the text of blocks that could only be had by reading a file from its front."""

    def find(self, shard: Shard, start: int, stop: int, /) -> bytes | None:
        """Give the text of a block by its place in the decoded file; None if it is not there."""
        ...

    def keep(self, shard: Shard, start: int, text: bytes, /) -> None:
        """Take the text of the block that begins at a place, or not."""
        ...


class GroupReader(ABC):
    """Decodes row groups of one dataset; any number of threads may call ``read`` at once."""

    @abstractmethod
    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one row group.

        Args:
            shard: position in the dataset's shards.
            group: position in the shard's row groups.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """

    def statistics(self, shard: int, groups: Sequence[int]) -> Sequence[Mapping[str, Statistics]]:
        """Say what a file tells of the columns of row groups, by path, without reading rows.

        A column is left out if it is not known whether all its values are good ones.

        Args:
            shard: position in the dataset's shards.
            groups: positions in the shard's row groups.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        return [{} for _ in groups]

    def keep_texts(self, texts: Texts) -> None:  # noqa: B027 - most files are read anywhere
        """Let text that cost much to have be kept."""

    def leave_rows(self) -> None:  # noqa: B027 - whole rows of most files are never bad
        """Leave it to whoever looks at a whole row to find that it is bad; columns are checked."""

    def check_unchanged(self, shard: int) -> None:  # noqa: B027 - rows in memory stay as they are
        """Refuse a file that was written to since its rows were counted, where statistics tell.

        Raises:
            ShardError: it was.
        """


class Format(ABC):
    """One file format. Holds no state: everything known of a shard is in its ``Shard``.

    kind: its name, which ``fmt`` takes.
    suffixes: of its files, in lower case, the longest of several that fit last.
    lists_in: what rows hold lists of numbers in; None: each its own.
    pads_objects: an object has all keys that others of its column have, as null.
    names_all_fields: files say which columns they have, so that no row has another one.
    types_indexed: only an index tells the types of fields.
    columns_apart: reading a column costs nothing for those beside it.
    reads_far_files: files in far places are counted and read there, a range at a time. Those of
        other formats must be copied whole.
    option_defaults: what ``format_options`` may say, with what holds where it does not.
    options: what it said, with the defaults.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    lists_in: ClassVar[str | None]
    pads_objects: ClassVar[bool]
    names_all_fields: ClassVar[bool] = False
    types_indexed: ClassVar[bool] = False
    columns_apart: ClassVar[bool] = False
    reads_far_files: ClassVar[bool] = False
    option_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})

    def configured(self, dataset: str, given: Mapping[str, Any]) -> Self:
        """Give this format with options; without any, itself.

        Raises:
            DatasetError: it has no such option, or not such a value.
        """
        if not given:
            return self
        where = f"dataset {dataset!r}: format_options of fmt={self.kind!r}"
        if not self.option_defaults:
            raise DatasetError(f"{where} must be left out, got {dict(given)!r}; it has none")
        for name in given:
            if name not in self.option_defaults:
                told = nearest(str(name), self.option_defaults)
                raise DatasetError(f"{where} has no {name!r}; {told}")
        made = copy(self)
        made.options = {**self.option_defaults, **given}
        problem = made.option_problem()
        if problem:
            raise DatasetError(f"{where} {problem}")
        return made

    def option_problem(self) -> str:
        """Say which option has a value that cannot be, what it must be, and what came; "" if none.

        A message goes on with it: "format_options of fmt='csv' must have ...".
        """
        return ""

    def said_options(self) -> dict[str, Any]:
        """Give the options that differ from their defaults: what a recipe holds of them."""
        return {
            name: value
            for name, value in self.options.items()
            if value != self.option_defaults.get(name)
        }

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.said_options() == other.said_options()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.said_options())

    @abstractmethod
    def count(self, dataset: str, file: DataFile) -> Shard:
        """Count the rows of one file and find its row groups.

        Raises:
            ShardError: the file is not of this format, or is cut off.
        """

    @abstractmethod
    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """List the top-level columns, and say whether every row is known to have them all."""

    @abstractmethod
    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Join the types of top-level columns over all shards, or all rows in memory.

        Reads no file: what footers and indexes have told of is all that is known.
        """

    @abstractmethod
    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse what a user said of the types of fields where it is known to be wrong.

        Args:
            dataset: its name, for messages.
            shards: of the dataset.
            columns: of kind "any", one a declared field.

        Raises:
            DatasetError: no row can have such a field.
        """

    @abstractmethod
    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Look at some fields of the first rows of the first shard that has any.

        Args:
            dataset: its name, for messages.
            shards: of the dataset.
            names: top-level fields that some row is known to have.

        Returns:
            what was seen of each field that the format does not know to be missing somewhere.

        Raises:
            ShardError: the file cannot be read.
        """

    @abstractmethod
    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make what decodes these columns, and whole rows if ``payload``.

        Raises:
            DatasetError: a shard is known not to have a column, or has it in another type.
        """

    def reads_forward(self, shards: Shards) -> bool:
        """Say whether any of these files can be read from its front only."""
        return False

    def raw_rows(
        self, groups: GroupReader, shard: int, group: int, rows: Sequence[int]
    ) -> list[RawRow]:
        """Give rows as they lie in the file, for whoever writes down what is wrong with them.

        Args:
            groups: of this format, made with whole rows.
            shard: position in the dataset's shards.
            group: position in the shard's row groups.
            rows: positions in the row group.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        payload = groups.read(shard, group).payload
        return [RawRow(b"" if payload is None else payload.raw(row)) for row in rows]

    def front_bytes(self, shard: Shard) -> int | None:
        """Say how much of a file's front ``fields`` and ``first_lists`` look at; None: all of it.

        Args:
            shard: the first that has rows.
        """
        return None

    def group_bytes(self, shard: Shard) -> NDArray[np.int64] | None:
        """Give the decoded bytes of each row group, shape [groups].

        None where they are not known without reading rows, or the file cannot be read: whoever
        reads its rows says what is wrong with it.
        """
        return None


def _again(kind: type[Format], said: Mapping[str, Any]) -> Format:
    """Make a format of what it is pickled as; whoever unpickles it has its module imported."""
    return kind().configured("", said)


def columns_batch(
    columns: Sequence[Column], arrays: Sequence[pa.Array], rows: int
) -> pa.RecordBatch:
    """Join arrays to a batch; without any, a batch that still has ``rows`` rows."""
    if not arrays:
        return no_columns(rows)
    return pa.RecordBatch.from_arrays(list(arrays), names=[column.path for column in columns])


def held_bytes(arrays: Sequence[pa.Array]) -> int:
    """Add up the buffers under some arrays, each buffer once, whole even under a slice."""
    buffers = {
        buffer.address: buffer.size
        for array in arrays
        for buffer in array.buffers()
        if buffer is not None
    }
    return sum(buffers.values())
