"""The documents that one lane holds: one table of integers, and the buffers that it points into.

A document is an arrival number (``seq``). The table says for each which buffer holds its tokens,
where, how many, and its reference, so nothing per document is a Python object. A document known
by reference alone (after a restore) has no buffer until ``fill`` gives it one.

In a lane whose strands are merged by tokens, documents wait for an arrival number, strand by strand
in tables of their own; two columns more say where in its strand a document stands and when it came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.payload import Payload

UNREAD = -1
_PART, _START, _LENGTH, _INDEX = range(4)
_COMPONENT, _SHARD, _ROW, _PASS, _ORDINAL, _CHILD, _LAST = range(4, 11)
_POSITION, _TIME = 11, 12
_COLUMNS, _MERGED_COLUMNS = 11, 13


@dataclass(slots=True, eq=False)
class Buffer:
    """Tokens that one task made, for one lane or for several.

    columns: the token column and those aligned with it, by name, each of shape [tokens];
    read-only. size: tokens of all its blocks. live: tokens of those that a lane still holds.
    """

    columns: dict[str, NDArray]
    size: int
    live: int


@dataclass(frozen=True, slots=True)
class Block:
    """What a segment made of consecutive draws of one lane.

    refs: one a document. buffer: holds the tokens, maybe other lanes' too. offsets: document d is
    tokens [offsets[d], offsets[d + 1]) of the buffer, shape [docs + 1], int64. payload: whole
    rows, where they are kept. failure: what the first bad row raises, if one follows.
    """

    refs: Refs
    buffer: Buffer
    offsets: NDArray[np.int64]
    payload: Payload | None
    failure: Exception | None = None

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(slots=True, eq=False)
class Part:
    """A block while some document of it is held: its buffer, and arrivals first_seq to last_seq.

    tokens: of all its documents. strand, waiting: the strand in which so many of them wait.
    """

    buffer: Buffer
    payload: Payload | None
    first_seq: int
    last_seq: int
    tokens: int
    strand: int = 0
    waiting: int = 0


class HeldRows:
    """Documents from arrival ``base`` on; see the module's first lines.

    Args:
        lane: whose.
        strands: of a lane that merges strands; 0: draws arrive in the lane's order.
    """

    def __init__(self, lane: int, strands: int = 0) -> None:
        self.lane = lane
        self.base = 0
        self.next_seq = 0
        self.unread_until = 0  # no document from this arrival on is unread
        self.parts: dict[int, Part] = {}
        self._next_part = 0
        self._merged = strands > 0
        self._columns = _MERGED_COLUMNS if strands else _COLUMNS
        self._table = np.zeros((self._columns, 256), np.int64)
        self._waiting: list[deque[NDArray[np.int64]]] = [deque() for _ in range(strands)]

    def append(self, block: Block) -> int:
        """Hold a block's documents; return the arrival number of the first."""
        count = len(block.refs)
        first = self._reserve(count)
        table = self._table[:, first - self.base : self.next_seq - self.base]
        _write_refs(table, block.refs)
        self._write_places(table, block)
        if count:
            self._add_part(block, first, first + count - 1)
        return first

    def append_unread(
        self,
        refs: Refs,
        lengths: NDArray[np.int64],
        positions: NDArray[np.int64] | None = None,
        times: NDArray[np.int64] | int = 0,
    ) -> int:
        """Hold documents by reference alone; return the arrival number of the first.

        Args:
            refs: of each document.
            lengths: tokens of each, shape [docs].
            positions, times: of documents that were merged; see ``append_merged``.
        """
        first = self._reserve(len(refs))
        table = self._table[:, first - self.base : self.next_seq - self.base]
        _write_refs(table, refs)
        table[_PART] = UNREAD
        table[_LENGTH] = lengths
        if self._merged:
            table[_POSITION] = refs.ordinal if positions is None else positions
            table[_TIME] = times
        self.unread_until = self.next_seq
        return first

    def wait(self, strand: int, block: Block) -> None:
        """Hold a block's documents behind those of its strand that wait to be merged."""
        count = len(block.refs)
        if not count:
            return
        table = np.empty((_MERGED_COLUMNS, count), np.int64)
        _write_refs(table, block.refs)
        self._write_places(table, block)
        self._waiting[strand].append(table)
        self._add_part(block, self.next_seq, -1, strand, count)

    def append_merged(
        self,
        counts: Sequence[tuple[int, int]],
        order: NDArray[np.int64],
        ordinals: NDArray[np.int64],
        began: int,
    ) -> int:
        """Let waiting documents arrive; return the arrival number of the first.

        Args:
            counts: strands, and how many documents of each arrive.
            order: the place of each arriving document among these, strand after strand;
                shape [docs].
            ordinals: the draw of the lane that each is, shape [docs].
            began: tokens of the lane before the first.
        """
        arriving = [part for strand, count in counts for part in self._take_waiting(strand, count)]
        found = arriving[0] if len(arriving) == 1 else np.concatenate(arriving, axis=1)
        first = self._reserve(len(order))
        table = self._table[:, first - self.base : self.next_seq - self.base]
        np.take(found, order, axis=1, out=table, mode="clip")
        table[_POSITION] = table[_ORDINAL]
        table[_ORDINAL] = ordinals
        length = table[_LENGTH]
        table[_TIME] = began + np.cumsum(length) - length
        # Backwards, so that the first place of each is its last.
        numbers, behind, sizes = np.unique(
            table[_PART, ::-1], return_index=True, return_counts=True
        )
        for number, at, size in zip(numbers.tolist(), behind.tolist(), sizes.tolist(), strict=True):
            part = self.parts[number]
            part.waiting -= size
            part.last_seq = self.next_seq - 1 - at
        return first

    def drop_waiting(self, strand: int) -> None:
        """Let go of the documents of a strand that wait to be merged."""
        self._waiting[strand].clear()
        for part in self.parts.values():
            if part.strand == strand:
                part.waiting = 0

    def fill(self, seqs: NDArray[np.int64], block: Block, documents: NDArray[np.int64]) -> None:
        """Give unread documents their tokens.

        Args:
            seqs: arrival numbers, shape [docs].
            block: tokens of these documents and perhaps of others.
            documents: which document of ``block`` each is, shape [docs].
        """
        at = seqs - self.base
        self._table[_PART, at] = self._next_part
        self._table[_START, at] = block.offsets[documents]
        self._table[_INDEX, at] = documents
        self._add_part(block, int(seqs.min()), int(seqs.max()))

    def release_before(self, seq: int) -> None:
        """Let go of all documents that arrived before ``seq``."""
        for number, part in list(self.parts.items()):
            if part.last_seq < seq and not part.waiting:
                part.buffer.live -= part.tokens
                del self.parts[number]
            elif 2 * part.buffer.live < part.buffer.size:
                self._compact(number, part)
        dead = seq - self.base
        if dead > 64 and 2 * dead > self._table.shape[1]:
            live = self.next_seq - seq
            self._table[:, :live] = self._table[:, dead : dead + live].copy()
            self.base = seq

    def lengths(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of each document, shape [docs], int64."""
        return self._table[_LENGTH, seqs - self.base]

    def places(
        self, seqs: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return part number, first token in the part, and row in the part; each [docs], int64."""
        part, start, _, index = self._table[:4, seqs - self.base]
        return part, start, index

    def positions(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the draw of each document, counted in its own strand, shape [docs], int64."""
        return self._table[_POSITION if self._merged else _ORDINAL, seqs - self.base]

    def marks(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the draw and the lane time of each document, shape [docs, 2], int64.

        Time is tokens before it where strands are merged, else the draw once more: documents
        without tokens come at one time, and only the draw tells them apart.
        """
        at = seqs - self.base
        time = self._table[_TIME if self._merged else _ORDINAL, at]
        return np.column_stack([self._table[_ORDINAL, at], time])

    def refs(self, seqs: NDArray[np.int64]) -> Refs:
        """Return the references of documents."""
        columns = self._table[:, seqs - self.base]
        return Refs(
            lane=np.full(len(seqs), self.lane, np.int32),
            component=columns[_COMPONENT].astype(np.int32),
            shard=columns[_SHARD],
            row=columns[_ROW],
            pass_index=columns[_PASS].astype(np.int32),
            ordinal=columns[_ORDINAL],
            child=columns[_CHILD].astype(np.int32),
            last_child=columns[_LAST].astype(bool),
        )

    def _reserve(self, count: int) -> int:
        first, need = self.next_seq, self.next_seq - self.base + count
        if need > self._table.shape[1]:
            grown = np.zeros((self._columns, 2 * need), np.int64)
            grown[:, : first - self.base] = self._table[:, : first - self.base]
            self._table = grown
        self.next_seq = first + count
        return first

    def _write_places(self, table: NDArray[np.int64], block: Block) -> None:
        table[_PART] = self._next_part
        table[_START] = block.offsets[:-1]
        table[_LENGTH] = block.offsets[1:] - block.offsets[:-1]
        table[_INDEX] = np.arange(len(block.refs))

    def _take_waiting(self, strand: int, count: int) -> list[NDArray[np.int64]]:
        tables, taken = self._waiting[strand], []
        while count:
            table = tables.popleft()
            if table.shape[1] > count:
                tables.appendleft(table[:, count:])
                table = table[:, :count]
            count -= table.shape[1]
            taken.append(table)
        return taken

    def _add_part(
        self, block: Block, first_seq: int, last_seq: int, strand: int = 0, waiting: int = 0
    ) -> None:
        self.parts[self._next_part] = Part(
            block.buffer, block.payload, first_seq, last_seq, block.tokens, strand, waiting
        )
        self._next_part += 1

    def _compact(self, number: int, part: Part) -> None:
        """Copy a part's tokens out of a buffer that other lanes have mostly let go."""
        first = max(part.first_seq, self.base) - self.base
        tables = [self._table[:, first : max(part.last_seq + 1 - self.base, 0)]]
        if part.waiting:
            tables += self._waiting[part.strand]
        owned = [table[_PART] == number for table in tables]
        starts = np.concatenate([t[_START, own] for t, own in zip(tables, owned, strict=True)])
        lengths = np.concatenate([t[_LENGTH, own] for t, own in zip(tables, owned, strict=True)])
        start, stop = int(starts.min()), int((starts + lengths).max())
        columns = {name: c[start:stop].copy() for name, c in part.buffer.columns.items()}
        part.buffer.live -= part.tokens
        for table, own in zip(tables, owned, strict=True):
            table[_START, own] -= start
        part.buffer = Buffer(columns, part.tokens, part.tokens)


def _write_refs(table: NDArray[np.int64], refs: Refs) -> None:
    table[_COMPONENT] = refs.component
    table[_SHARD] = refs.shard
    table[_ROW] = refs.row
    table[_PASS] = refs.pass_index
    table[_ORDINAL] = refs.ordinal
    table[_CHILD] = refs.child
    table[_LAST] = refs.last_child
