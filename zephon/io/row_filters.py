"""Row groups of which only the rows that pass a filter are kept, and what a plan reads of these.

Parquet: the footer's statistics first, which may say that nothing need be read; then the columns
that the filter looks at; then, if any row passes, the others. Lines and rows in memory are decoded
once, whole, since finding a field costs as much as reading it.

A row that does not pass never counts as bad. One predicate that is known not to be true of a row
drops it, whatever others make of it: they may raise for it, or look at columns in which it is bad.
Else it passes, and whoever takes it meets its error. So the order of predicates does not matter.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import PlanError
from zephon.expressions import RowFilter, cannot_raise
from zephon.io.dataset import Dataset
from zephon.io.excluded_groups import ExcludedGroups
from zephon.io.far_reading import FAR, FarReading
from zephon.io.faults import unknown_parts
from zephon.io.fields import TEXT, Column
from zephon.io.folder_groups import group_reader
from zephon.io.formats.format import (
    DecodedGroup,
    Texts,
    columns_batch,
    held_bytes,
)
from zephon.io.gather import joined, picked
from zephon.io.kept_group import KeptGroup, Trial, evaluated
from zephon.io.offsets import indices_of
from zephon.io.read_counts import ReadCounter

_COMPACT_SHARE = 0.75  # of a group: with more rows left, a copy saves too little
_ENTRY_BYTES = 512  # what a group without rows counts for in a cache


class FilteredGroups:
    """Decodes row groups of one dataset; any number of threads may call ``read`` at once.

    Args:
        dataset: whose rows.
        keep: looks at columns of ``frame``.
        columns: what is read of each row that passes.
        frame: columns of kind "any" that are read of them, too.
        payload: keep whole rows too.
        counter: is told of each row group.
        far: how far datasets are read.

    Raises:
        DatasetError: a shard lacks a column, or has it in another type.
    """

    def __init__(
        self,
        dataset: Dataset,
        keep: RowFilter,
        columns: tuple[Column, ...],
        frame: tuple[Column, ...],
        *,
        payload: bool,
        counter: ReadCounter,
        far: FarReading = FAR,
    ) -> None:
        self._keep = keep
        self._columns = columns + frame
        self._typed = len(columns)
        self._counter = counter
        tested = _tested(keep, frame)
        others = columns + tuple(column for column in frame if column not in tested)
        self._tested = tuple(self._columns.index(column) for column in tested)
        self._others = tuple(self._columns.index(column) for column in others)
        self._at_once = not dataset.format.columns_apart or _meet(tested, columns)
        self._first = group_reader(dataset, tested, payload=False, far=far)
        alone = [RowFilter([predicate]) for predicate in filter(cannot_raise, keep.predicates)]
        self._excluded = ExcludedGroups(alone, self._first, dataset.group_counts())
        everything = self._columns if self._at_once else others
        self._rest = group_reader(dataset, everything, payload=payload, far=far)
        self._reads_rest = self._at_once or payload or bool(others)
        self._empty = columns_batch(
            self._columns, [pa.array([], column.type) for column in self._columns], 0
        )

    def excluded(self, shards: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Find row groups of which nothing need be read: no row passes, as their files prove.

        Args:
            shards: position of each row group's shard in the dataset's, ascending, shape [groups].
            groups: its position in that shard's row groups, each once, shape [groups].

        Raises:
            ShardError: a file cannot be read, or changed since it was counted.
        """
        found, new = self._excluded.find(shards, groups)
        if new:
            self._counter.add(skipped=new)
        return found

    def keep_texts(self, texts: Texts) -> None:
        """Let text that cost much to have be kept."""
        self._first.keep_texts(texts)
        self._rest.keep_texts(texts)

    def read(self, shard: int, group: int) -> KeptGroup:
        """Decode as much of one row group as must be; for those that ``excluded`` does not name.

        Args:
            shard: position in the dataset's shards.
            group: position in the shard's row groups.

        Raises:
            ShardError: the file cannot be read, or changed since it was counted.
        """
        if self._at_once:
            whole = first = self._rest.read(shard, group)
            frame = whole.columns.select(self._tested)
            decoded = whole.bytes
        else:
            first = self._first.read(shard, group)
            frame, whole, decoded = first.columns, None, first.bytes
        bad = unknown_parts(first.faults, self._keep.reads) if first.faults else ()
        passes, trial = evaluated(self._keep, frame, bad), None
        if passes is None:
            trial = Trial(self._keep, frame, bad)
            passes = np.ones(frame.num_rows, np.bool_)
        kept = np.flatnonzero(passes)
        if len(kept) and whole is None:
            rest = self._rest.read(shard, group) if self._reads_rest else None
            decoded += 0 if rest is None else rest.bytes
            whole = self._put_together(first, rest)
        self._counter.add(read=1, emptied=int(not len(kept)), bytes=decoded)
        if whole is None or not len(kept):
            return self._nothing()
        return self._kept(kept, whole, trial)

    def _nothing(self) -> KeptGroup:
        none = np.empty(0, np.int64)
        return KeptGroup(none, self._empty, none, (), None, _ENTRY_BYTES)

    def _put_together(self, first: DecodedGroup, rest: DecodedGroup | None) -> DecodedGroup:
        if rest is None:
            return first
        arrays: list[pa.Array] = [None] * len(self._columns)
        for place, array in zip(self._tested, first.columns.columns, strict=True):
            arrays[place] = array
        for place, array in zip(self._others, rest.columns.columns, strict=True):
            arrays[place] = array
        columns = columns_batch(self._columns, arrays, first.columns.num_rows)
        held = first.bytes + rest.bytes
        return DecodedGroup(columns, first.faults + rest.faults, rest.payload, held)

    def _kept(self, kept: NDArray[np.int64], whole: DecodedGroup, trial: Trial | None) -> KeptGroup:
        """Keep some rows, copied where that saves memory."""
        rows = whole.columns.num_rows
        held = whole.bytes + 8 * len(kept) + _ENTRY_BYTES
        if len(kept) > _COMPACT_SHARE * rows:
            payload = None if whole.payload is None else (whole.payload, kept)
            return KeptGroup(kept, whole.columns, kept, whole.faults, payload, held, trial)
        indices = indices_of(kept)
        arrays = [
            joined(picked([array], kept, indices), None, array.type)
            for array in whole.columns.columns[: self._typed]
        ]
        arrays += [array.take(indices) for array in whole.columns.columns[self._typed :]]
        held = held_bytes(arrays) + 16 * len(kept) + _ENTRY_BYTES
        payload = None
        if whole.payload is not None:
            payload = whole.payload.some(kept)
            held += whole.bytes * len(kept) // rows
        some = tuple(bad.of_kept(kept) for bad in whole.faults)
        columns = columns_batch(self._columns, arrays, len(kept))
        return KeptGroup(kept, columns, np.arange(len(kept)), some, payload, held)


def _tested(keep: RowFilter, frame: tuple[Column, ...]) -> tuple[Column, ...]:
    """Find the columns that a filter looks at, in the order of the frame."""
    missing = set(keep.reads) - {column.path for column in frame}
    if missing:
        raise PlanError(
            f"filter: the frame must hold what it reads, got none of {', '.join(sorted(missing))}; "
            f"read these columns too"
        )
    return tuple(column for column in frame if column.path in keep.reads)


def _meet(tested: tuple[Column, ...], columns: tuple[Column, ...]) -> bool:
    """Say whether reading first what a filter tests would decode texts or lists twice."""
    paths = {column.path for column in columns}
    return any(
        column.path in paths and (column.type == TEXT or pa.types.is_nested(column.type))
        for column in tested
    )
