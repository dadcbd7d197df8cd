"""A batch as columns, the form in which the engine makes it; and one row of it as a record.

Nothing per row is a Python object here until somebody asks. Who asks for a record gets its meta at
once and its payload when the payload is first looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.identity import (
    CONTRIBUTORS,
    PACKING_METADATA,
    PAD_TOKEN_ID,
    ContributorRef,
    LineagePath,
    SampleCursor,
    SampleId,
    SampleMeta,
    SamplePayload,
)
from zephon.batches.record import SampleRecord, unread_record
from zephon.tensors import as_container


class PayloadRows(Protocol):
    """Whole rows of a dataset, decoded when asked for; every call gives a fresh copy."""

    def __len__(self) -> int: ...

    def row(self, i: int, /) -> Any:
        """Give row ``i``: a dict as a rule, and the caller's own to change."""
        ...


@dataclass(frozen=True, slots=True)
class TokenField:
    """One field of every row: row r is values[offsets[r]:offsets[r + 1]].

    values: shape [tokens, ...]; the engine's are int64 and writable, and belong to the batch.
    offsets: shape [rows + 1], int64; rows of equal length are a reshape away from a matrix.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Where each piece of each row came from; row r has spans row_splits[r] to row_splits[r + 1].

    All are of shape [spans] but ``row_splits``, [rows + 1]; every row has at least one span.

    start, length: the piece's tokens, counted inside its document; int64.
    closes: the piece ends the last part of its document; bool.
    component: int32; dataset_id, shard_id, row: where the document lies; int64.
    ordinal: the draw of the lane that brought it; int64.
    child: which part of a split document, int32; -1: the document was never split.
    """

    row_splits: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    closes: NDArray[np.bool_]
    component: NDArray[np.int32]
    dataset_id: NDArray[np.int64]
    shard_id: NDArray[np.int64]
    row: NDArray[np.int64]
    ordinal: NDArray[np.int64]
    child: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRows:
    """A batch as columns.

    fields: the token field and what is aligned with it, such as "positions" (int32).
    tokens_field: which of the fields holds the tokens; None: rows of a dataset as they are.
    masks: names of fields that are 1 on tokens and 0 on padding; built when looked at.
    lane: shape [rows], int64.
    padding: pad tokens at the end of each row, shape [rows], int64; None where nothing packed.
    packed: a row is made of the spans of several documents.
    payload: the rows that the fields are laid over; None: there is nothing below them.
    container: what a record holds its fields in: "list", "tuple", "np" or "pt".
    chunk_size: draws in one chunk of a lane.
    pad_token_id, pad_to_longest: whether ``to_training`` pads rows of unequal length, with what.
    target_mixture: weights in force, by component, when the last row was finished; None: unknown.
    """

    fields: Mapping[str, TokenField]
    tokens_field: str | None
    masks: tuple[str, ...]
    spans: Spans
    lane: NDArray[np.int64]
    padding: NDArray[np.int64] | None
    packed: bool
    payload: PayloadRows | None
    container: str
    chunk_size: int
    pad_token_id: int | None
    pad_to_longest: bool
    target_mixture: Mapping[str, float] | None = None

    def __len__(self) -> int:
        return len(self.lane)


def column_of(rows: BatchRows, name: str) -> TokenField | None:
    """Give a field or a mask of all rows; None if the batch has no such column."""
    return _mask(rows, slice(0, len(rows))) if name in rows.masks else rows.fields.get(name)


def _mask(rows: BatchRows, some: slice) -> TokenField | None:
    if rows.tokens_field is None:
        return None
    offsets = rows.fields[rows.tokens_field].offsets[some.start : some.stop + 1]
    padding = None if rows.padding is None else rows.padding[some]
    return TokenField(collate.token_mask(offsets, padding), offsets - offsets[0])


def sample_ids(rows: BatchRows) -> list[SampleId]:
    """Give the id of each row: that of the first document in it."""
    spans, first = rows.spans, rows.spans.row_splits[:-1]
    columns = (spans.dataset_id[first], spans.shard_id[first], spans.row[first])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def chunk_ids(rows: BatchRows) -> list[int]:
    """Give the chunk of each row's first document."""
    return (rows.spans.ordinal[rows.spans.row_splits[:-1]] // rows.chunk_size).tolist()


def lineage_paths(rows: BatchRows) -> list[LineagePath]:
    """Give the lineage of each row; a packed row adds where its first document begins."""
    first = rows.spans.row_splits[:-1]
    child, start = rows.spans.child[first].tolist(), rows.spans.start[first].tolist()
    pairs = zip(child, start, strict=True)
    return [_lineage(c) + ((s,) if rows.packed else ()) for c, s in pairs]


def record_of(rows: BatchRows, i: int) -> SampleRecord:
    """Give one row as a record. Its payload is built, from copies, on the first look at it."""
    return unread_record(meta_of(rows, i), partial(payload_of, rows, i))


def meta_of(rows: BatchRows, i: int) -> SampleMeta:
    """Say who row ``i`` is and what went into it.

    A component is charged a sample by the piece that ends its document, and a token by every
    piece, so that sums over all rows are exact.
    """
    spans = rows.spans
    inside = slice(int(spans.row_splits[i]), int(spans.row_splits[i + 1]))
    refs = _contributors(spans, inside, rows.chunk_size)
    lengths, components = spans.length[inside].tolist(), spans.component[inside].tolist()
    samples = dict.fromkeys(components, 0)
    tokens = dict.fromkeys(components, 0)
    for component, length, ref in zip(components, lengths, refs, strict=True):
        samples[component] += ref.is_last_child
        tokens[component] += length
    first = refs[0].cursor
    return SampleMeta(
        sample_id=first.sample_id,
        lane_id=int(rows.lane[i]),
        chunk_id=first.chunk_id,
        chunk_offset=first.chunk_offset,
        component_sample_counts=samples,
        component_token_counts=None if rows.tokens_field is None else tokens,
        lineage=(*first.lineage, int(spans.start[inside.start])) if rows.packed else first.lineage,
        tags=_tags(rows, i, refs, sum(lengths)),
    )


def _contributors(spans: Spans, inside: slice, chunk_size: int) -> list[ContributorRef]:
    chunk, offset = np.divmod(spans.ordinal[inside], chunk_size)
    columns = (
        *(chunk, offset, spans.dataset_id[inside], spans.shard_id[inside], spans.row[inside]),
        *(spans.child[inside], spans.closes[inside]),
    )
    return [
        ContributorRef(SampleCursor(c, o, (dataset, shard, row), _lineage(child)), closes)
        for c, o, dataset, shard, row, child, closes in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _lineage(child: int) -> LineagePath:
    return () if child < 0 else (child,)


def _tags(rows: BatchRows, i: int, refs: list[ContributorRef], total: int) -> dict[str, Any]:
    if rows.packed:
        padding = None if rows.padding is None else int(rows.padding[i])
        width = total + (padding or 0)
        packing = {
            "num_sequences": len(refs),
            "total_length": total,
            "packing_efficiency": total / width if width else 0.0,
            "padding_length": padding,
        }
        return {PACKING_METADATA: packing, CONTRIBUTORS: tuple(refs)}
    return {PAD_TOKEN_ID: rows.pad_token_id} if rows.pad_to_longest else {}


def payload_of(rows: BatchRows, i: int) -> SamplePayload:
    """Build the payload of row ``i``: the dataset's row, and the batch's fields over it."""
    below = {} if rows.payload is None else rows.payload.row(i)
    if not rows.fields:
        return below
    payload = dict(below) if isinstance(below, Mapping) else {}
    for name, column in rows.fields.items():
        begin, end = int(column.offsets[i]), int(column.offsets[i + 1])
        payload[name] = as_container(column.values[begin:end], rows.container)
    for name in rows.masks:
        mask = _mask(rows, slice(i, i + 1))
        if mask is not None:
            payload[name] = as_container(mask.values, rows.container)
    return payload
