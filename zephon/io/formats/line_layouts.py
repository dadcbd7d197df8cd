"""What is kept of JSONL files: where their blocks of lines begin, for all shards in a few arrays.

In an index, ``extra.blocks`` tells it: ``bytes``, ``rows`` and ``lines`` of each block, the latter
only where there are blank lines, ``start`` (the length of a byte order mark) and ``opening`` (the
first bytes of the first row, which tell JSON lines from other JSON). Without them, files are read.
``extra.types`` tells the types of fields (``line_types``); without it they are not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.formats.file_format import Entry, EntryProblem, Number
from zephon.io.formats.line_blocks import LineBlocks
from zephon.io.formats.line_types import Types, joined_types, stored_types
from zephon.io.offsets import offsets_of
from zephon.io.shard import Shard
from zephon.io.shards import Layouts

_COLUMNS = ("offsets", "first_rows", "first_lines")
LAYOUT_TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(_COLUMNS, pa.large_list(pa.int64())),
    "opening": pa.binary(),
}


@dataclass(frozen=True, slots=True, eq=False)
class LineLayouts(Layouts):
    """The blocks of all shards.

    starts: where each shard's numbers begin in the other arrays; then where they end, shape
        [shards + 1], int64. A shard has one number more than it has blocks.
    offsets, first_rows, first_lines: those of ``LineBlocks``, shard after shard.
    openings: of each shard.
    types: of the fields over all shards; None where nobody looked at one.
    """

    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    first_lines: NDArray[np.int64]
    openings: pa.BinaryArray
    types: Types | None = None

    @classmethod
    def joined(cls, shards: Sequence[Shard]) -> LineLayouts:
        """Lay the blocks of some shards end to end."""
        blocks = [blocks_of(shard) for shard in shards]
        empty = np.empty(0, np.int64)
        return cls(
            starts=offsets_of([len(each.offsets) for each in blocks]),
            offsets=np.concatenate([empty, *(each.offsets for each in blocks)]),
            first_rows=np.concatenate([empty, *(each.first_rows for each in blocks)]),
            first_lines=np.concatenate([empty, *(each.first_lines for each in blocks)]),
            openings=pa.array([each.opening for each in blocks], pa.binary()),
            types=joined_types(
                (shard.name, blocks_of(shard).types) for shard in shards if shard.rows
            ),
        )

    @classmethod
    def stored(cls, columns: pa.RecordBatch, about: Mapping[str, Any]) -> LineLayouts:
        """Take up stored columns.

        Raises:
            ValueError: they do not fit each other, or the row groups beside them.
        """
        lists = [columns.column(name) for name in _COLUMNS]
        starts = lists[0].offsets.to_numpy()
        arrays = [each.values.to_numpy() for each in lists]
        first_rows, groups = arrays[1], columns.column("group_rows")
        wanted = groups.offsets.to_numpy() + np.arange(len(starts))
        if not all(np.array_equal(each.offsets.to_numpy(), wanted) for each in lists):
            raise ValueError("a shard must have one offset more than it has blocks")
        within = np.ones(max(0, len(first_rows) - 1), bool)
        within[starts[1:-1] - 1] = False
        if not np.array_equal(np.diff(first_rows)[within], groups.values.to_numpy()):
            raise ValueError("the rows of blocks must be those of the row groups")
        if not all((np.diff(each)[within] >= 0).all() for each in arrays):
            raise ValueError("blocks must follow one another")
        types = stored_types(about["types"]) if "types" in about else None
        return cls(starts, *arrays, openings=columns.column("opening"), types=types)

    def of(self, shard: int) -> LineBlocks:
        """Give the blocks of a shard."""
        start, stop = self.starts[shard : shard + 2].tolist()
        return LineBlocks(
            self.offsets[start:stop],
            self.first_rows[start:stop],
            self.first_lines[start:stop],
            self.openings[shard].as_py(),
        )

    def columns(self) -> dict[str, pa.Array]:
        """Give the arrays as lists, one a shard, and the openings."""
        arrays = (self.offsets, self.first_rows, self.first_lines)
        lists = [pa.LargeListArray.from_arrays(pa.array(self.starts), array) for array in arrays]
        return {**dict(zip(_COLUMNS, lists, strict=True)), "opening": self.openings}

    def about(self) -> dict[str, Any]:
        """Give the types; the columns say the rest."""
        return {} if self.types is None else {"types": self.types}


def blocks_of(shard: Shard) -> LineBlocks:
    """Give the blocks that a shard was described with."""
    return cast(LineBlocks, shard.layout)


class Blocks(msgspec.Struct):
    """The blocks of one file in an index; see the module."""

    bytes: list[Number]
    rows: list[Number]
    lines: list[Number] | None = None
    start: Number = 0
    opening: str = ""


class LineExtra(msgspec.Struct):
    """What an index says of a JSONL shard beyond its rows.

    raw_bytes: of the decoded text of a compressed file.
    types: of the fields; see ``line_types``.
    """

    raw_bytes: Number | None = None
    blocks: Blocks | None = None
    types: dict[str, list[tuple[str, Number]]] | None = None


LineEntry = Entry[LineExtra]


def described_blocks(blocks: LineBlocks) -> dict[str, Any]:
    """Describe blocks, and types where somebody looked, for an index."""
    sizes, rows, lines = (
        np.diff(each).tolist() for each in (blocks.offsets, blocks.first_rows, blocks.first_lines)
    )
    found: dict[str, Any] = {"bytes": sizes, "rows": rows}
    if lines != rows:
        found["lines"] = lines
    if blocks.offsets[0]:
        found["start"] = int(blocks.offsets[0])
    if blocks.opening:
        found["opening"] = blocks.opening.decode("latin-1")  # one sign a byte, whatever they are
    return {"blocks": found} if blocks.types is None else {"blocks": found, "types": blocks.types}


def line_blocks(
    blocks: Blocks, types: Mapping[str, Sequence[tuple[str, int]]] | None = None
) -> LineBlocks:
    """Take up the description of blocks."""
    lines = blocks.rows if blocks.lines is None else blocks.lines
    return LineBlocks(
        offsets_of(blocks.bytes) + blocks.start,
        offsets_of(blocks.rows),
        offsets_of(lines),
        blocks.opening.encode("latin-1"),
        types,
    )


def check_blocks(entry: LineEntry, position: int, *, compressed: bool) -> None:
    """Check that an entry adds up.

    Raises:
        EntryProblem: it contradicts itself.
    """
    size, blocks = entry.extra.raw_bytes, entry.extra.blocks
    if compressed and size is None:
        raise EntryProblem(position, "extra.raw_bytes is missing, and the file is compressed")
    if blocks is None:
        return
    lines = blocks.rows if blocks.lines is None else blocks.lines
    if not len(blocks.bytes) == len(blocks.rows) == len(lines):
        raise EntryProblem(position, "extra.blocks must tell the bytes, rows and lines of each")
    if sum(blocks.rows) != entry.num_rows:
        told = f"num_rows is {entry.num_rows}"
        raise EntryProblem(position, f"{told}, but its blocks hold {sum(blocks.rows)}")
    size, held = size if compressed else entry.bytes, blocks.start + sum(blocks.bytes)
    if held != size:
        raise EntryProblem(position, f"its text has {size} bytes, but its blocks hold {held}")
    if not blocks.opening.isascii() and max(blocks.opening) > "\xff":
        raise EntryProblem(position, "extra.blocks.opening must hold one sign a byte")
