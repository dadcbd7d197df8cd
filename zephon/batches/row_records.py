"""Rows of a batch as records: who each is and what it holds, made when somebody looks at it.

The file is long because the meta and the payload of a row are read off the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zephon.batches.columns import BatchRows, Spans, lineage_of, mask_of
from zephon.batches.identity import (
    CONTRIBUTORS,
    PACKING_METADATA,
    PAD_TOKEN_ID,
    PLACEMENT,
    ContributorRef,
    SampleCursor,
    SampleMeta,
    SamplePayload,
)
from zephon.batches.packed_payload import PACKED_SAMPLES, pack_documents
from zephon.batches.record import SampleRecord, unread_records
from zephon.tensors import as_container


def record_of(rows: BatchRows, i: int) -> SampleRecord:
    """Give one row as a record. Its payload is built, from copies, on the first look at it."""
    return _records(rows, range(i, i + 1))[0]


def records_of(rows: BatchRows) -> list[SampleRecord]:
    """Give all rows as records, as ``record_of`` gives each."""
    return _records(rows, range(len(rows)))


def _records(rows: BatchRows, numbers: range) -> list[SampleRecord]:
    origin = _Origin(rows)  # whose payload is no method: a call less for each row
    return unread_records(origin, numbers)  # pyright: ignore[reportArgumentType]


class _Origin:
    """Where the records of a batch come from."""

    __slots__ = ("_metas", "_rows", "payload")

    def __init__(self, rows: BatchRows) -> None:
        self._rows = rows
        self._metas: dict[int, SampleMeta] = {}
        self.payload: Callable[[int], SamplePayload]
        """Builds the payload of a row."""
        if rows.payload is not None and not rows.fields and rows.packing != "sequences":
            self.payload = rows.payload.row  # nothing is laid over the source rows
        else:
            self.payload = partial(payload_of, rows)

    def meta(self, i: int) -> SampleMeta:
        """Say who row ``i`` is; those of rows that are one document each are made together."""
        rows, known = self._rows, self._metas
        if i not in known:
            # Each in one step, so that two threads that ask at once get the same.
            if rows.packed or rows.metas is not None or len(rows.spans.row) != len(rows):
                known.setdefault(i, meta_of(rows, i))
            else:
                for place, meta in enumerate(_metas_of_documents(rows)):
                    known.setdefault(place, meta)
        return known[i]


def _metas_of_documents(rows: BatchRows) -> list[SampleMeta]:
    """Say who the rows are, where each is one document that says nothing of itself."""
    spans = rows.spans
    chunk, offset = np.divmod(spans.ordinal, rows.chunk_size)
    columns = (
        *(chunk, offset, spans.dataset_id, spans.shard_id, spans.row, spans.child),
        *(spans.closes, spans.component, spans.length, rows.lane),
    )
    placement = placement_of(rows, 0) if len(rows) else {}
    tags: dict[str, Any] = {PAD_TOKEN_ID: rows.pad_token_id} if rows.pad_to_longest else {}
    tags[PLACEMENT] = placement
    has_tokens = rows.tokens_field is not None
    return [
        SampleMeta(
            (dataset, shard, row),
            lane,
            c,
            o,
            {component: int(closes)},
            {component: length} if has_tokens else None,
            lineage_of(child),
            dict(tags),
        )
        for c, o, dataset, shard, row, child, closes, component, length, lane in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def meta_of(rows: BatchRows, i: int) -> SampleMeta:
    """Say who row ``i`` is and what went into it.

    A component is charged a sample by the piece that ends its source row, and a token by every
    piece, so that sums over all rows are exact. Documents that say who they are say that, too, of
    what went into them.
    """
    spans = rows.spans
    inside = slice(int(spans.row_splits[i]), int(spans.row_splits[i + 1]))
    if rows.metas is not None:
        return _made_meta(rows, i, [rows.metas.meta(at) for at in range(inside.start, inside.stop)])
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
        tags=_tags(rows, i, refs, lengths),
    )


def _made_meta(rows: BatchRows, i: int, metas: list[SampleMeta]) -> SampleMeta:
    """Say who a row is whose documents say who they are."""
    spans, begin = rows.spans, int(rows.spans.row_splits[i])
    inside = slice(begin, begin + len(metas))
    first, lengths = metas[0], spans.length[inside].tolist()
    pieces = zip(
        spans.component[inside].tolist(), spans.start[inside].tolist(), lengths, strict=True
    )
    whole = spans.are_whole(inside).tolist()
    charged = [
        _charged(meta, *piece, whole=all_of_it)
        for meta, piece, all_of_it in zip(metas, pieces, whole, strict=True)
    ]
    if not rows.packed:
        tokens = first.component_token_counts
        if tokens is None and rows.tokens_field is not None:
            tokens = charged[0]
        placed = {PLACEMENT: placement_of(rows, i)}
        longest = {PAD_TOKEN_ID: rows.pad_token_id} if rows.pad_to_longest else {}
        tags = {**first.tags, **longest, **placed}
        return replace(first, lane_id=int(rows.lane[i]), component_token_counts=tokens, tags=tags)
    samples: dict[int, int] = {}
    tokens = {}
    refs: list[ContributorRef] = []
    ends = (spans.closes if spans.ends is None else spans.ends)[inside].tolist()
    for meta, share, end in zip(metas, charged, ends, strict=True):
        for component, count in meta.component_sample_counts.items():
            samples[component] = samples.get(component, 0) + (count if end else 0)
        for component, count in share.items():
            tokens[component] = tokens.get(component, 0) + count
        refs += [
            replace(r, is_last_child=r.is_last_child and end) for r in meta.contribution_refs()
        ]
    return SampleMeta(
        sample_id=first.sample_id,
        lane_id=int(rows.lane[i]),
        chunk_id=first.chunk_id,
        chunk_offset=first.chunk_offset,
        component_sample_counts=samples,
        component_token_counts=None if rows.tokens_field is None else tokens,
        lineage=(*first.lineage, int(spans.start[begin])),
        tags=_tags(rows, i, refs, lengths),
    )


def _charged(
    meta: SampleMeta, component: int, start: int, length: int, *, whole: bool
) -> dict[int, int]:
    """Say which components a piece's tokens are of, by what its document counted.

    Those of several components are taken to lie end to end in it, in the order of its counts.
    """
    counts = meta.component_token_counts
    if not counts:
        known = list(meta.component_sample_counts)
        return {known[0] if len(known) == 1 else component: length}
    if whole and sum(counts.values()) == length:
        return dict(counts)
    shares, begin, left = {}, 0, length
    for component, count in counts.items():
        shares[component] = max(0, min(begin + count, start + length) - max(begin, start))
        begin += count
        left -= shares[component]
    shares[component] += left  # a document that is longer than it counted
    return shares


def _contributors(spans: Spans, inside: slice, chunk_size: int) -> list[ContributorRef]:
    chunk, offset = np.divmod(spans.ordinal[inside], chunk_size)
    columns = (
        *(chunk, offset, spans.dataset_id[inside], spans.shard_id[inside], spans.row[inside]),
        *(spans.child[inside], spans.closes[inside]),
    )
    return [
        ContributorRef(SampleCursor(c, o, (dataset, shard, row), lineage_of(child)), closes)
        for c, o, dataset, shard, row, child, closes in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _tags(rows: BatchRows, i: int, refs: list[ContributorRef], lengths: list[int]) -> dict:
    placement = placement_of(rows, i)
    if not rows.packed:
        longest = {PAD_TOKEN_ID: rows.pad_token_id} if rows.pad_to_longest else {}
        return {**longest, PLACEMENT: placement}
    padding = None if rows.padding is None else int(rows.padding[i])
    total = sum(lengths)
    width = rows.max_length or total + (padding or 0)
    packing = {
        "num_sequences": len(lengths),
        "total_length": total,
        "packing_efficiency": total / width if width else 0.0,
        "padding_length": padding,
    }
    return {PACKING_METADATA: packing, CONTRIBUTORS: tuple(refs), PLACEMENT: placement}


def placement_of(rows: BatchRows, i: int) -> dict[str, Any]:
    """Say how row ``i`` was laid out, under the names that ``PLACEMENT`` lists."""
    if rows.metas is not None and not rows.packed:
        before = rows.metas.meta(int(rows.spans.row_splits[i])).tags.get(PLACEMENT)
        if before and rows.tokens_field in (None, before.get("tokens_field")):
            return before  # an operator handed on what an engine had laid out
    first, last = rows.spans.row_splits[i : i + 2].tolist()
    # What a function gives is its own word, and without source rows there is nothing to leave out.
    mixed = rows.packing == "sequences" and rows.payload is not None
    mixed &= not callable(rows.pack_payloads)
    return {
        "lengths": tuple(rows.spans.length[first:last].tolist()) if rows.packed else None,
        "tokens_field": rows.tokens_field,
        "fields": (*rows.fields, *rows.masks) if mixed else None,
        "pad_token_id": rows.pad_token_id,
    }


def payload_of(rows: BatchRows, i: int) -> SamplePayload:
    """Build the payload of row ``i``: the source row, and the batch's fields over it.

    A row of packing "sequences" is ``{"packed_samples": ...}``: what ``pack_payloads`` makes of
    its documents. Those that are whole hold their source row too.

    Raises:
        ExecutionError: the user's ``pack_payloads`` failed.
        TypeError: the documents hold something that ``pack_payloads`` cannot join.
        DataError: a source row cannot be decoded, or the documents do not go together.
    """
    if rows.packing == "sequences":
        return {PACKED_SAMPLES: _packed(rows, i)}
    below = {} if rows.payload is None else rows.payload.row(i)
    if not rows.fields:
        return below
    payload = dict(below) if isinstance(below, Mapping) else {}
    for name, column in rows.fields.items():
        begin, end = int(column.offsets[i]), int(column.offsets[i + 1])
        payload[name] = as_container(column.values[begin:end], rows.container)
    for name in rows.masks:
        mask = mask_of(rows, slice(i, i + 1))
        if mask is not None:
            payload[name] = as_container(mask.values, rows.container)
    return payload


def _packed(rows: BatchRows, i: int) -> Any:
    spans = rows.spans
    first, last = int(spans.row_splits[i]), int(spans.row_splits[i + 1])
    inside = slice(first, last)
    whole = spans.are_whole(inside).tolist()
    names = (spans.dataset_id, spans.shard_id, spans.row)
    sample_ids = list(zip(*(column[inside].tolist() for column in names), strict=True))
    documents: list[dict[str, Any]] = []
    begin = 0
    for at, length in enumerate(spans.length[inside].tolist()):
        below = rows.payload.row(first + at) if rows.payload is not None and whole[at] else {}
        document = dict(below) if isinstance(below, Mapping) else {}
        for name, column in rows.fields.items():
            start = int(column.offsets[i]) + begin
            document[name] = as_container(column.values[start : start + length], rows.container)
        for name in rows.masks:
            document[name] = as_container(np.ones(length, np.int64), rows.container)
        documents.append(document)
        begin += length
    return pack_documents(documents, rows.pack_payloads or "keep_list", sample_ids)
