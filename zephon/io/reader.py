"""Rows of one dataset by (shard, row), as columns, in the order asked for.

A request goes through its row groups one by one and holds what it took out of each, not the group:
beside what the cache holds, at most one decoded group, four times the rows that it gives in
columns, and twice in whole rows. Rows that follow one another cost slices and at most two copies;
rows at random cost one ``take`` a row group and one to restore the order. No Python work a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.dataset import Dataset
from zephon.io.fields import Column
from zephon.io.formats import FORMATS
from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.group_cache import GroupCache
from zephon.io.offsets import offsets_of
from zephon.io.payload import Payload, RowSource

_SLICE_SHARE = 0.25  # of a group: fewer rows are copied, so that they do not keep all of it
_PAYLOAD_SHARE = 0.5  # likewise, for whole rows


@dataclass(frozen=True, slots=True, eq=False)
class TakenRows:
    """Rows in the order asked for.

    columns: one column a ``Column``, named by its path, of its type, without nulls. May share
        memory with a row group of which they are a quarter or more; read-only.
    payload: the whole rows, if the reader was made with ``payload=True``.
    """

    columns: pa.RecordBatch
    payload: Payload | None


class RowReader:
    """Reads some columns of one dataset; any number of threads may call ``take`` at once.

    Args:
        dataset: whose rows.
        columns: what is read of each row; may be empty.
        payload: hand out whole rows too.
        cache: where decoded row groups are kept; readers of any datasets may share one.

    Raises:
        DatasetError: a Parquet shard lacks a column, or has it in another type.
    """

    def __init__(
        self, dataset: Dataset, columns: tuple[Column, ...], *, payload: bool, cache: GroupCache
    ) -> None:
        self._dataset = dataset
        self._columns = columns
        self._cache = cache
        self._kept_rows = payload
        self._groups = FORMATS[dataset.kind].reader(
            dataset.name, dataset.shards, columns, payload=payload
        )
        counts = [len(shard.group_rows) for shard in dataset.shards]
        self._first_group = offsets_of(np.array(counts, dtype=np.int64))
        self._first_row = offsets_of(dataset.counts())
        sizes = [shard.group_rows for shard in dataset.shards]
        self._starts = offsets_of(np.concatenate(sizes) if sizes else np.empty(0, np.int64))

    def take(self, shards: NDArray[np.int64], rows: NDArray[np.int64]) -> TakenRows:
        """Read rows.

        Args:
            shards: position of each row's shard in ``dataset.shards``, shape [n].
            rows: position of each row in its shard, shape [n].

        Raises:
            DataError: one of these rows is bad; names dataset, shard, row and field. Bad rows
                that are not asked for never raise.
            ShardError: a file cannot be read.
            IndexError: there is no such row.
        """
        positions = self._positions(shards, rows)
        groups = np.searchsorted(self._starts, positions, side="right") - 1
        order = None
        if (groups[1:] < groups[:-1]).any():
            order = np.argsort(groups, kind="stable")
            groups, positions = groups[order], positions[order]
        inside = positions - self._starts[groups]
        cuts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        bounds = [0, *cuts.tolist(), len(positions)] if len(positions) else []
        parts = [
            self._part(start, int(groups[start]), inside[start:stop])
            for start, stop in pairwise(bounds)
        ]
        self._refuse_bad_rows(parts, order, positions)
        columns = self._joined([part.columns for part in parts], len(positions))
        payload = _payload(parts) if self._kept_rows else None
        if order is not None:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            columns = columns.take(pa.array(back)) if self._columns else columns
            payload = payload and payload.take(back)
        return TakenRows(columns, payload)

    def _positions(self, shards: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number rows over all shards, end to end."""
        known = len(self._first_row) - 1
        if len(shards) and not (shards.min() >= 0 and shards.max() < known):
            raise IndexError(
                f"dataset {self._dataset.name!r}: shards must be 0 to {known - 1}, got "
                f"{shards.min()} to {shards.max()}"
            )
        positions = self._first_row[shards] + rows
        wrong = (rows < 0) | (positions >= self._first_row[shards + 1])
        if wrong.any():
            first = int(wrong.argmax())
            shard = self._dataset.shards[shards[first]]
            raise IndexError(
                f"dataset {self._dataset.name!r}, shard {shard.name!r}: row must be 0 to "
                f"{shard.rows - 1}, got {rows[first]}"
            )
        return positions

    def _group(self, group: int) -> DecodedGroup:
        shard = int(np.searchsorted(self._first_group, group, side="right")) - 1
        number = group - int(self._first_group[shard])
        identity = self._dataset.shards[shard].identity
        # Whole rows name their dataset in errors, so they are not shared with another's.
        name = self._dataset.name if self._kept_rows else None
        key = (identity, number, self._columns, name)
        return self._cache.get(
            key, lambda: self._groups.read(shard, number), lambda decoded: decoded.bytes
        )

    def _part(self, start: int, group: int, rows: NDArray[np.int64]) -> _Part:
        """Take rows out of one group, and let go of it where they are few."""
        decoded = self._group(group)
        faults = [first for faults in decoded.faults if (first := faults.first(rows))]
        source, places = decoded.payload, rows
        if source is not None and len(rows) < _PAYLOAD_SHARE * decoded.columns.num_rows:
            source, places = source.some(rows)
        return _Part(
            start=start,
            columns=_picked(decoded.columns, rows),
            fault=min(faults, default=None),
            source=source,
            places=places,
        )

    def _refuse_bad_rows(
        self, parts: list[_Part], order: NDArray[np.int64] | None, positions: NDArray[np.int64]
    ) -> None:
        """Raise for the bad row that was asked for first, whatever the order of groups."""
        found: list[tuple[int, int, str]] = []
        for part in parts:
            if part.fault:
                index = part.start + part.fault[0]
                asked = index if order is None else int(order[index])
                found.append((asked, int(positions[index]), part.fault[1]))
        if not found:
            return
        _, position, detail = min(found)
        shard = int(np.searchsorted(self._first_row, position, side="right")) - 1
        row = position - int(self._first_row[shard])
        name = self._dataset.shards[shard].name
        raise DataError(f"dataset {self._dataset.name!r}, shard {name!r}, row {row}{detail}")

    def _joined(self, pieces: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
        if len(pieces) == 1:
            return pieces[0]
        arrays = [
            pa.concat_arrays([piece.column(index) for piece in pieces])
            if pieces
            else pa.array([], column.type)
            for index, column in enumerate(self._columns)
        ]
        return columns_batch(self._columns, arrays, rows)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Part:
    """What was taken out of one group: rows that stand together once a request is sorted by group.

    start: where they begin among all rows.
    columns: the rows; a slice of the group's only where they are a good part of it.
    fault: which of them is the first bad one, and what is wrong with it.
    source: holds them whole, if whole rows are wanted; at least these, at most the group.
    places: where each of them is in ``source``, shape [rows], int64.
    """

    start: int
    columns: pa.RecordBatch
    fault: tuple[int, str] | None
    source: RowSource | None
    places: NDArray[np.int64]


def _picked(columns: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Slice where rows follow one another and are many of their group, else copy."""
    if not columns.num_columns:
        return columns_batch((), (), len(rows))
    first, last = int(rows[0]), int(rows[-1])
    if last - first != len(rows) - 1 or not (rows[1:] - rows[:-1] == 1).all():
        return columns.take(pa.array(rows))
    piece = columns.slice(first, len(rows))
    if len(rows) >= _SLICE_SHARE * columns.num_rows:
        return piece
    # Concatenating copies, even one array; it is faster than take for lists.
    copies = [pa.concat_arrays([column]) for column in piece.columns]
    return pa.RecordBatch.from_arrays(copies, schema=piece.schema)


def _payload(parts: list[_Part]) -> Payload:
    sources = tuple(part.source for part in parts if part.source is not None)
    source_of = np.repeat(
        np.arange(len(parts), dtype=np.int32), [len(part.places) for part in parts]
    )
    row_of = [np.empty(0, np.int64), *(part.places for part in parts)]
    return Payload(sources, source_of, np.concatenate(row_of))
