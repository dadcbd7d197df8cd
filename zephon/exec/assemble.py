"""Placed rows to batch buffers: each token is copied once, from the segment's output to its row.

Where several lanes share a buffer, what is left of a mostly used one is copied once more before:
see ``rows.py``. Neighbouring pieces that lie side by side in one source buffer are copied as one
slice, so packing whole documents in order costs a few large copies a batch. Rows of up to
``ASSEMBLED_BYTES`` are gathered at once and batches are views of that buffer: a batch that is kept
keeps its neighbours' memory too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.batches.columns import SPAN_COLUMNS
from zephon.exec.block import Part
from zephon.exec.finished_rows import Placed
from zephon.exec.rows import HoldsRows
from zephon.io.payload import Payload
from zephon.planner.physical import RowLayout
from zephon.types import BatchRows, Spans, TokenField
from zephon.work.refs import Refs

ASSEMBLED_BYTES = 2 << 20

Taken = tuple[HoldsRows, Placed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How references become public sample ids.

    component_id, dataset_id: of each component, int32 and int64. shard_id: public ids of all
    datasets' shards, one after the other, int64. first_shard: where those of each component's
    dataset begin, int64.
    """

    component_id: NDArray[np.int32]
    dataset_id: NDArray[np.int64]
    shard_id: NDArray[np.int64]
    first_shard: NDArray[np.int64]
    chunk_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRows:
    """Consecutive delivered rows as columns.

    columns: values of each field, shape [tokens]. offsets: where each row's values begin,
    shape [rows + 1], the same for all columns. lane: shape [rows]. mark: when the document came
    that finished the row, as ``LaneRun.weights_at`` takes it, shape [rows, 2]. padding: pad tokens
    at the end of each row, shape [rows]; None where rows are never padded. payload: one source row
    a span, or what it says of itself.
    """

    columns: dict[str, NDArray]
    offsets: NDArray[np.int64]
    spans: Spans
    lane: NDArray[np.int64]
    mark: NDArray[np.int64]
    padding: NDArray[np.int64] | None
    payload: Payload | None

    def __len__(self) -> int:
        return len(self.lane)


class Assembler:
    """Gathers placed rows and cuts them into batches; remembers nothing between calls.

    layout: which fields rows have. naming: how references become public ids. pad_token_id: what
    ``to_training`` pads rows of unequal length with, where that was asked for.
    """

    def __init__(self, layout: RowLayout, naming: Naming, *, pad_token_id: int | None) -> None:
        self._layout = layout
        self._naming = naming
        self._pad_token_id = pad_token_id

    @property
    def has_tokens(self) -> bool:
        """Whether rows hold tokens."""
        return self._layout.tokens_field is not None

    @property
    def tokens_field(self) -> str | None:
        """The name of the rows' tokens; None if they have none."""
        return self._layout.tokens_field

    def gather(self, taken: Sequence[Taken]) -> GatheredRows:
        """Copy the tokens of rows, lane run after lane run, into new buffers.

        Args:
            taken: rows of lanes, in the order of delivery; every document is read.
        """
        layout = self._layout
        units = [placed.rows for _, placed in taken]
        length = np.concatenate([unit.length for unit in units])
        row_splits = _stack_splits([unit.splits for unit in units])
        ends = np.concatenate([[0], np.cumsum(length)])
        offsets, padding = ends[row_splits], None
        if layout.packing == "flat":
            width = layout.max_length or 0
            padding = width - np.diff(offsets)
            offsets = np.arange(len(row_splits), dtype=np.int64) * width
        sources = _Sources(taken)
        payload = sources.payload() if layout.payload or layout.metas else None
        return GatheredRows(
            columns=self._columns(sources, length, row_splits, padding),
            offsets=offsets,
            spans=self._spans(taken, row_splits, length),
            lane=np.concatenate([np.full(len(p), run.lane, np.int64) for run, p in taken]),
            mark=np.concatenate([placed.marks for _, placed in taken]),
            padding=padding,
            payload=payload,
        )

    def _columns(
        self,
        sources: _Sources,
        length: NDArray[np.int64],
        row_splits: NDArray[np.int64],
        padding: NDArray[np.int64] | None,
    ) -> dict[str, NDArray]:
        """Copy tokens and what is aligned with them; number the tokens of each piece."""
        layout = self._layout
        if layout.tokens_field is None:
            return {}
        if padding is not None and padding.any():
            padded = np.flatnonzero(padding)
            at = row_splits[padded + 1]
            sources.insert_padding(at, padding[padded])
            length = np.insert(length, at, padding[padded])
        total = int(length.sum())
        slices = sources.slices(length)
        most = 0 if padding is None else int(padding.max(initial=0))
        columns: dict[str, NDArray] = {}
        kinds = ("int32", *layout.aligned_kinds)
        for name, kind in zip((layout.tokens_field, *layout.aligned), kinds, strict=True):
            fill = layout.pad_token_id or 0 if name == layout.tokens_field else 0
            pad = np.full(most, fill, np.int64)
            out = np.empty(total, _dtype(kind))
            columns[name] = _copy(
                [
                    pad[a:b] if part is None else part.buffer.columns[name][a:b]
                    for part, a, b in slices
                ],
                out,
            )
        if layout.positions:
            begins = np.cumsum(length) - length
            positions = np.arange(total, dtype=np.int32)
            positions -= np.repeat(begins.astype(np.int32), length)
            columns["positions"] = positions
        return columns

    def batch(self, rows: GatheredRows) -> BatchRows:
        """Return gathered rows as one batch, whose fields are their buffers."""
        payload = rows.payload
        return BatchRows(
            fields={name: TokenField(c, rows.offsets) for name, c in rows.columns.items()},
            tokens_field=self._layout.tokens_field,
            masks=self._layout.masks,
            spans=rows.spans,
            lane=rows.lane,
            padding=rows.padding,
            packing=self._layout.packing,
            pack_payloads=self._layout.pack_payloads,
            max_length=self._layout.max_length,
            payload=payload if self._layout.payload else None,
            metas=payload if payload is not None and payload.has_metas else None,
            container=self._layout.container,
            chunk_size=self._naming.chunk_size,
            pad_token_id=self._pad_token_id,
            pad_to_longest=self._layout.pad_to_longest,
        )

    def _spans(
        self,
        taken: Sequence[Taken],
        row_splits: NDArray[np.int64],
        length: NDArray[np.int64],
    ) -> Spans:
        known = [run.held.known(placed.rows.seq) for run, placed in taken]
        whole = np.concatenate([k.length for k in known])
        start = np.concatenate([placed.rows.start for _, placed in taken])
        refs = Refs.concat([k.refs for k in known])
        names = self._naming
        split = (refs.child > 0) | ~refs.last_child
        ends = start + length == whole
        return Spans(
            row_splits=row_splits,
            start=start,
            length=length,
            closes=ends & refs.last_child,
            ends=ends,
            component=names.component_id[refs.component],
            dataset_id=names.dataset_id[refs.component],
            shard_id=names.shard_id[names.first_shard[refs.component] + refs.shard],
            row=refs.row,
            ordinal=refs.ordinal,
            child=np.where(split, refs.child, -1).astype(np.int32),
        )


class _Sources:
    """Where the tokens of the pieces of some rows are, lane run after lane run."""

    def __init__(self, taken: Sequence[Taken]) -> None:
        self._parts: list[Part | None] = [None]  # padding has no part
        numbers, starts, indices = [], [], []
        for run, placed in taken:
            part, start, index = run.held.places(placed.rows.seq)
            used, which = np.unique(part, return_inverse=True)
            numbers.append(which + len(self._parts))
            self._parts += [run.held.parts[number] for number in used.tolist()]
            starts.append(start + placed.rows.start)
            indices.append(index)
        self._part = np.concatenate(numbers)
        self._start = np.concatenate(starts)
        self._index = np.concatenate(indices)

    def insert_padding(self, at: NDArray[np.int64], length: NDArray[np.int64]) -> None:
        """Put padding before some pieces; it starts at 0 of an array of its own."""
        self._part = np.insert(self._part, at, 0)
        self._start = np.insert(self._start, at, np.zeros(len(length), np.int64))

    def slices(self, length: NDArray[np.int64]) -> list[tuple[Part | None, int, int]]:
        """Return the source of each run of tokens that lie side by side, in order.

        Args:
            length: tokens of each piece, and of padding between them.
        """
        if not len(length):
            return []
        part, ends = self._part, self._start + length
        breaks = (part[1:] != part[:-1]) | (self._start[1:] != ends[:-1])
        first = np.flatnonzero(np.concatenate([[True], breaks]))
        last = np.concatenate([first[1:] - 1, [len(length) - 1]])
        return [
            (self._parts[p], a, b)
            for p, a, b in zip(
                part[first].tolist(), self._start[first].tolist(), ends[last].tolist(), strict=True
            )
        ]

    def payload(self) -> Payload:
        """Return the whole rows that these pieces come from; asked for before any padding."""
        found, order = [], []
        for number in np.flatnonzero(np.bincount(self._part)).tolist():
            part = self._parts[number]
            whole = None if part is None else part.payload
            if whole is not None:
                mine = np.flatnonzero(self._part == number)
                order.append(mine)
                found.append(whole.take(self._index[mine]))
        if len(found) == 1:
            return found[0]
        back = np.empty(len(self._part), np.int64)
        back[np.concatenate([*order, np.empty(0, np.int64)])] = np.arange(len(back))
        return Payload.concat(found).take(back)


def stack(rows: Sequence[GatheredRows]) -> GatheredRows:
    """Copy rows that were gathered one by one into buffers for a batch."""
    sizes = [int(r.offsets[-1]) for r in rows]
    bases = np.cumsum([0, *sizes])
    spans = [r.spans for r in rows]
    payloads = [r.payload for r in rows if r.payload is not None]
    paddings = [r.padding for r in rows if r.padding is not None]
    return GatheredRows(
        columns={name: np.concatenate([r.columns[name] for r in rows]) for name in rows[0].columns},
        offsets=np.concatenate(
            [[0], *(r.offsets[1:] + b for r, b in zip(rows, bases[:-1], strict=True))]
        ),
        spans=Spans(
            row_splits=_stack_splits([s.row_splits for s in spans]),
            **{name: np.concatenate([getattr(s, name) for s in spans]) for name in SPAN_COLUMNS},
        ),
        lane=np.concatenate([r.lane for r in rows]),
        mark=np.concatenate([r.mark for r in rows]),
        padding=np.concatenate(paddings) if paddings else None,
        payload=Payload.concat(payloads) if payloads else None,
    )


def _stack_splits(splits: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join the row splits of consecutive groups of rows."""
    sizes = np.concatenate([np.diff(s) for s in splits])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _copy(slices: list[NDArray], out: NDArray) -> NDArray:
    if slices:
        np.concatenate(slices, out=out, casting="unsafe")  # int32 into int64, bytes into booleans
    return out


def _dtype(kind: str) -> np.dtype:
    """Return the type of a batch's values, given the type in which they were read."""
    return np.dtype(np.int64 if kind in ("int32", "int64") else kind)
