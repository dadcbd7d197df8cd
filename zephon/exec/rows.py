"""Documents of a lane that somebody still needs: references, and where their tokens are.

Two integers name a document's tokens: a part and a place in it. A part is what one segment task
made for one lane; it lives until its last document is delivered or dropped. Lanes of one task
share its buffer. A part is copied out of it when other lanes have let go of more than half of the
buffer, or when policies hold less than half of the part: so what a lane keeps alive is bounded by
twice the tokens that it holds, or four times where lanes share buffers, for about one copy a token.
After a restore a document may be unread: it has a reference and a length, and its tokens are
fetched when a row needs them.

The table of documents is dense behind its survivors: documents that came before the last clearing
are found by search, later ones by number. It is cleared when more than half of it is dead.

A lane that merges strands has documents that have not arrived yet: they wait, strand by strand
in tables of their own; two columns more say where in its strand a document stands and when it came.

The file is long because the table of documents and what keeps it small change together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import Block, Buffer, Known, Part
from zephon.work.refs import Refs

UNREAD = -1
_PART, _START, _LENGTH, _INDEX = range(4)
_COMPONENT, _SHARD, _ROW, _PASS, _ORDINAL, _CHILD, _LAST = range(4, 11)
_POSITION, _TIME = 11, 12
_COLUMNS, _MERGED_COLUMNS = 11, 13
_LEAST_DEAD = 4096  # entries; fewer are not worth a clearing


class HoldsRows(Protocol):
    """Something that holds documents of a lane, in ``held``."""

    lane: int
    held: HeldRows


class HeldRows:
    """Documents by arrival number; see the module's first lines.

    Args:
        lane: whose.
        strands: of a lane that merges strands; 0: draws arrive in the lane's order.
        measures: names of what functions of the user make of each row.
        weights_at: gives the weights in force at a draw and a time of the lane.

    To policies it is ``Documents``. merged: the lane merges strands.
    """

    def __init__(
        self,
        lane: int,
        strands: int = 0,
        measures: Sequence[str] = (),
        weights_at: Callable[[int, int], NDArray[np.float64] | None] = lambda draw, time: None,
    ) -> None:
        self.lane = lane
        self._weights_at = weights_at
        self.next_seq = 0
        self.unread = 0
        self.parts: dict[int, Part] = {}
        self._next_part = 0
        self.merged = strands > 0
        first = _MERGED_COLUMNS if strands else _COLUMNS
        self._measures = {name: first + number for number, name in enumerate(measures)}
        self._columns = first + len(self._measures)
        self._table = np.zeros((self._columns, 256), np.int64)
        self._survivors = np.empty(0, np.int64)  # arrival numbers of the table's first entries
        self._dense_from = 0  # arrival number of the entry behind them
        self._waiting: list[deque[NDArray[np.int64]]] = [deque() for _ in range(strands)]

    def append(self, block: Block) -> int:
        """Hold a block's documents; return the arrival number of the first."""
        count = len(block.refs)
        first, table = self._reserve(count)
        self._write_block(table, block)
        if count:
            self._add_part(block)
        return first

    def append_unread(self, known: Known, times: NDArray[np.int64] | int = 0) -> int:
        """Hold documents by reference alone; return the arrival number of the first.

        Args:
            known: the documents.
            times: tokens of the lane before each, where strands are merged.
        """
        first, table = self._reserve(len(known))
        _write_refs(table, known.refs)
        table[_PART] = UNREAD
        table[_LENGTH] = known.length
        if self._measures:
            table[-len(self._measures) :] = known.measures
        if self.merged:
            table[_POSITION] = known.position
            table[_TIME] = times
        self.unread += len(known)
        return first

    def wait(self, strand: int, block: Block) -> None:
        """Hold a block's documents behind those of its strand that wait to be merged."""
        count = len(block.refs)
        if not count:
            return
        table = np.zeros((self._columns, count), np.int64)
        self._write_block(table, block)
        self._waiting[strand].append(table)
        self._add_part(block, strand, count)

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
        first, table = self._reserve(len(order))
        np.take(found, order, axis=1, out=table, mode="clip")
        table[_POSITION] = table[_ORDINAL]
        table[_ORDINAL] = ordinals
        length = table[_LENGTH]
        table[_TIME] = began + np.cumsum(length) - length
        numbers, sizes = np.unique(table[_PART], return_counts=True)
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            self.parts[number].waiting -= size
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
        at = self._at(seqs)
        self._table[_PART, at] = self._next_part
        self._table[_START, at] = block.offsets[documents]
        self._table[_INDEX, at] = documents
        self.unread -= len(seqs)
        self._add_part(block)

    def release(self, leaving: Sequence[NDArray[np.int64]], staying: NDArray[np.int64]) -> int:
        """Let go of all documents but these.

        Args:
            leaving: arrival numbers of documents in finished rows, each any number of times.
            staying: of those that policies hold, likewise.

        Returns:
            tokens of the documents that stay.
        """
        size = len(self._survivors) + self.next_seq - self._dense_from
        wanted = np.zeros(size, np.int8)
        for seqs in leaving:
            wanted[self._at(seqs)] = 1
        wanted[self._at(staying)] = 2
        live = np.flatnonzero(wanted)
        part, length, stays = self._table[_PART, live], self._table[_LENGTH, live], wanted[live] > 1
        # A document counts as a token more, for rows without tokens; one that is unread for none.
        weight = np.where(part == UNREAD, 0, length + 1)
        numbers = np.fromiter(self.parts, np.int64, len(self.parts))  # ascending, as they came
        place = np.searchsorted(numbers, part)
        total = np.bincount(place, weight, len(numbers))
        kept = np.bincount(place[stays], weight[stays], len(numbers))
        for at, (number, held) in enumerate(list(self.parts.items())):
            if not held.waiting and not total[at]:
                held.buffer.live -= held.tokens
                del self.parts[number]
                continue
            # What is leaving goes soon of itself: only what stays is worth a copy.
            most = (held.tokens + held.documents) / 2
            scattered = not held.waiting and total[at] < min(most, 2 * kept[at])
            if scattered or 2 * held.buffer.live < held.buffer.size:
                self._copy_out(number, held, live[part == number])
        if size - len(live) > len(live) + _LEAST_DEAD:
            self._clear(live)
        return int(length[stays].sum())

    def unread_seqs(self) -> NDArray[np.int64]:
        """List the documents that are unread; some may not be needed any more."""
        count = len(self._survivors)
        size = count + self.next_seq - self._dense_from
        at = np.flatnonzero(self._table[_PART, :size] == UNREAD)
        old = at < count
        return np.concatenate([self._survivors[at[old]], at[~old] + (self._dense_from - count)])

    def components(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the component of each document, shape [docs], int64."""
        return self._table[_COMPONENT, self._at(seqs)]

    def lengths(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of each document, shape [docs], int64."""
        return self._table[_LENGTH, self._at(seqs)]

    def last_parts(self, seqs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which documents are the last part of their source row, shape [docs]."""
        return self._table[_LAST, self._at(seqs)] > 0

    def measures(self, name: str, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a measure of each document, shape [docs], int64."""
        return self._table[self._measures[name], self._at(seqs)]

    def weights(self, seq: int) -> NDArray[np.float64] | None:
        """Return the weights in force when a document came, shape [components]."""
        draw, time = self.marks(np.array([seq]))[0].tolist()
        return self._weights_at(draw, time)

    def places(
        self, seqs: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return part number, first token in the part, and row in the part; each [docs], int64."""
        part, start, _, index = self._table[:4, self._at(seqs)]
        return part, start, index

    def names(self, seqs: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return the draw and the split of each document."""
        return list(zip(*self._table[_ORDINAL : _CHILD + 1, self._at(seqs)].tolist(), strict=True))

    def marks(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the draw and the lane time of each document, shape [docs, 2], int64.

        Time is tokens before it where strands are merged, else the draw once more: documents
        without tokens come at one time, and only the draw tells them apart.
        """
        at = self._at(seqs)
        time = self._table[_TIME if self.merged else _ORDINAL, at]
        return np.column_stack([self._table[_ORDINAL, at], time])

    def known(self, seqs: NDArray[np.int64]) -> Known:
        """Return what is to be written down of documents."""
        return self._known(self._table[:, self._at(seqs)])

    def known_from(self, seq: int) -> Known:
        """Return what is to be written down of the documents that arrived last, from one on."""
        stop = len(self._survivors) + self.next_seq - self._dense_from
        return self._known(self._table[:, stop - (self.next_seq - seq) : stop].copy())

    def _known(self, columns: NDArray[np.int64]) -> Known:
        return Known(
            refs=self._refs(columns),
            length=columns[_LENGTH],
            position=columns[_POSITION if self.merged else _ORDINAL],
            measures=columns[self._columns - len(self._measures) :],
        )

    def _refs(self, columns: NDArray[np.int64]) -> Refs:
        return Refs(
            lane=np.full(columns.shape[1], self.lane, np.int32),
            component=columns[_COMPONENT].astype(np.int32),
            shard=columns[_SHARD],
            row=columns[_ROW],
            pass_index=columns[_PASS].astype(np.int32),
            ordinal=columns[_ORDINAL],
            child=columns[_CHILD].astype(np.int32),
            last_child=columns[_LAST].astype(bool),
        )

    def _at(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the table's entries of documents."""
        first, count = self._dense_from, len(self._survivors)
        if not count:
            return seqs - first if first else seqs
        dense = seqs - (first - count)
        if len(seqs) and int(seqs.min()) >= first:
            return dense
        return np.where(seqs >= first, dense, np.searchsorted(self._survivors, seqs))

    def _reserve(self, count: int) -> tuple[int, NDArray[np.int64]]:
        """Make room for documents; return the first's arrival number, and their entries."""
        first = self.next_seq
        size = len(self._survivors) + first - self._dense_from
        if size + count > self._table.shape[1]:
            grown = np.zeros((self._columns, max(2 * self._table.shape[1], size + count)), np.int64)
            grown[:, :size] = self._table[:, :size]
            self._table = grown
        self.next_seq = first + count
        return first, self._table[:, size : size + count]

    def _clear(self, live: NDArray[np.int64]) -> None:
        """Forget all entries of the table but these, ascending."""
        count = len(self._survivors)
        old = live < count
        self._survivors = np.concatenate(
            [self._survivors[live[old]], live[~old] + (self._dense_from - count)]
        )
        table = np.zeros((self._columns, max(256, 2 * len(live))), np.int64)
        table[:, : len(live)] = self._table[:, live]
        self._table, self._dense_from = table, self.next_seq
        self.unread = int(np.count_nonzero(table[_PART, : len(live)] == UNREAD))

    def _write_block(self, table: NDArray[np.int64], block: Block) -> None:
        _write_refs(table, block.refs)
        table[_PART] = self._next_part
        table[_START] = block.offsets[:-1]
        table[_LENGTH] = block.offsets[1:] - block.offsets[:-1]
        table[_INDEX] = np.arange(len(block.refs))
        for name, column in self._measures.items():
            table[column] = block.measures[name]

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

    def _add_part(self, block: Block, strand: int = 0, waiting: int = 0) -> None:
        self.parts[self._next_part] = Part(
            block.buffer, block.payload, block.tokens, len(block.refs), strand, waiting
        )
        self._next_part += 1

    def _copy_out(self, number: int, part: Part, live: NDArray[np.int64]) -> None:
        """Copy what is held of a part out of its buffer; ``live``: its entries of the table."""
        tables = [(self._table, live)]
        if part.waiting:
            waiting = self._waiting[part.strand]
            tables += [(table, np.flatnonzero(table[_PART] == number)) for table in waiting]
        starts = np.concatenate([table[_START, own] for table, own in tables])
        lengths = np.concatenate([table[_LENGTH, own] for table, own in tables])
        ends = np.cumsum(lengths)
        slices = list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))
        columns = {
            name: np.concatenate([values[a:b] for a, b in slices]) if slices else values[:0]
            for name, values in part.buffer.columns.items()
        }
        if part.payload is not None:
            index = np.concatenate([table[_INDEX, own] for table, own in tables])
            part.payload = part.payload.take(index).copied()
        part.buffer.live -= part.tokens
        part.tokens, part.documents = int(ends[-1]) if len(ends) else 0, len(ends)
        part.buffer = Buffer(columns, part.tokens, part.tokens)
        done = 0
        for table, own in tables:
            table[_START, own] = (ends - lengths)[done : done + len(own)]
            table[_INDEX, own] = np.arange(done, done + len(own))
            done += len(own)


def _write_refs(table: NDArray[np.int64], refs: Refs) -> None:
    table[_COMPONENT] = refs.component
    table[_SHARD] = refs.shard
    table[_ROW] = refs.row
    table[_PASS] = refs.pass_index
    table[_ORDINAL] = refs.ordinal
    table[_CHILD] = refs.child
    table[_LAST] = refs.last_child
