"""What is kept of Parquet footers: the schema of each shard, each different one once.

In an index, ``extra.schema`` is the Arrow schema (an IPC message in base64); a shard with the same
schema as an earlier one names that in ``extra.schema_of`` instead. Where both are missing, as in
indexes of other builders, footers are read.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.formats.file_format import Entry, EntryProblem, Number
from zephon.io.formats.parquet_units import units_of
from zephon.io.shard import Shard
from zephon.io.shards import Groups, Layouts

LAYOUT_TYPES: Mapping[str, pa.DataType] = {"schema": pa.int32()}


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """What the footer says about columns. Row groups are in ``Shard.group_rows``."""

    schema: pa.Schema


@dataclass(frozen=True, slots=True, eq=False)
class ParquetLayouts(Layouts):
    """The schemas of all shards.

    known: the different ones.
    codes: which of them each shard has, shape [shards], int32.
    """

    known: tuple[ParquetLayout, ...]
    codes: NDArray[np.int32]

    @classmethod
    def joined(cls, shards: Sequence[Shard]) -> ParquetLayouts:
        """Find the different schemas among those of some shards."""
        found: dict[pa.Schema, int] = {}
        codes = [found.setdefault(schema_of(shard), len(found)) for shard in shards]
        known = tuple(ParquetLayout(schema) for schema in found)
        return cls(known, np.array(codes, np.int32))

    @classmethod
    def stored(cls, columns: pa.RecordBatch, about: Mapping[str, Any]) -> ParquetLayouts:
        """Take up stored columns.

        Raises:
            ValueError: a schema cannot be read, or a shard has none of them.
        """
        schemas = about.get("schemas")
        if not isinstance(schemas, list) or not all(isinstance(each, str) for each in schemas):
            raise ValueError(f"schemas must be a list of texts, got {schemas!r}")
        known = tuple(ParquetLayout(decoded_schema(text)) for text in schemas)
        codes = columns.column("schema").to_numpy()
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(known):
            raise ValueError(f"a shard has a schema that is none of the {len(known)} stored")
        return cls(known, codes)

    def of(self, shard: int) -> ParquetLayout:
        """Give the schema of a shard."""
        return self.known[self.codes[shard]]

    def columns(self) -> dict[str, pa.Array]:
        """Give the number of each shard's schema."""
        return {"schema": pa.array(self.codes)}

    def about(self) -> dict[str, Any]:
        """Give the schemas."""
        return {"schemas": [encoded_schema(layout.schema) for layout in self.known]}

    def units(
        self, rows: NDArray[np.int64], decoded_bytes: NDArray[np.int64], groups: Groups
    ) -> Groups:
        """Part row groups that are huge."""
        return units_of(rows, decoded_bytes, groups)

    def first_of_each(self, among: NDArray[np.int64]) -> list[int]:
        """Find the first shard of each different schema, among some positions and in their order.

        >>> a, b = ParquetLayout(pa.schema([])), ParquetLayout(pa.schema([("t", pa.int8())]))
        >>> layouts = ParquetLayouts((a, b), np.array([1, 0, 1, 0], np.int32))
        >>> layouts.first_of_each(np.array([0, 2, 3]))
        [0, 3]
        """
        _, first = np.unique(self.codes[among], return_index=True)
        return among[np.sort(first)].tolist()


def schema_of(shard: Shard) -> pa.Schema:
    """Give the schema that a shard was described with."""
    return cast(ParquetLayout, shard.layout).schema


class RowGroup(msgspec.Struct):
    """A row group in an index."""

    num_rows: Number
    total_byte_size: Number


class ParquetExtra(msgspec.Struct):
    """What an index says of a Parquet shard beyond its rows; see the module."""

    num_row_groups: Number
    row_groups: list[RowGroup]
    schema: str | None = None
    schema_of: str | None = None


ParquetEntry = Entry[ParquetExtra]


def share_schemas(names: Sequence[str], extras: Sequence[dict[str, Any]]) -> None:
    """Replace a schema that an earlier shard has too by that shard's name."""
    owners: dict[str, str] = {}
    for name, extra in zip(names, extras, strict=True):
        owner = owners.setdefault(extra["schema"], name)
        if owner != name:
            del extra["schema"]
            extra["schema_of"] = owner


def resolve_entries(entries: Sequence[ParquetEntry]) -> None:
    """Check that entries add up, and give each the schema that it refers to.

    Raises:
        EntryProblem: an entry contradicts itself.
    """
    schemas = {entry.basename: entry.extra.schema for entry in entries}
    for position, entry in enumerate(entries):
        extra = entry.extra
        if extra.num_row_groups != len(extra.row_groups):
            told = f"num_row_groups is {extra.num_row_groups}"
            raise EntryProblem(position, f"{told}, but row_groups holds {len(extra.row_groups)}")
        rows = sum([group.num_rows for group in extra.row_groups])
        if rows != entry.num_rows:
            raise EntryProblem(
                position, f"num_rows is {entry.num_rows}, but its row groups hold {rows}"
            )
        if extra.schema is None and extra.schema_of is not None:
            extra.schema = schemas.get(extra.schema_of)
        if extra.schema is not None:
            try:
                decoded_schema(extra.schema)
            except ValueError as exc:
                raise EntryProblem(position, f"extra.schema is no Arrow schema: {exc}") from exc


def encoded_schema(schema: pa.Schema) -> str:
    """Write a schema as text."""
    return base64.b64encode(schema.serialize()).decode()


@functools.lru_cache(maxsize=64)  # most shards of a dataset have the same one
def decoded_schema(text: str) -> pa.Schema:
    """Read a schema.

    Raises:
        ValueError: the text is no schema.
    """
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (ValueError, OSError, pa.ArrowException) as exc:
        raise ValueError(str(exc) or "it cannot be read") from exc
