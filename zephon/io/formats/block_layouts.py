"""Where the blocks of files begin, for formats that read a block at a time, and what files say.

In an index, ``extra.blocks`` tells ``start`` (where the first block begins), ``bytes`` and ``rows``
of each, ``extra.about`` what the file says of all of them, such as the header of a table,
``extra.format`` the format and ``extra.options`` the options that it was read with;
``extra.types`` the types of fields, for formats of which nothing else does (``line_types``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.formats.file_format import Entry, EntryProblem, Number
from zephon.io.formats.line_types import Types, joined_types, stored_types
from zephon.io.offsets import offsets_of
from zephon.io.shard import Shard
from zephon.io.shards import Layouts

LAYOUT_TYPES: Mapping[str, pa.DataType] = {
    "offsets": pa.large_list(pa.int64()),
    "about": pa.int32(),
}


@dataclass(frozen=True, slots=True, eq=False)
class BlockLayout:
    """The blocks of one file, end to end.

    offsets: where each begins, in bytes of the decoded file; then where the last ends, shape
        [blocks + 1], int64.
    about: what the file says of all its blocks, as JSON.
    types: of the fields, each with the row where it was met first; None where nobody looked.
    """

    offsets: NDArray[np.int64]
    about: str
    types: Mapping[str, Sequence[tuple[str, int]]] | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the file says, as values."""
        return json.loads(self.about)


@dataclass(frozen=True, slots=True, eq=False)
class BlockLayouts(Layouts):
    """The blocks of all shards.

    starts: where each shard's numbers begin in ``offsets``; then where they end, shape
        [shards + 1], int64.
    offsets: those of ``BlockLayout``, shard after shard.
    known: what files say, each different one once.
    codes: which of them each shard says, shape [shards], int32.
    options: of the format.
    types: of the fields over all shards; None where nobody looked at one.
    """

    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    known: tuple[str, ...]
    codes: NDArray[np.int32]
    options: Mapping[str, Any]
    types: Types | None = None

    @classmethod
    def joined(cls, shards: Sequence[Shard], options: Mapping[str, Any]) -> BlockLayouts:
        """Lay the blocks of some shards end to end."""
        layouts = [layout_of(shard) for shard in shards]
        known: dict[str, int] = {}
        codes = [known.setdefault(each.about, len(known)) for each in layouts]
        return cls(
            starts=offsets_of([len(each.offsets) for each in layouts]),
            offsets=np.concatenate([np.empty(0, np.int64), *(each.offsets for each in layouts)]),
            known=tuple(known),
            codes=np.array(codes, np.int32),
            options=options,
            types=joined_types(
                (shard.name, layout_of(shard).types) for shard in shards if shard.rows
            ),
        )

    @classmethod
    def stored(
        cls, columns: pa.RecordBatch, about: Mapping[str, Any], options: Mapping[str, Any]
    ) -> BlockLayouts:
        """Take up stored columns.

        Raises:
            ValueError: they do not fit each other, the row groups beside them, or the options.
        """
        if about.get("options") != dict(options):
            raise ValueError(told_options(about.get("options"), options))
        lists, groups = columns.column("offsets"), columns.column("group_rows")
        starts, offsets = lists.offsets.to_numpy(), lists.values.to_numpy()
        if not np.array_equal(starts, groups.offsets.to_numpy() + np.arange(len(starts))):
            raise ValueError("a shard must have one offset more than it has blocks")
        within = np.ones(max(0, len(offsets) - 1), bool)
        within[starts[1:-1] - 1] = False
        if not (np.diff(offsets)[within] >= 0).all():
            raise ValueError("blocks must follow one another")
        known, codes = about["known"], columns.column("about").to_numpy()
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(known):
            raise ValueError(f"a shard says what is none of the {len(known)} things stored")
        for text in known:
            json.loads(text)
        types = stored_types(about["types"]) if "types" in about else None
        return cls(starts, offsets, tuple(known), codes, dict(options), types)

    def of(self, shard: int) -> BlockLayout:
        """Give the blocks of a shard."""
        start, stop = self.starts[shard : shard + 2].tolist()
        return BlockLayout(self.offsets[start:stop], self.known[self.codes[shard]])

    def columns(self) -> dict[str, pa.Array]:
        """Give the offsets as lists, one a shard, and what each says."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.starts), pa.array(self.offsets))
        return {"offsets": lists, "about": pa.array(self.codes)}

    def about(self) -> dict[str, Any]:
        """Give what shards say, the options, and the types where they are known."""
        told = {"known": list(self.known), "options": dict(self.options)}
        return told if self.types is None else {**told, "types": self.types}

    def first_of_each(self, among: NDArray[np.int64]) -> list[int]:
        """Find the first shard that says each different thing, among some and in their order."""
        _, first = np.unique(self.codes[among], return_index=True)
        return among[np.sort(first)].tolist()


def layout_of(shard: Shard) -> BlockLayout:
    """Give the blocks that a shard was described with."""
    return cast(BlockLayout, shard.layout)


def told_options(told: object, options: Mapping[str, Any]) -> str:
    """Say that files were looked at with other options than they are to be read with."""
    return f"it was made with format_options={told!r}, not {dict(options)!r}"


class Blocks(msgspec.Struct):
    """The blocks of one file in an index; see the module."""

    bytes: list[Number]
    rows: list[Number]
    start: Number = 0


class BlockExtra(msgspec.Struct):
    """What an index says of a shard beyond its rows; see the module."""

    format: str
    blocks: Blocks
    about: dict[str, Any] = {}
    options: dict[str, Any] = {}
    types: dict[str, list[tuple[str, Number]]] | None = None


BlockEntry = Entry[BlockExtra]


def described(shard: Shard, kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a shard for an index."""
    layout = layout_of(shard)
    blocks = {
        "start": int(layout.offsets[0]),
        "bytes": np.diff(layout.offsets).tolist(),
        "rows": shard.group_rows.tolist(),
    }
    extra = {"format": kind, "blocks": blocks, "about": layout.facts, "options": dict(options)}
    return extra if layout.types is None else {**extra, "types": layout.types}


def layout_of_entry(extra: BlockExtra) -> BlockLayout:
    """Take up the description of a shard."""
    offsets = offsets_of(extra.blocks.bytes) + extra.blocks.start
    return BlockLayout(offsets, facts_text(extra.about), extra.types)


def facts_text(facts: Mapping[str, Any]) -> str:
    """Write what a file says; the same thing always in the same words."""
    return json.dumps(facts, sort_keys=True)


def check_entry(
    entry: BlockEntry, position: int, options: Mapping[str, Any], *, compressed: bool
) -> None:
    """Check that an entry adds up, and is of files read with these options.

    Raises:
        EntryProblem: it contradicts itself, or it is not.
    """
    blocks = entry.extra.blocks
    if entry.extra.options != dict(options):
        raise EntryProblem(position, told_options(entry.extra.options, options))
    if len(blocks.bytes) != len(blocks.rows):
        raise EntryProblem(position, "extra.blocks must tell the bytes and rows of each")
    if sum(blocks.rows) != entry.num_rows:
        told = f"num_rows is {entry.num_rows}"
        raise EntryProblem(position, f"{told}, but its blocks hold {sum(blocks.rows)}")
    held = blocks.start + sum(blocks.bytes)
    if held > entry.bytes and not compressed:
        raise EntryProblem(position, f"it has {entry.bytes} bytes, but its blocks {held}")
