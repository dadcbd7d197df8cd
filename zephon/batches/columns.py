"""A batch as columns, the form in which the engine makes it: nothing per row is an object.

Nobody changes columns once they are made. Spans and batches are not frozen all the same: a batch of
few rows costs little else than these two, and Python takes three times as long for frozen ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.identity import LineagePath, SampleId, SampleMeta

PackPayloads: TypeAlias = Callable[[list[dict[str, Any]]], Any] | str
"""What becomes of a row's documents: a function, "keep_list", "numpy_array" or "torch_tensor"."""


class PayloadRows(Protocol):
    """Whole rows of a dataset, decoded when asked for; every call gives a fresh copy."""

    def __len__(self) -> int: ...

    def row(self, i: int, /) -> Any:
        """Give row ``i``: a dict as a rule, and the caller's own to change."""
        ...

    def part(self, first: int, stop: int, /) -> PayloadRows:
        """Give rows [first, stop)."""
        ...

    def copied(self) -> PayloadRows:
        """Give the same rows without others that lie beside them."""
        ...


class MetaRows(Protocol):
    """Rows that functions made, and that say themselves who they are."""

    @property
    def has_metas(self) -> bool:
        """Whether any of them does."""
        ...

    def meta(self, i: int, /) -> SampleMeta:
        """Give what row ``i`` says; its dicts are the caller's own."""
        ...

    def part(self, first: int, stop: int, /) -> MetaRows:
        """Give rows [first, stop)."""
        ...

    def copied(self) -> MetaRows:
        """Give the same rows without others that lie beside them."""
        ...


@dataclass(frozen=True, slots=True)
class TokenField:
    """One field of every row: row r is values[offsets[r]:offsets[r + 1]].

    values: shape [tokens, ...]; the engine's tokens are int64, fields aligned with them have types
    of their own; all are writable and belong to the batch.
    offsets: shape [rows + 1], int64; rows of equal length are a reshape away from a matrix.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


SPAN_COLUMNS = (
    "start", "length", "closes", "component", "dataset_id", "shard_id", "row", "ordinal", "child",
    "ends",
)  # fmt: skip
"""The names of what ``Spans`` hold of each span."""


class _Uncut:
    """Room in spans for what they are a part of, and which rows of it."""

    __slots__ = ("_whole",)

    _whole: tuple[Spans, int, int]


@dataclass(slots=True, kw_only=True, eq=False)
class Spans(_Uncut):
    """Where each piece of each row came from; row r has spans row_splits[r] to row_splits[r + 1].

    All are of shape [spans] but ``row_splits``, [rows + 1]; every row has at least one span.
    Padding is in no span.

    start, length: the piece's tokens, counted inside its document; int64.
    closes: the piece ends the last part of its source row; bool.
    ends: the piece ends its document, which may be one of several parts of its source row; bool.
    None: known of last parts alone.
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
    ends: NDArray[np.bool_] | None = None

    def are_whole(self, some: slice = slice(None)) -> NDArray[np.bool_]:
        """Say which pieces of some are all of their document, shape [pieces]."""
        return (self.start[some] == 0) & (self.closes if self.ends is None else self.ends)[some]

    def part(self, first: int, stop: int) -> Spans:
        """Give the spans of rows [first, stop), which share memory; cut when somebody looks."""
        part = Spans.__new__(Spans)
        part._whole = (self, first, stop)
        return part

    def __reduce__(self) -> tuple[Callable[..., Spans], tuple[Any, ...]]:
        return (_spans, (self.row_splits, *(getattr(self, name) for name in SPAN_COLUMNS)))

    if not TYPE_CHECKING:  # a type checker must still refuse a misspelt attribute

        def __getattr__(self, name: str) -> Any:
            # Python comes here only while the spans are not cut; two threads may, and cut the same.
            if name != "row_splits" and name not in SPAN_COLUMNS:
                raise AttributeError(f"Spans has no attribute {name!r}")
            whole, first, stop = self._whole
            begin, end = int(whole.row_splits[first]), int(whole.row_splits[stop])
            for each in SPAN_COLUMNS:
                column = getattr(whole, each)
                setattr(self, each, None if column is None else column[begin:end])
            self.row_splits = whole.row_splits[first : stop + 1] - begin
            return getattr(self, name)


def _spans(row_splits: NDArray[np.int64], *columns: Any) -> Spans:
    return Spans(row_splits=row_splits, **dict(zip(SPAN_COLUMNS, columns, strict=True)))


@dataclass(slots=True, kw_only=True, eq=False)
class BatchRows:
    """A batch as columns.

    fields: the token field and what is aligned with it, such as "positions" (int32).
    tokens_field: which of the fields holds the tokens; None: rows of a dataset as they are.
    masks: names of fields that are 1 on tokens and 0 on padding; built when looked at.
    lane: shape [rows], int64.
    padding: pad tokens at the end of each row, shape [rows], int64; None where nothing padded.
    packing: "none": a row is one document; "flat": it is made of the spans of several, and of
    padding; "sequences": of several, without padding, so that rows differ in length.
    payload: the source rows that the fields are laid over, one a row; with packing "sequences" one
    a span. None: there is nothing below the fields.
    container: what a record holds its fields in: "list", "tuple", "np" or "pt".
    chunk_size: draws in one chunk of a lane.
    pad_token_id, pad_to_longest: whether ``to_training`` pads rows of unequal length, with what.
    target_mixture: weights in force, by component, when the last row was finished; None: unknown.
    pack_payloads: what a record makes of its documents, with packing "sequences"; None otherwise.
    max_length: tokens that a packed row has room for; None: unknown.
    metas: who the documents say they are, one a span; None: it is as the spans say.
    """

    fields: Mapping[str, TokenField]
    tokens_field: str | None
    masks: tuple[str, ...]
    spans: Spans
    lane: NDArray[np.int64]
    padding: NDArray[np.int64] | None
    packing: str
    payload: PayloadRows | None
    container: str
    chunk_size: int
    pad_token_id: int | None
    pad_to_longest: bool
    target_mixture: Mapping[str, float] | None = None
    pack_payloads: PackPayloads | None = None
    max_length: int | None = None
    metas: MetaRows | None = None

    def __len__(self) -> int:
        return len(self.lane)

    def part(self, first: int, stop: int, mixture: Mapping[str, float] | None) -> BatchRows:
        """Give rows [first, stop) as a batch, which shares memory; all fields have equal offsets.

        Args:
            first, stop: which.
            mixture: the weights in force when the last of them was finished.
        """
        fields, payload, metas = self.fields, self.payload, self.metas
        if fields:
            bounds = next(iter(fields.values())).offsets[first : stop + 1]
            a, b = int(bounds[0]), int(bounds[-1])
            offsets = bounds - a
            fields = {n: TokenField(each.values[a:b], offsets) for n, each in fields.items()}
        if payload is not None or metas is not None:
            splits = self.spans.row_splits
            a, b = int(splits[first]), int(splits[stop])
            payload = None if payload is None else payload.part(a, b)
            metas = None if metas is None else metas.part(a, b)
            metas = metas if metas is not None and metas.has_metas else None
        return BatchRows(
            fields=fields,
            tokens_field=self.tokens_field,
            masks=self.masks,
            spans=self.spans.part(first, stop),
            lane=self.lane[first:stop],
            padding=None if self.padding is None else self.padding[first:stop],
            packing=self.packing,
            payload=payload,
            container=self.container,
            chunk_size=self.chunk_size,
            pad_token_id=self.pad_token_id,
            pad_to_longest=self.pad_to_longest,
            target_mixture=mixture,
            pack_payloads=self.pack_payloads,
            max_length=self.max_length,
            metas=metas,
        )

    def alone(self) -> BatchRows:
        """Give the same batch fit to travel: its source rows do not bring others along."""
        payload = None if self.payload is None else self.payload.copied()
        metas = None if self.metas is None else self.metas.copied()
        return replace(self, payload=payload, metas=metas)

    @property
    def packed(self) -> bool:
        """Whether a row is made of the spans of several documents."""
        return self.packing != "none"


def column_of(rows: BatchRows, name: str) -> TokenField | None:
    """Give a field or a mask of all rows; None if the batch has no such column."""
    return mask_of(rows, slice(0, len(rows))) if name in rows.masks else rows.fields.get(name)


def mask_of(rows: BatchRows, some: slice) -> TokenField | None:
    """Make the mask of some rows, 1 on tokens and 0 on padding; None if they have no tokens."""
    if rows.tokens_field is None:
        return None
    offsets = rows.fields[rows.tokens_field].offsets[some.start : some.stop + 1]
    padding = None if rows.padding is None else rows.padding[some]
    return TokenField(collate.token_mask(offsets, padding), offsets - offsets[0])


def sample_ids(rows: BatchRows) -> list[SampleId]:
    """Give the id of each row: that of the first document in it."""
    if rows.metas is not None:
        return [meta.sample_id for meta in _first_metas(rows)]
    spans, first = rows.spans, rows.spans.row_splits[:-1]
    columns = (spans.dataset_id[first], spans.shard_id[first], spans.row[first])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def chunk_ids(rows: BatchRows) -> list[int]:
    """Give the chunk of each row's first document."""
    if rows.metas is not None:
        return [meta.chunk_id for meta in _first_metas(rows)]
    return (rows.spans.ordinal[rows.spans.row_splits[:-1]] // rows.chunk_size).tolist()


def lineage_paths(rows: BatchRows) -> list[LineagePath]:
    """Give the lineage of each row; a packed row adds where its first document begins."""
    first = rows.spans.row_splits[:-1]
    if rows.metas is not None:
        paths = [meta.lineage for meta in _first_metas(rows)]
    else:
        paths = [lineage_of(child) for child in rows.spans.child[first].tolist()]
    if not rows.packed:
        return paths
    starts = rows.spans.start[first].tolist()
    return [(*path, start) for path, start in zip(paths, starts, strict=True)]


def _first_metas(rows: BatchRows) -> list[SampleMeta]:
    """Give what the first document of each row says of itself."""
    first = rows.spans.row_splits[:-1].tolist()
    return [] if rows.metas is None else [rows.metas.meta(i) for i in first]


def lineage_of(child: int) -> LineagePath:
    """Give the lineage of a document: which part of a split row it is, if of any."""
    return () if child < 0 else (child,)
