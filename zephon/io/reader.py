"""Rows of one dataset by (shard, row), as columns, in the order asked for.

A request goes through its row groups one by one, first through those that are in memory, and holds
what it took out of each, not the group: beside what the cache holds, at most one decoded group,
four times the rows that it gives in columns, and twice in whole rows. Rows that follow one another
cost slices and at most two copies; a task of rows at random costs some 20 µs a row group in memory,
60 µs more for one in the spill, and three copies of its rows. No Python work a row.

With a filter, only rows that pass are decoded and cached; such groups do not go to the spill.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.expressions import RowFilter
from zephon.io.dataset import Dataset
from zephon.io.far_reading import FAR, FarReading
from zephon.io.faults import NULLED, WAY_OUT, BadRow, RowFault
from zephon.io.fields import Column
from zephon.io.folder_groups import group_reader
from zephon.io.formats.format import DecodedGroup, GroupReader, columns_batch
from zephon.io.frames import joined_values
from zephon.io.gather import joined
from zephon.io.group_cache import GroupCache
from zephon.io.kept_group import KeptGroup
from zephon.io.offsets import indices_of, is_ascending, offsets_of
from zephon.io.payload import Payload
from zephon.io.read_counts import ReadCounter, ReadCounts
from zephon.io.row_filters import FilteredGroups
from zephon.io.row_policy import ANOTHER_POLICY
from zephon.io.spill.key import GroupKey
from zephon.io.spill.texts import SpilledTexts
from zephon.io.taken_parts import TakenPart, bad_rows, payload_of, places_of, taken, taken_kept

_MOST_KEYS = 1 << 16
_UNCHECKED = "\1"  # before the dataset's name: others must not take such rows for good ones

_bytes_of = attrgetter("bytes")


@dataclass(frozen=True, slots=True, eq=False)
class TakenRows:
    """Rows in the order asked for; with a filter, those of them that pass.

    columns: one column a ``Column``, named by its path, of its type, without nulls. May share
        memory with a row group of which they are a quarter or more; read-only.
    frame: the columns of kind "any", with nulls; None if none were asked for.
    payload: the whole rows, if the reader was made with ``payload=True``.
    kept: which of the rows asked for these are, ascending, shape [rows], int64.
    faults: what is wrong with bad rows, by position among these; where bad rows raise, none.
    """

    columns: pa.RecordBatch
    frame: pa.RecordBatch | None
    payload: Payload | None
    kept: NDArray[np.int64]
    faults: dict[int, RowFault]


class RowReader:
    """Reads some columns of one dataset; any number of threads may call ``take`` at once.

    Args:
        dataset: whose rows.
        columns: what is read of each row; may be empty.
        payload: hand out whole rows too.
        cache: where decoded row groups are kept; readers of any datasets may share one.
        keep: give only rows that pass; looks at columns of ``frame``.
        frame: columns of kind "any" that are read of each row, too.
        late_rows: a row that is bad only as a whole raises when it is looked at, as ``Payload``
            does; so a group that is read for one row costs a third of what it does otherwise.

        far: how far datasets are read.

    Raises:
        DatasetError: a Parquet shard lacks a column, or has it in another type.
        PlanError: the filter looks at columns that are not in the frame.
    """

    def __init__(
        self,
        dataset: Dataset,
        columns: tuple[Column, ...],
        *,
        payload: bool,
        cache: GroupCache,
        keep: RowFilter | None = None,
        frame: tuple[Column, ...] = (),
        late_rows: bool = False,
        far: FarReading = FAR,
    ) -> None:
        self._dataset = dataset
        self._columns = columns
        self._frame = frame
        self._keep = keep
        self._cache = cache
        self._kept_rows = payload
        self._counter = ReadCounter()
        self._groups: GroupReader | FilteredGroups
        if keep is None:
            self._groups = group_reader(dataset, columns + frame, payload=payload, far=far)
        else:
            self._groups = FilteredGroups(
                dataset, keep, columns, frame, payload=payload, counter=self._counter, far=far
            )
        self._told_keys = dataset.folder_keys
        self._late_rows = late_rows
        if late_rows and isinstance(self._groups, GroupReader):
            self._groups.leave_rows()
        if cache.lower is not None:
            self._groups.keep_texts(SpilledTexts(cache.lower))
        self._first_row = offsets_of(dataset.counts())
        self._first_group = offsets_of(dataset.group_counts())
        self._starts = offsets_of(dataset.group_sizes())
        self._keys: dict[int, GroupKey] = {}
        options = json.dumps(dataset.format.said_options(), sort_keys=True, default=str)
        self._read_as = (dataset.kind, options)  # one file may be read in several ways

    def take(
        self, shards: NDArray[np.int64], rows: NDArray[np.int64], *, late_faults: bool = False
    ) -> TakenRows:
        """Read rows.

        Args:
            shards: position of each row's shard in ``dataset.shards``, shape [n].
            rows: position of each row in its shard, shape [n].
            late_faults: bad rows do not raise; what is wrong with them is given beside the rows.

        Raises:
            DataError: one of these rows is bad; names dataset, shard, row and field. Bad rows
                that are not asked for never raise, nor do those that do not pass the filter.
            ShardError: a file cannot be read.
            IndexError: there is no such row.
        """
        positions = self._positions(shards, rows)
        groups = np.searchsorted(self._starts, positions, side="right") - 1
        order = None
        if not is_ascending(groups):
            order = np.argsort(groups, kind="stable")
            groups, positions = groups[order], positions[order]
        parts = self._parts(groups, positions - self._starts[groups], late_faults)
        bad = bad_rows(parts, order)
        if bad and not late_faults:
            _, place, first = bad[0]
            raise DataError(self._message(int(positions[place]), first))
        kept, back = places_of(parts, order, len(positions), filtered=self._keep is not None)
        arrays = [
            joined([part.columns[index] for part in parts], back, column.type)
            for index, column in enumerate(self._columns)
        ]
        columns = columns_batch(self._columns, arrays, len(kept))
        frame = None
        if self._frame:
            arrays = [
                joined_values([part.frame[index] for part in parts], back, column.type)
                for index, column in enumerate(self._frame)
            ]
            frame = columns_batch(self._frame, arrays, len(kept))
        payload = payload_of(parts) if self._kept_rows else None
        if payload is not None and back is not None:
            payload = payload.take(back)
        faults: dict[int, RowFault] = {}
        for asked, place, found in bad:
            given = int(np.searchsorted(kept, asked))
            fault = faults.get(given) or self._fault(int(positions[place]), found)
            if found.unknown is not None:
                fault = replace(fault, unknown=fault.unknown | {found.unknown})
            faults[given] = fault
        return TakenRows(columns, frame, payload, kept, faults)

    def counts(self) -> ReadCounts:
        """Report how many row groups were decoded, or had no need to be, for this reader."""
        return self._counter.counts()

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

    def _parts(
        self, groups: NDArray[np.int64], inside: NDArray[np.int64], late: bool
    ) -> list[TakenPart]:
        """Take rows out of their groups, in memory first: they may have to leave for others.

        Args:
            groups: of each row, ascending, shape [rows].
            inside: the row's position in its group, shape [rows].
            late: find all bad rows, not only the first.
        """
        if not len(groups):
            return []
        cuts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        bounds = [0, *cuts.tolist(), len(groups)]
        wanted = groups[bounds[:-1]]
        shards = np.searchsorted(self._first_group, wanted, side="right") - 1
        numbers: Sequence[int] = range(len(wanted))
        if isinstance(self._groups, FilteredGroups):
            excluded = self._groups.excluded(shards, wanted - self._first_group[shards])
            if excluded.all():
                return []
            numbers = np.flatnonzero(~excluded).tolist()
        keys = {at: self._key(int(wanted[at]), int(shards[at])) for at in numbers}
        indices = indices_of(inside)
        parts: dict[int, TakenPart] = {}
        held = dict(zip(keys, self._cache.held(list(keys.values())), strict=True))
        for number in sorted(keys, key=lambda at: not held[at]):
            start, stop = bounds[number], bounds[number + 1]
            group, shard = int(wanted[number]), int(shards[number])
            read = partial(self._read, shard, group - int(self._first_group[shard]))
            decoded = self._cache.get(keys[number], read, _bytes_of)
            part = inside[start:stop]
            if isinstance(decoded, KeptGroup):
                found = taken_kept(start, decoded, part, len(self._columns), late)
                if found is not None:
                    parts[number] = found
                continue
            picks = indices.slice(start, stop - start)
            parts[number] = taken(start, decoded, part, picks, len(self._columns), late)
        return [parts[number] for number in numbers if number in parts]

    def _read(self, shard: int, group: int) -> DecodedGroup | KeptGroup:
        decoded = self._groups.read(shard, group)
        if isinstance(decoded, DecodedGroup):  # a filter counts for itself
            self._counter.add(read=1, bytes=decoded.bytes)
        return decoded

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
                self._columns + self._frame,
                # Whole rows name their dataset in errors, so they are not shared with another's.
                (_UNCHECKED * self._late_rows + self._dataset.name) if self._kept_rows else None,
                self._keep,
                (*self._read_as, () if self._told_keys is None else self._told_keys.told(shard)),
            )
        return key

    def _fault(self, position: int, bad: BadRow) -> RowFault:
        if bad.raised:
            return RowFault(bad.detail, step="filter")
        if bad.detail == NULLED:
            return RowFault(NULLED)
        return RowFault(self._message(position, bad))

    def _message(self, position: int, bad: BadRow) -> str:
        """Say what is wrong with a row, given where it is among the rows of all shards."""
        shard = int(np.searchsorted(self._first_row, position, side="right")) - 1
        row = position - int(self._first_row[shard])
        name = self._dataset.shards[shard].name
        place = f"dataset {self._dataset.name!r}, shard {name!r}, row {row}"
        raises = self._dataset.policy.on_error == "raise"
        advice = f", or {ANOTHER_POLICY}" if raises else ""
        if bad.raised:
            return f"filter: {bad.detail} on {place}; {WAY_OUT}{advice}"
        if bad.detail == NULLED:
            return f"{place}: its text is null; {WAY_OUT}"
        return f"{place}{bad.detail}{advice}"
