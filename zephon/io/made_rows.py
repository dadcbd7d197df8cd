"""Rows that functions of the user made: Python objects, and what each says of itself.

Whoever looks at a row gets a copy, so that no reader changes what the next one sees. Only a reader
that changes nothing, or that owns all the rows, may have the objects themselves: ``moved``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zephon.batches.own_copies import own_copy
from zephon.io.payload import Payload, RowSource

if TYPE_CHECKING:
    from zephon.batches.identity import LineagePath, SampleMeta


class MadeRows(RowSource):
    """Any Python objects, a dict as a rule.

    values: one a row; kept, not copied, and from now on nobody else's.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def row(self, index: int) -> Any:
        """Copy one row; what cannot be copied is given as it is."""
        return own_copy(self._values[index])

    def moved(self, indices: NDArray[np.int64]) -> list[Any]:
        """Give the objects; one that is wanted again comes as a copy."""
        values = self._values
        picked = indices.tolist()
        if len(set(picked)) == len(picked):
            return [values[index] for index in picked]
        given: set[int] = set()
        made = []
        for index in picked:
            made.append(own_copy(values[index]) if index in given else values[index])
            given.add(index)
        return made

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Refer to some rows alone."""
        picked, places = np.unique(rows, return_inverse=True)
        return MadeRows([self._values[index] for index in picked.tolist()]), places


class MadeRecords(MadeRows):
    """Python objects that say who they are.

    values: as of ``MadeRows``; None: every row is an empty dict, and only who it is counts.
    metas: one a row.
    """

    __slots__ = ("_metas",)

    has_metas: ClassVar[bool] = True

    def __init__(self, values: Sequence[Any] | None, metas: Sequence[SampleMeta]) -> None:
        super().__init__(_NoValues(len(metas)) if values is None else values)
        self._metas = metas

    def meta(self, index: int) -> SampleMeta:
        """Give what one row says of itself; its dicts are the caller's own."""
        meta = self._metas[index]
        return meta.with_lineage(meta.lineage)

    def metas_only(self) -> RowSource:
        """Let go of the objects."""
        return MadeRecords(None, self._metas)

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Refer to some rows alone."""
        picked, places = np.unique(rows, return_inverse=True)
        few = picked.tolist()
        values = self._values
        kept = None if isinstance(values, _NoValues) else [values[index] for index in few]
        return MadeRecords(kept, [self._metas[index] for index in few]), places


class SplitRecords(RowSource):
    """Rows that say who they are, after some of them were split into parts.

    Every part has all of its row, and is a child of it where there are several. Only the last uses
    the row up.

    rows: before the split. parent: which of these each part is of, shape [parts], int64. child:
    which part of it, from 0, int32. last: no further part follows, bool.
    """

    __slots__ = ("_child", "_last", "_parent", "_rows")

    has_metas: ClassVar[bool] = True

    def __init__(
        self,
        rows: Payload,
        parent: NDArray[np.int64],
        child: NDArray[np.int32],
        last: NDArray[np.bool_],
    ) -> None:
        self._rows = rows
        self._parent = parent
        self._child = child
        self._last = last

    def row(self, index: int) -> Any:
        """Give the whole row of a part."""
        return self._rows.row(int(self._parent[index]))

    def meta(self, index: int) -> SampleMeta:
        """Give what a part says of itself."""
        meta = self._rows.meta(int(self._parent[index]))
        child, last = int(self._child[index]), bool(self._last[index])
        if not child and last:
            return meta
        return part_of(replace(meta, component_token_counts=None), (child,), closes=last)

    def metas_only(self) -> RowSource:
        """Let go of what rows hold besides."""
        return SplitRecords(self._rows.metas_only(), self._parent, self._child, self._last)

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Refer to some parts alone."""
        picked, places = np.unique(rows, return_inverse=True)
        kept = self._rows.take(self._parent[picked]).copied()
        parts = SplitRecords(kept, np.arange(len(picked)), self._child[picked], self._last[picked])
        return parts, places


def split_records(
    rows: Payload, parent: NDArray[np.int64], child: NDArray[np.int32], last: NDArray[np.bool_]
) -> Payload:
    """Give the parts of rows that say who they are; the arguments are those of ``SplitRecords``."""
    count = len(parent)
    source = SplitRecords(rows, parent, child, last)
    return Payload((source,), np.zeros(count, np.int32), np.arange(count))


class InheritedRecords(RowSource):
    """Rows that say who they are, after the last part of some row was dropped.

    The part before it is the last one then, and uses the row up.

    rows: that are left. heirs: by the position of such a part, which of ``ended`` was dropped
    behind it.
    """

    __slots__ = ("_ended", "_heirs", "_rows")

    has_metas: ClassVar[bool] = True

    def __init__(self, rows: Payload, heirs: Mapping[int, int], ended: Payload) -> None:
        self._rows = rows
        self._heirs = heirs
        self._ended = ended

    def row(self, index: int) -> Any:
        """Give the row itself."""
        return self._rows.row(index)

    def moved(self, indices: NDArray[np.int64]) -> list[Any]:
        """Give the rows themselves."""
        return self._rows.take(indices).moved()

    def meta(self, index: int) -> SampleMeta:
        """Give what a row says of itself, and of the sample that it ends now."""
        meta = self._rows.meta(index)
        place = self._heirs.get(index)
        if place is None:
            return meta
        ended = self._ended.meta(place)
        meta = replace(meta, component_sample_counts=dict(ended.component_sample_counts))
        if meta.contributors is None:
            return meta
        closed = {ref.cursor.sample_id for ref in ended.contribution_refs() if ref.is_last_child}
        return meta.with_contributors(
            replace(ref, is_last_child=ref.is_last_child or ref.cursor.sample_id in closed)
            for ref in meta.contribution_refs()
        )

    def metas_only(self) -> RowSource:
        """Let go of what rows hold besides."""
        return InheritedRecords(self._rows.metas_only(), self._heirs, self._ended.metas_only())

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Refer to some rows alone."""
        picked, places = np.unique(rows, return_inverse=True)
        heirs = {
            place: self._heirs[row]
            for place, row in enumerate(picked.tolist())
            if row in self._heirs
        }
        return InheritedRecords(self._rows.take(picked).copied(), heirs, self._ended), places


def inherited_records(rows: Payload, heirs: NDArray[np.int64], ended: Payload) -> Payload:
    """Give rows of which some now end what a dropped one would have ended.

    Args:
        rows: that say who they are.
        heirs: positions of these, shape [ended], int64.
        ended: what was dropped after each.
    """
    places = dict(zip(heirs.tolist(), range(len(heirs)), strict=True))
    source = InheritedRecords(rows, places, ended.metas_only())
    return Payload((source,), np.zeros(len(rows), np.int32), np.arange(len(rows)))


def part_of(meta: SampleMeta, path: LineagePath, *, closes: bool) -> SampleMeta:
    """Say who a part of a row is.

    Args:
        meta: who the row is.
        path: the lineage of the part below that; () for all of the row.
        closes: no further part follows. One that does not close counts no sample and uses up no
            source record.
    """
    part = meta.with_lineage((*meta.lineage, *path)) if path else meta
    if not closes:
        counts = dict.fromkeys(meta.component_sample_counts, 0)
        part = replace(part, component_sample_counts=counts)
    if closes and meta.contributors is None:
        return part
    own = meta.cursor
    return part.with_contributors(
        replace(
            ref,
            cursor=part.cursor if ref.cursor == own else ref.cursor,
            is_last_child=ref.is_last_child and closes,
        )
        for ref in meta.contribution_refs()
    )


class _NoValues(Sequence[Any]):
    """So many empty dicts."""

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return {}
