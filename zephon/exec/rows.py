"""The documents that one lane holds: one table of integers, and the buffers that it points into.

A document is an arrival number (``seq``). The table says for each which buffer holds its tokens,
where, how many, and its reference, so nothing per document is a Python object. A document known
by reference alone (after a restore) has no buffer until ``fill`` gives it one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.payload import Payload

UNREAD = -1
_PART, _START, _LENGTH, _INDEX = range(4)
_COMPONENT, _SHARD, _ROW, _PASS, _ORDINAL, _CHILD, _LAST = range(4, 11)
_COLUMNS = 11


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


@dataclass(frozen=True, slots=True)
class Part:
    """A block while some document of it is held: its buffer, and arrivals first_seq to last_seq.

    tokens: of all its documents.
    """

    buffer: Buffer
    payload: Payload | None
    first_seq: int
    last_seq: int
    tokens: int


class HeldRows:
    """Documents from arrival ``base`` on; see the module's first lines."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        self.base = 0
        self.next_seq = 0
        self.unread_until = 0  # no document from this arrival on is unread
        self.parts: dict[int, Part] = {}
        self._next_part = 0
        self._table = np.zeros((_COLUMNS, 256), np.int64)

    def append(self, block: Block) -> int:
        """Hold a block's documents; return the arrival number of the first."""
        first = self._reserve(block.refs)
        count = len(block.refs)
        at = first - self.base
        table = self._table[:, at : at + count]
        table[_PART] = self._next_part
        table[_START] = block.offsets[:-1]
        table[_LENGTH] = block.offsets[1:] - block.offsets[:-1]
        table[_INDEX] = np.arange(count)
        if count:
            self._add_part(block, first, first + count - 1)
        return first

    def append_unread(self, refs: Refs, lengths: NDArray[np.int64]) -> int:
        """Hold documents by reference alone; return the arrival number of the first."""
        first = self._reserve(refs)
        table = self._table[:, first - self.base : self.next_seq - self.base]
        table[_PART] = UNREAD
        table[_LENGTH] = lengths
        self.unread_until = self.next_seq
        return first

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
            if part.last_seq < seq:
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

    def _reserve(self, refs: Refs) -> int:
        count = len(refs)
        first, need = self.next_seq, self.next_seq - self.base + count
        if need > self._table.shape[1]:
            grown = np.zeros((_COLUMNS, 2 * need), np.int64)
            grown[:, : first - self.base] = self._table[:, : first - self.base]
            self._table = grown
        table = self._table[:, first - self.base : need]
        table[_COMPONENT] = refs.component
        table[_SHARD] = refs.shard
        table[_ROW] = refs.row
        table[_PASS] = refs.pass_index
        table[_ORDINAL] = refs.ordinal
        table[_CHILD] = refs.child
        table[_LAST] = refs.last_child
        self.next_seq = first + count
        return first

    def _add_part(self, block: Block, first_seq: int, last_seq: int) -> None:
        part = Part(block.buffer, block.payload, first_seq, last_seq, block.tokens)
        self.parts[self._next_part] = part
        self._next_part += 1

    def _compact(self, number: int, part: Part) -> None:
        """Copy a part's tokens out of a buffer that other lanes have mostly let go."""
        first = max(part.first_seq, self.base) - self.base
        table = self._table[:, first : part.last_seq + 1 - self.base]
        own = table[:, table[_PART] == number]
        start = int(own[_START].min())
        stop = int((own[_START] + own[_LENGTH]).max())
        columns = {name: c[start:stop].copy() for name, c in part.buffer.columns.items()}
        part.buffer.live -= part.tokens
        table[_START, table[_PART] == number] -= start
        self.parts[number] = replace(part, buffer=Buffer(columns, part.tokens, part.tokens))
