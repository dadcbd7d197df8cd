"""Who a record is: its sample, its place in the stream, and what went into it.

A cursor orders records inside a lane; a meta carries the cursor, the lane and the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

ChunkId: TypeAlias = int
ChunkOffset: TypeAlias = int
ComponentId: TypeAlias = int
DatasetId: TypeAlias = int
LaneId: TypeAlias = int
LineageIndex: TypeAlias = int
LocalSampleId: TypeAlias = int
ShardId: TypeAlias = int

LineagePath: TypeAlias = tuple[LineageIndex, ...]
SampleId: TypeAlias = tuple[DatasetId, ShardId, LocalSampleId]
SampleCursorKey: TypeAlias = tuple[ChunkId, ChunkOffset, LineagePath, SampleId]

SampleNumeric: TypeAlias = int | float | np.integer[Any] | np.floating[Any]
SamplePayloadAtom: TypeAlias = str | bytes | SampleNumeric | None
SamplePayloadArray: TypeAlias = Any  # a NumPy array or a torch tensor, which is not imported here
SamplePayloadDict: TypeAlias = dict[str, Any]
SamplePayload: TypeAlias = Any  # a SamplePayloadDict as a rule, else an array, an atom or a list

CONTRIBUTORS = "_contributors"
TOMBSTONE = "_tombstone"
FLUSH_SENTINEL = "_flush_sentinel"
SOURCE_EXHAUSTED = "_source_exhausted"
PACKING_METADATA = "_packing_metadata"
PAD_TOKEN_ID = "_pad_token_id"  # rows of unequal length are padded with it when they are stacked
PLACEMENT = "_placement"
"""How an engine laid out a record, so that it is read like the columns it came from: a dict of

lengths: tokens of each document that was packed into it, a tuple; None: it is one document.
tokens_field: where its tokens are; None: it is a row of a dataset as it was.
fields: what was packed with the tokens, a tuple; its documents hold fields of their source rows
besides. None: there are none such.
pad_token_id: what ``to_training`` pads with; None: it was not said.
"""


@dataclass(frozen=True, slots=True)
class SampleCursor:
    """The place of one record in its lane, ordered by chunk, offset, lineage and sample.

    lineage: the child numbers from the drawn row down to this record; () for the row itself.

    >>> parent = SampleCursor(3, 7, (0, 2, 11))
    >>> parent.child(1).as_key()
    (3, 7, (1,), (0, 2, 11))
    >>> parent < parent.child(0) < parent.child(1)
    True
    """

    chunk_id: ChunkId
    chunk_offset: ChunkOffset
    sample_id: SampleId
    lineage: LineagePath = ()

    @classmethod
    def from_key(cls, key: SampleCursorKey) -> SampleCursor:
        """Build a cursor from what ``as_key`` gave, lists in place of tuples allowed."""
        chunk_id, chunk_offset, lineage, (dataset_id, shard_id, index) = key
        return cls(chunk_id, chunk_offset, (dataset_id, shard_id, index), tuple(lineage))

    @property
    def base_offset(self) -> tuple[ChunkId, ChunkOffset]:
        """The place of the drawn row, whatever became of it."""
        return (self.chunk_id, self.chunk_offset)

    def as_key(self) -> SampleCursorKey:
        """Give the cursor as plain nested tuples, in the order that cursors compare."""
        return (self.chunk_id, self.chunk_offset, self.lineage, self.sample_id)

    def child(self, index: LineageIndex) -> SampleCursor:
        """Name the ``index``-th record made out of this one."""
        return replace(self, lineage=(*self.lineage, index))

    def __lt__(self, other: SampleCursor) -> bool:
        return self.as_key() < other.as_key() if _is_cursor(other) else NotImplemented

    def __le__(self, other: SampleCursor) -> bool:
        return self.as_key() <= other.as_key() if _is_cursor(other) else NotImplemented

    def __gt__(self, other: SampleCursor) -> bool:
        return self.as_key() > other.as_key() if _is_cursor(other) else NotImplemented

    def __ge__(self, other: SampleCursor) -> bool:
        return self.as_key() >= other.as_key() if _is_cursor(other) else NotImplemented


def _is_cursor(value: object) -> bool:
    return isinstance(value, SampleCursor)


@dataclass(frozen=True, slots=True)
class ContributorRef:
    """One source record inside a record made of several.

    is_last_child: with this piece the source record is used up.
    """

    cursor: SampleCursor
    is_last_child: bool = True


@dataclass(frozen=True, slots=True)
class SampleMeta:
    """Everything about a record but its payload.

    component_sample_counts: rows that this record uses up, by component.
    component_token_counts: tokens in it, by component; None where nothing was tokenized.
    tags: marks set by operators; keys with a leading underscore are Zephon's own.
    """

    sample_id: SampleId
    lane_id: LaneId
    chunk_id: ChunkId
    chunk_offset: ChunkOffset = 0
    component_sample_counts: dict[ComponentId, int] = field(default_factory=lambda: {0: 1})
    component_token_counts: dict[ComponentId, int] | None = None
    lineage: LineagePath = ()
    tags: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.lane_id, self.as_cursor_key()))

    @property
    def cursor(self) -> SampleCursor:
        """The place of the record in its lane."""
        return SampleCursor(self.chunk_id, self.chunk_offset, self.sample_id, self.lineage)

    def as_cursor_key(self) -> SampleCursorKey:
        """Give the cursor as plain nested tuples."""
        return (self.chunk_id, self.chunk_offset, self.lineage, self.sample_id)

    def child(self, index: LineageIndex) -> SampleMeta:
        """Give the meta of the ``index``-th record made out of this one."""
        return self.with_lineage((*self.lineage, index))

    def with_lineage(self, path: Iterable[LineageIndex]) -> SampleMeta:
        """Give the same meta under another lineage; its dicts are copies."""
        counts, tokens = self.component_sample_counts, self.component_token_counts
        return replace(
            self,
            component_sample_counts=dict(counts),
            component_token_counts=None if tokens is None else dict(tokens),
            lineage=tuple(path),
            tags=dict(self.tags),
        )

    @property
    def contributors(self) -> tuple[ContributorRef, ...] | None:
        """The source records of a record made of several; None for a plain one."""
        return self.tags.get(CONTRIBUTORS)

    def contribution_refs(self) -> tuple[ContributorRef, ...]:
        """Give the source records; a plain record is its own and only one, used up."""
        found = self.contributors
        return (ContributorRef(self.cursor),) if found is None else found

    def contribution_cursors(self) -> tuple[SampleCursor, ...]:
        """Give the places of the source records."""
        return tuple(ref.cursor for ref in self.contribution_refs())

    def with_contributors(self, contributors: Iterable[ContributorRef]) -> SampleMeta:
        """Give the same meta, made of these source records."""
        return self._tagged(CONTRIBUTORS, tuple(contributors))

    @property
    def tombstone(self) -> bool:
        """Whether the record only stands for one that was dropped."""
        return bool(self.tags.get(TOMBSTONE))

    def with_tombstone(self, tombstone: bool = True) -> SampleMeta:
        """Give the same meta, marked as dropped or not."""
        return self._tagged(TOMBSTONE, tombstone)

    @property
    def is_flush_sentinel(self) -> bool:
        """Whether the record only tells operators to flush."""
        return bool(self.tags.get(FLUSH_SENTINEL))

    @property
    def is_sentinel(self) -> bool:
        """Whether the record is a control mark and no data."""
        return self.is_flush_sentinel or bool(self.tags.get(SOURCE_EXHAUSTED))

    @property
    def padding_length(self) -> int | None:
        """Trailing pad tokens of a packed record; None where packing did not pad."""
        return (self.tags.get(PACKING_METADATA) or {}).get("padding_length")

    def _tagged(self, key: str, value: object) -> SampleMeta:
        return replace(self, tags={**self.tags, key: value})
