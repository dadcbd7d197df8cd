"""Batches put together by hand: columns as the engine makes them, and records of a user."""

from itertools import pairwise

import numpy as np
import torch

from zephon.types import BatchRows, SampleBatch, SampleMeta, SampleRecord, Spans, TokenField


class Sources:
    """Rows of a dataset as the engine keeps them: every look gives a fresh dict."""

    def __init__(self, rows):
        self.rows = rows
        self.looks = 0

    def __len__(self):
        return len(self.rows)

    def row(self, i):
        self.looks += 1
        row = self.rows[i]
        if not isinstance(row, dict):
            return row
        return {name: [*value] if type(value) is list else value for name, value in row.items()}

    def copied(self):
        return self


def columns_of(
    fields,
    documents,
    *,
    name="input_ids",
    types=None,
    starts=None,
    ends=None,
    ids=(0, None, None),
    padding=None,
    payload=None,
    **more,
):
    """Make columns of fields (a list of rows each) and the lengths of each row's documents.

    types: of fields that are not int64. starts, ends: of each document, flat. ids: dataset, and
    shard and row of each document.
    """
    count = len(documents)
    offsets = np.cumsum([0, *map(len, fields[name])]) if fields else np.zeros(count + 1, np.int64)
    lengths = np.array([n for row in documents for n in row], np.int64)
    number = len(lengths)
    dataset, shards, rows = ids
    spans = Spans(
        row_splits=np.cumsum([0, *map(len, documents)]),
        start=np.zeros(number, np.int64) if starts is None else np.array(starts, np.int64),
        length=lengths,
        closes=np.ones(number, bool) if ends is None else np.array(ends, bool),
        component=np.zeros(number, np.int32),
        dataset_id=np.full(number, dataset),
        shard_id=np.zeros(number, np.int64) if shards is None else shards,
        row=np.arange(number) if rows is None else rows,
        ordinal=np.arange(number),
        child=np.full(number, -1, np.int32),
    )
    settings = {
        "packing": "none",
        "masks": (),
        "container": "list",
        "chunk_size": 16384,
        "pad_token_id": 0,
        "pad_to_longest": False,
    }
    return BatchRows(
        fields={
            key: TokenField(
                np.array([v for row in values for v in row], (types or {}).get(key, np.int64)),
                offsets,
            )
            for key, values in fields.items()
        },
        tokens_field=name if fields else None,
        spans=spans,
        lane=np.zeros(count, np.int64),
        padding=None if padding is None else np.array(padding, np.int64),
        payload=None if payload is None else Sources(payload),
        **{**settings, **more},
    )


def engine_rows(
    rows,
    *,
    padding=None,
    positions=None,
    packing="none",
    name="input_ids",
    longest=False,
    more=None,
    documents=None,
    types=None,
    **settings,
):
    """Columns of rows of tokens; where rows are packed, positions say of which documents.

    documents: of each row, the lengths of its documents, where positions do not say it.
    """
    fields = {name: rows, **({} if positions is None else {"positions": positions}), **(more or {})}
    pads = padding or [0] * len(rows)
    if documents is None:
        told = positions if packing == "flat" and positions is not None else [None] * len(rows)
        content = [len(row) - pad for row, pad in zip(rows, pads, strict=True)]
        documents = [pieces(n, at) for n, at in zip(content, told, strict=True)]
    at = np.repeat(np.arange(len(rows)), [len(row) for row in documents])
    return columns_of(
        fields,
        documents,
        name=name,
        types={"positions": np.int32, **(types or {})},
        ids=(3, at, at + 10),
        padding=padding,
        packing=packing,
        pad_to_longest=longest,
        **settings,
    )


def pieces(content, positions):
    """Give the lengths of the documents that positions count, or of one that is all the row."""
    if positions is None or not content:
        return [content]
    starts = [i for i, at in enumerate(positions[:content]) if at == 0]
    return [b - a for a, b in pairwise([*starts, content])]


def engine_batch(rows, **options):
    return SampleBatch.from_rows(engine_rows(rows, **options))


def user_batch(*payloads, padding=None):
    tags = [{}] * len(payloads)
    if padding is not None:
        tags = [{"_packing_metadata": {"padding_length": p}} for p in padding]
    return SampleBatch(
        SampleRecord(SampleMeta((0, 0, i), 0, 0, i, tags=tags[i]), payload)
        for i, payload in enumerate(payloads)
    )


def plain(value):
    """Values together with the type that they came in, so that equal means equal."""
    if isinstance(value, torch.Tensor):
        return ("torch", value.dtype, tuple(value.shape), value.tolist())
    if isinstance(value, np.ndarray):
        return ("numpy", value.dtype, value.shape, value.tolist())
    return (type(value), value)
