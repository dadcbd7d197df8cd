"""One row of a batch as a record: its meta at once, its payload when somebody looks at it."""

from __future__ import annotations

from collections.abc import Mapping
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
from zephon.batches.record import SampleRecord, unread_record
from zephon.tensors import as_container


def record_of(rows: BatchRows, i: int) -> SampleRecord:
    """Give one row as a record. Its payload is built, from copies, on the first look at it."""
    return unread_record(meta_of(rows, i), partial(payload_of, rows, i))


def meta_of(rows: BatchRows, i: int) -> SampleMeta:
    """Say who row ``i`` is and what went into it.

    A component is charged a sample by the piece that ends its source row, and a token by every
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
        tags=_tags(rows, i, refs, lengths),
    )


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
        "num_sequences": len(refs),
        "total_length": total,
        "packing_efficiency": total / width if width else 0.0,
        "padding_length": padding,
    }
    return {PACKING_METADATA: packing, CONTRIBUTORS: tuple(refs), PLACEMENT: placement}


def placement_of(rows: BatchRows, i: int) -> dict[str, Any]:
    """Say how row ``i`` was laid out, under the names that ``PLACEMENT`` lists."""
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
