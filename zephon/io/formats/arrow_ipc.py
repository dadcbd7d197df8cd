"""Arrow IPC: the file format and the stream format, which is what many caches of data sets write.

A row group is a record batch; one of many rows that is not compressed is cut into several, which
costs nothing, since files are mapped and not copied. Of a compressed batch only the columns are
decompressed that are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from zephon.io.fields import Column
from zephon.io.formats.arrow_batches import ArrowGroups, map_file
from zephon.io.formats.arrow_messages import messages_of
from zephon.io.formats.blocks import Block, Decoded
from zephon.io.formats.format import GroupReader
from zephon.io.formats.parquet_layouts import decoded_schema, encoded_schema
from zephon.io.formats.table_format import TableFormat
from zephon.io.shard import Shard
from zephon.io.shards import Shards

_GROUP_BYTES = 16 << 20  # a larger batch is cut, unless it is compressed


class Arrow(TableFormat):
    """Files that end in .arrow, .ipc or .feather."""

    kind = "arrow"
    suffixes = (".arrow", ".ipc", ".feather")
    columns_apart = True
    counts_quickly = True
    gives_way = True

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Find the record batches."""
        content, view = map_file(file.fileno())
        messages = messages_of(view)
        schema = pa.ipc.read_schema(content.slice(*_sized(messages.schema)))
        _look_at_names(schema)
        facts["schema"] = encoded_schema(schema.remove_metadata())
        for span, rows, compressed in messages.batches:
            parts = 1
            if not compressed:
                parts = max(1, min(rows, (span.stop - span.start) // _GROUP_BYTES))
            edges = np.linspace(0, rows, parts + 1).astype(np.int64)
            for part in np.diff(edges).tolist():  # all at the place of the batch
                yield Block(span.start, part)

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Refuse: batches are read by their places."""
        raise NotImplementedError

    def schema(self, facts: Mapping[str, Any]) -> pa.Schema:
        """Give the schema."""
        return decoded_schema(facts["schema"])

    def group_bytes(self, shard: Shard) -> None:
        """Say nothing: the places of batches do not tell it."""

    def reader(
        self, dataset: str, shards: Shards, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Check every schema, then make the reader."""
        self.check_columns(dataset, shards, columns)
        return ArrowGroups(dataset, shards, columns, self.schema_of, payload=payload)

    def tables(self, dataset: str, shard: Shard) -> Iterator[pa.Table]:
        """Give the record batches."""
        groups = ArrowGroups(dataset, [shard], (), self.schema_of, payload=True)
        for group in range(len(shard.group_rows)):
            yield groups.table(0, group, None)


def _look_at_names(fields: Iterable[pa.Field]) -> None:
    """Raise a UnicodeError where the name of a field is not UTF-8."""
    for field in fields:
        len(field.name)
        _look_at_names(field.type.field(place) for place in range(field.type.num_fields))


def _sized(span: Sequence[int]) -> tuple[int, int]:
    return span[0], span[1] - span[0]
