"""Batches as bodies that cross to another process: their arrays, and little beside.

Batches that lie in the same buffers cross as one. What all batches of a run have in common, such as
the names of their fields, is told once. Nothing is pickled but a few numbers and the whole rows of
a dataset, where batches have such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pickle import PickleBuffer, Pickler, loads
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.batches.columns import SPAN_COLUMNS, PackPayloads, Spans
from zephon.exec.delivery import Position, Together
from zephon.exec.runners.bodies import laid_out, pack_alone, unpack
from zephon.types import BatchRows, TokenField


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What batches of a run have in common; the words are those of ``BatchRows``.

    fields: names. arrays: the type, and the shape of each entry, of each array in the order of
    ``_arrays``. has_padding, has_ends: whether there are such arrays. metas: "none"; "payload", it
    is the payload; "own".
    """

    fields: tuple[str, ...]
    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    has_padding: bool
    has_ends: bool
    metas: str
    tokens_field: str | None
    masks: tuple[str, ...]
    packing: str
    container: str
    chunk_size: int
    pad_token_id: int | None
    pad_to_longest: bool
    pack_payloads: PackPayloads | None
    max_length: int | None


class Sender:
    """Lays batches out, and tells their form where it is another than before."""

    def __init__(self) -> None:
        self._form: Form | None = None

    def laid_out(self, together: Together) -> tuple[list[Any], int]:
        """Give the pieces of a body, which share memory with the batches, and its size.

        Raises:
            Exception: a row of the user cannot be pickled.
        """
        rows = together.rows
        arrays = _arrays(rows)
        form = _form_of(rows, arrays)
        told = None if form == self._form else pack_alone(form)
        payload, metas = rows.payload, rows.metas if form.metas == "own" else None
        value = (
            told,
            list(together.stops),
            [(each.step, each.delivered) for each in together.after],
            list(together.mixtures),
            [list(bad) for bad in together.bad],
            None if payload is None else payload.copied(),
            None if metas is None else metas.copied(),
            [PickleBuffer(array.data) for array in arrays],
        )
        plain = payload is None and metas is None
        found = laid_out(value, Pickler if plain else None)
        self._form = form
        return found


class Taker:
    """Makes the batches of bodies, in the order in which they were laid out."""

    def __init__(self) -> None:
        self._form: Form | None = None

    def together(self, body: memoryview) -> Together:
        """Make batches, whose arrays share the body's memory; positions tell steps, and no lanes.

        Raises:
            Exception: a row of the user cannot be made again here.
        """
        told, stops, after, mixtures, bad, payload, metas, buffers = unpack(body)
        if told is not None:
            self._form = loads(told)
        form = self._form
        if form is None:
            raise ValueError("the first batches came without their form")
        arrays = [_array(b, *each) for b, each in zip(buffers, form.arrays, strict=True)]
        rows = _rows(form, arrays, payload, payload if form.metas == "payload" else metas)
        return Together(rows, stops, [Position(*each) for each in after], mixtures, bad)


def _arrays(rows: BatchRows) -> list[NDArray[Any]]:
    """List the arrays of a batch, whose fields have equal offsets."""
    spans, fields = rows.spans, [*rows.fields.values()]
    found = [rows.lane, spans.row_splits]
    found += [getattr(spans, name) for name in SPAN_COLUMNS[:-1]]
    found += [] if spans.ends is None else [spans.ends]
    found += [] if rows.padding is None else [rows.padding]
    found += [fields[0].offsets] if fields else []
    found += [field.values for field in fields]
    return [np.ascontiguousarray(array) for array in found]


def _form_of(rows: BatchRows, arrays: Sequence[NDArray[Any]]) -> Form:
    metas = "none" if rows.metas is None else "payload" if rows.metas is rows.payload else "own"
    return Form(
        fields=tuple(rows.fields),
        arrays=tuple((array.dtype.str, array.shape[1:]) for array in arrays),
        has_padding=rows.padding is not None,
        has_ends=rows.spans.ends is not None,
        metas=metas,
        tokens_field=rows.tokens_field,
        masks=rows.masks,
        packing=rows.packing,
        container=rows.container,
        chunk_size=rows.chunk_size,
        pad_token_id=rows.pad_token_id,
        pad_to_longest=rows.pad_to_longest,
        pack_payloads=rows.pack_payloads,
        max_length=rows.max_length,
    )


def _array(buffer: Any, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = np.dtype(kind)
    size = dtype.itemsize
    for each in shape:
        size *= each
    return np.ndarray((len(buffer) // size if size else 0, *shape), dtype, buffer)


def _rows(form: Form, arrays: list[NDArray[Any]], payload: Any, metas: Any) -> BatchRows:
    left = iter(arrays)
    lane, row_splits = next(left), next(left)
    columns: dict[str, Any] = {name: next(left) for name in SPAN_COLUMNS[:-1]}
    ends = next(left) if form.has_ends else None
    padding = next(left) if form.has_padding else None
    offsets = next(left) if form.fields else None
    return BatchRows(
        fields={} if offsets is None else {n: TokenField(next(left), offsets) for n in form.fields},
        tokens_field=form.tokens_field,
        masks=form.masks,
        spans=Spans(row_splits=row_splits, ends=ends, **columns),
        lane=lane,
        padding=padding,
        packing=form.packing,
        payload=payload,
        container=form.container,
        chunk_size=form.chunk_size,
        pad_token_id=form.pad_token_id,
        pad_to_longest=form.pad_to_longest,
        pack_payloads=form.pack_payloads,
        max_length=form.max_length,
        metas=metas,
    )
