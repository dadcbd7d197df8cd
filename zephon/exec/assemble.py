"""Placed rows to batch buffers: each token is copied once, from the segment's output to its row.

Where several lanes share a buffer, what is left of a mostly used one is copied once more before:
see ``rows.py``. Neighbouring pieces that lie side by side in one source buffer are copied as one
slice, so packing whole documents in order costs a few large copies a batch. Rows of up to
``ASSEMBLED_BYTES`` are gathered at once and batches are views of that buffer: a batch that is kept
keeps its neighbours' memory too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.lane_run import LaneRun
from zephon.exec.policies.policy import Placements
from zephon.exec.rows import Part
from zephon.io.payload import Payload
from zephon.planner.physical import RowLayout
from zephon.types import BatchRows, Spans, TokenField

ASSEMBLED_BYTES = 2 << 20

Taken = tuple[LaneRun, Placements]


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
    that finished the row, as ``LaneRun.weights_at`` takes it, shape [rows, 2].
    """

    columns: dict[str, NDArray]
    offsets: NDArray[np.int64]
    spans: Spans
    lane: NDArray[np.int64]
    mark: NDArray[np.int64]
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

    def gather(self, taken: Sequence[Taken]) -> GatheredRows:
        """Copy the tokens of rows, lane run after lane run, into new buffers.

        Args:
            taken: rows of lanes, in the order of delivery; every document is read.
        """
        pieces = [_Pieces(run, rows) for run, rows in taken]
        length = np.concatenate([p.rows.length for p in pieces])
        ends = np.concatenate([[0], np.cumsum(length)])
        row_splits = _stack_splits([p.rows.row_splits for p in pieces])
        columns: dict[str, NDArray] = {}
        layout = self._layout
        if layout.tokens_field is not None:
            slices = [s for p in pieces for s in p.slices()]
            total = int(ends[-1])
            for name in (layout.tokens_field, *layout.aligned):
                columns[name] = _copy([p.buffer.columns[name][a:b] for p, a, b in slices], total)
            if layout.positions:
                positions = np.arange(total, dtype=np.int32)
                positions -= np.repeat(ends[:-1].astype(np.int32), length)
                columns["positions"] = positions
        return GatheredRows(
            columns=columns,
            offsets=ends[row_splits],
            spans=self._spans(pieces, row_splits, length),
            lane=np.concatenate([np.full(len(p.rows), p.run.lane, np.int64) for p in pieces]),
            mark=np.concatenate([p.run.marks(p.rows.trigger) for p in pieces]),
            payload=Payload.concat([p.payload() for p in pieces]) if layout.payload else None,
        )

    def batch(
        self,
        rows: GatheredRows,
        first: int,
        stop: int,
        target_mixture: Mapping[str, float] | None = None,
    ) -> BatchRows:
        """Return rows [first, stop) as a batch whose fields are views of the gathered buffers."""
        a, b = int(rows.offsets[first]), int(rows.offsets[stop])
        offsets = rows.offsets[first : stop + 1] - a
        payload = rows.payload
        return BatchRows(
            fields={n: TokenField(c[a:b], offsets) for n, c in rows.columns.items()},
            tokens_field=self._layout.tokens_field,
            masks=self._layout.masks,
            spans=_cut_spans(rows.spans, first, stop),
            lane=rows.lane[first:stop],
            padding=np.zeros(stop - first, np.int64) if self._layout.packed else None,
            packed=self._layout.packed,
            payload=None if payload is None else payload.take(np.arange(first, stop)),
            container=self._layout.container,
            chunk_size=self._naming.chunk_size,
            pad_token_id=self._pad_token_id,
            pad_to_longest=self._layout.pad_to_longest,
            target_mixture=target_mixture,
        )

    def _spans(
        self, pieces: list[_Pieces], row_splits: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Spans:
        refs = [p.run.held.refs(p.rows.seq) for p in pieces]
        whole = np.concatenate([p.run.held.lengths(p.rows.seq) for p in pieces])
        start = np.concatenate([p.rows.start for p in pieces])
        component = np.concatenate([r.component for r in refs])
        last_child = np.concatenate([r.last_child for r in refs])
        child = np.concatenate([r.child for r in refs])
        names = self._naming
        shard = names.first_shard[component] + np.concatenate([r.shard for r in refs])
        return Spans(
            row_splits=row_splits,
            start=start,
            length=length,
            closes=(start + length == whole) & last_child,
            component=names.component_id[component],
            dataset_id=names.dataset_id[component],
            shard_id=names.shard_id[shard],
            row=np.concatenate([r.row for r in refs]),
            ordinal=np.concatenate([r.ordinal for r in refs]),
            child=np.where((child == 0) & last_child, -1, child).astype(np.int32),
        )


class _Pieces:
    """The pieces of one lane run, with where their tokens are."""

    def __init__(self, run: LaneRun, rows: Placements) -> None:
        self.run = run
        self.rows = rows
        self._part, start, self._index = run.held.places(rows.seq)
        self._source = start + rows.start

    def slices(self) -> list[tuple[Part, int, int]]:
        """Return the source of each run of tokens that lie side by side, in order."""
        length = self.rows.length
        ends = self._source + length
        breaks = (self._part[1:] != self._part[:-1]) | (self._source[1:] != ends[:-1])
        first = np.flatnonzero(np.concatenate([[True], breaks]))
        last = np.concatenate([first[1:] - 1, [len(length) - 1]])
        parts = self.run.held.parts
        return [
            (parts[p], a, b)
            for p, a, b in zip(
                self._part[first].tolist(),
                self._source[first].tolist(),
                ends[last].tolist(),
                strict=True,
            )
        ]

    def payload(self) -> Payload:
        """Return the whole rows that these pieces, one a row, come from."""
        parts = self.run.held.parts
        edges = np.flatnonzero(np.diff(self._part)) + 1
        found = []
        for index, part in zip(
            np.split(self._index, edges), np.split(self._part, edges), strict=True
        ):
            whole = parts[int(part[0])].payload
            if whole is not None:
                found.append(whole.take(index))
        return Payload.concat(found)


def stack(rows: Sequence[GatheredRows]) -> GatheredRows:
    """Copy rows that were gathered one by one into buffers for a batch."""
    sizes = [int(r.offsets[-1]) for r in rows]
    bases = np.cumsum([0, *sizes])
    spans = [r.spans for r in rows]
    payloads = [r.payload for r in rows if r.payload is not None]
    return GatheredRows(
        columns={name: np.concatenate([r.columns[name] for r in rows]) for name in rows[0].columns},
        offsets=np.concatenate(
            [[0], *(r.offsets[1:] + b for r, b in zip(rows, bases[:-1], strict=True))]
        ),
        spans=Spans(
            row_splits=_stack_splits([s.row_splits for s in spans]),
            **{name: np.concatenate([getattr(s, name) for s in spans]) for name in _SPAN_COLUMNS},
        ),
        lane=np.concatenate([r.lane for r in rows]),
        mark=np.concatenate([r.mark for r in rows]),
        payload=Payload.concat(payloads) if payloads else None,
    )


_SPAN_COLUMNS = (
    "start", "length", "closes", "component", "dataset_id", "shard_id", "row", "ordinal", "child",
)  # fmt: skip


def _cut_spans(spans: Spans, first: int, stop: int) -> Spans:
    a, b = int(spans.row_splits[first]), int(spans.row_splits[stop])
    return Spans(
        row_splits=spans.row_splits[first : stop + 1] - a,
        **{name: getattr(spans, name)[a:b] for name in _SPAN_COLUMNS},
    )


def _stack_splits(splits: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join the row splits of consecutive groups of rows."""
    sizes = np.concatenate([np.diff(s) for s in splits])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _copy(slices: list[NDArray], total: int) -> NDArray[np.int64]:
    out = np.empty(total, np.int64)
    if slices:
        np.concatenate(slices, out=out, casting="same_kind")
    return out
