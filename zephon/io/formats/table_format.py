"""The base of formats whose files say which columns they have, and whose blocks are tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from zephon.io.faults import Faults
from zephon.io.field_types import FoundType
from zephon.io.fields import LOOKED_AT, Column, Field, Seen
from zephon.io.formats.arrow_columns import converted_column
from zephon.io.formats.block_format import BlockFormat
from zephon.io.formats.block_groups import BlockGroups
from zephon.io.formats.block_layouts import BlockLayouts, layout_of
from zephon.io.formats.first_rows import seen_in_column
from zephon.io.formats.format import GroupReader
from zephon.io.formats.table_schemas import (
    check_column,
    check_declared_columns,
    check_whole_rows,
    fields_of_schemas,
    types_of_schemas,
)
from zephon.io.shard import Shard
from zephon.io.shards import Shards


class TableFormat(BlockFormat):
    """A format of which ``decode`` gives tables, of the columns that ``schema`` tells."""

    lists_in = "np"
    pads_objects = True
    names_all_fields = True
    types_indexed = False

    @abstractmethod
    def schema(self, facts: Mapping[str, Any]) -> pa.Schema:
        """Give the columns of a file.

        Args:
            facts: what ``split`` noted of it.
        """

    def check_column(self, dataset: str, shard: str, schema: pa.Schema, column: Column) -> None:
        """Refuse a column that a shard does not have, or not in a type that can be read.

        Raises:
            DatasetError: names shard and column, and what there is.
        """
        check_column(dataset, shard, schema, column)

    def schema_of(self, shard: Shard) -> pa.Schema:
        """Give the columns of a shard."""
        return self.schema(layout_of(shard).facts)

    def fields(self, dataset: str, shards: Shards) -> tuple[tuple[Field, ...], bool]:
        """Join the columns of all files; complete if every one has every column."""
        return fields_of_schemas([schema for _, schema in self._telling(shards)])

    def types(self, dataset: str, shards: Shards) -> Mapping[str, FoundType]:
        """Join the types of all files that have rows."""
        return types_of_schemas(
            (f"shard {name!r}", schema) for name, schema in self._telling(shards)
        )

    def check_declared(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse columns that no shard has, or that one has in a type that cannot be read so."""
        check_declared_columns(dataset, self._telling(shards), columns, self.check_column)

    def first_lists(self, dataset: str, shards: Shards, names: Sequence[str]) -> dict[str, Seen]:
        """Take kinds from what all files say, and lengths from the first rows."""
        schemas = [self.schema_of(shards[place]) for place in self._differing(shards)]
        here = [n for n in names if schemas and all(s.names.count(n) == 1 for s in schemas)]
        if not here:
            return {}
        first = shards[int((shards.rows > 0).argmax())]
        found: dict[str, list[pa.Array]] = {name: [] for name in here}
        rows = 0
        for table in self.tables(dataset, first):
            for name in here:
                found[name] += table.column(name).slice(0, LOOKED_AT - rows).chunks
            rows += table.num_rows
            if rows >= LOOKED_AT:
                break
        types = {name: [schema.field(name).type for schema in schemas] for name in here}
        return {name: seen_in_column(_as_one(found[name]), types[name]) for name in here}

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Check what every file that has rows says, then make the reader."""
        self.check_columns(dataset, shards, columns)
        for place in self._differing(shards) if payload else ():
            check_whole_rows(dataset, shards[place].name, self.schema_of(shards[place]))
        return BlockGroups(
            dataset,
            shards,
            columns,
            self.kind,
            self.decode,
            payload=payload,
            convert=self.convert,
            has_lines=self.has_lines,
        )

    def convert(self, table: pa.Table, column: Column) -> tuple[pa.Array, Faults]:
        """Make the column that a plan reads of a table, and say which rows are bad."""
        return converted_column(table, column)

    def tables(self, dataset: str, shard: Shard) -> Iterator[pa.Table]:
        """Give the rows of a shard, block by block.

        Raises:
            ShardError: the file cannot be read.
        """
        groups = BlockGroups(dataset, [shard], (), self.kind, self.decode, payload=False)
        try:
            for group in range(len(shard.group_rows)):
                found = groups.decoded(0, group)
                if found.table is not None:
                    yield found.table
        finally:
            groups.close()

    def check_columns(self, dataset: str, shards: Shards, columns: Sequence[Column]) -> None:
        """Refuse columns that a file with rows does not have, or in no type that can be read."""
        for place in self._differing(shards):
            shard = shards[place]
            for column in columns:
                self.check_column(dataset, shard.name, self.schema_of(shard), column)

    def _differing(self, shards: Shards) -> list[int]:
        """Find the first shard with rows of each different kind of file."""
        return cast(BlockLayouts, shards.layouts).first_of_each(np.flatnonzero(shards.rows))

    def _telling(self, shards: Shards) -> list[tuple[str, pa.Schema]]:
        """Give the shards that say what columns there are: where none has rows, the first."""
        places = self._differing(shards) or list(range(min(1, len(shards))))
        return [(shards[place].name, self.schema_of(shards[place])) for place in places]


def _as_one(chunks: Sequence[pa.Array]) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    dictionaries = [pa.types.is_dictionary(chunk.type) for chunk in chunks]
    if any(dictionaries):  # each has its own
        return pa.concat_arrays([chunk.dictionary_decode() for chunk in chunks])
    return pa.concat_arrays(chunks)
