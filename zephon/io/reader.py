"""Rows of one dataset by (shard, row), as columns, in the order asked for.

A request goes through its row groups one by one, first through those that are in memory, and holds
what it took out of each, not the group: beside what the cache holds, at most one decoded group,
four times the rows that it gives in columns, and twice in whole rows. Rows that follow one another
cost slices and at most two copies; a task of rows at random costs some 20 µs a row group in memory,
60 µs more for one in the spill, and three copies of its rows. No Python work a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.dataset import Dataset
from zephon.io.fields import Column
from zephon.io.formats import FORMATS
from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.gather import joined, picked
from zephon.io.group_cache import GroupCache
from zephon.io.offsets import offsets_of
from zephon.io.payload import Payload, RowSource
from zephon.io.spill.key import GroupKey

_PAYLOAD_SHARE = 0.5  # of a group: fewer rows are copied, so that they do not keep all of it
_MOST_KEYS = 1 << 16

_bytes_of = attrgetter("bytes")


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
        self._first_row = offsets_of(dataset.counts())
        self._first_group = offsets_of(dataset.group_counts())
        self._starts = offsets_of(dataset.group_sizes())
        self._keys: dict[int, GroupKey] = {}

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
        parts = self._parts(groups, positions - self._starts[groups])
        self._refuse_bad_rows(parts, order, positions)
        back = None
        if order is not None:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
        arrays = [
            joined([part.columns[index] for part in parts], back, column.type)
            for index, column in enumerate(self._columns)
        ]
        columns = columns_batch(self._columns, arrays, len(positions))
        payload = _payload(parts) if self._kept_rows else None
        if payload is not None and back is not None:
            payload = payload.take(back)
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

    def _parts(self, groups: NDArray[np.int64], inside: NDArray[np.int64]) -> list[_Part]:
        """Take rows out of their groups, in memory first: they may have to leave for others.

        Args:
            groups: of each row, ascending, shape [rows].
            inside: the row's position in its group, shape [rows].
        """
        if not len(groups):
            return []
        cuts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        bounds = [0, *cuts.tolist(), len(groups)]
        wanted = groups[bounds[:-1]]
        shards = (np.searchsorted(self._first_group, wanted, side="right") - 1).tolist()
        keys = [self._key(*at) for at in zip(wanted.tolist(), shards, strict=True)]
        indices = pa.array(inside)
        parts: dict[int, _Part] = {}
        for number in _held_first(self._cache.held(keys)):
            start, stop = bounds[number], bounds[number + 1]
            group, shard = int(wanted[number]), shards[number]
            read = partial(self._groups.read, shard, group - int(self._first_group[shard]))
            decoded: DecodedGroup = self._cache.get(keys[number], read, _bytes_of)
            part = inside[start:stop]
            parts[number] = _part(start, decoded, part, indices.slice(start, stop - start))
        return [parts[number] for number in range(len(keys))]

    def _key(self, group: int, shard: int) -> GroupKey:
        key = self._keys.get(group)
        if key is None:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()
            first, stop = self._starts[group : group + 2].tolist()
            key = self._keys[group] = GroupKey(
                self._dataset.shards[shard].identity,
                group - int(self._first_group[shard]),
                first - int(self._first_row[shard]),
                stop - first,
                self._columns,
                # Whole rows name their dataset in errors, so they are not shared with another's.
                self._dataset.name if self._kept_rows else None,
            )
        return key

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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Part:
    """What was taken out of one group: rows that stand together once a request is sorted by group.

    start: where they begin among all rows.
    columns: the rows as bytes, a column of the plan each; a slice of the group's only where they
        are a good part of it.
    fault: which of them is the first bad one, and what is wrong with it.
    source: holds them whole, if whole rows are wanted; at least these, at most the group.
    places: where each of them is in ``source``, shape [rows], int64.
    """

    start: int
    columns: Sequence[pa.Array]
    fault: tuple[int, str] | None
    source: RowSource | None
    places: NDArray[np.int64]


def _held_first(held: Sequence[bool]) -> list[int]:
    """Order groups such that those in memory are read before others push them out."""
    if len(held) == 1:
        return [0]
    return [n for n, here in enumerate(held) if here] + [
        n for n, here in enumerate(held) if not here
    ]


def _part(start: int, decoded: DecodedGroup, rows: NDArray[np.int64], indices: pa.Array) -> _Part:
    """Take rows out of one group, and let go of it where they are few."""
    faults = [first for faults in decoded.faults if (first := faults.first(rows))]
    source, places = decoded.payload, rows
    if source is not None and len(rows) < _PAYLOAD_SHARE * decoded.columns.num_rows:
        source, places = source.some(rows)
    return _Part(
        start=start,
        columns=picked(decoded.columns.columns, rows, indices),
        fault=min(faults, default=None),
        source=source,
        places=places,
    )


def _payload(parts: list[_Part]) -> Payload:
    sources = tuple(part.source for part in parts if part.source is not None)
    source_of = np.repeat(
        np.arange(len(parts), dtype=np.int32), [len(part.places) for part in parts]
    )
    row_of = [np.empty(0, np.int64), *(part.places for part in parts)]
    return Payload(sources, source_of, np.concatenate(row_of))
