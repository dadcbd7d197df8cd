"""Whole rows, decoded only when someone looks at one.

A payload is a list of sources (decoded row groups, raw lines, the user's own rows) and, for each of
its rows, which source holds it and where: moving rows about moves two integers a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zephon.io.raw_rows import json_of

if TYPE_CHECKING:
    from zephon.batches.identity import SampleMeta


class RowSource(ABC):
    """Rows of one row group; any number of threads may read at once.

    has_metas: rows say themselves who they are. are_dicts: every row surely is one.
    """

    __slots__ = ()

    has_metas: ClassVar[bool] = False
    are_dicts: ClassVar[bool] = False

    @abstractmethod
    def row(self, index: int) -> Any:
        """Make a fresh Python value of one row; nothing in it is shared with the source."""

    def rows(self, indices: NDArray[np.int64]) -> list[Any]:
        """Make fresh values of some rows at once; what ``row`` gives of each."""
        return [self.row(index) for index in indices.tolist()]

    def moved(self, indices: NDArray[np.int64]) -> list[Any]:
        """Give what ``rows`` gives, but maybe the objects that the source holds.

        Only for who changes none of them, or owns the source and asks once.
        """
        return self.rows(indices)

    def raw(self, index: int) -> bytes:
        """Give one row as JSON, as far as it can be, to be written down."""
        try:
            return json_of(self.row(index))
        except Exception as exc:  # whatever is wrong with it, what there is to tell of it is told
            return json_of({"unreadable": str(exc)})

    def place(self, index: int) -> str:
        """Say where one row lies, for messages: dataset, shard and row; "" if it does not know."""
        del index
        return ""

    def meta(self, index: int) -> SampleMeta:
        """Give what one row says of itself, where rows do."""
        raise NotImplementedError

    def metas_only(self) -> RowSource:
        """Give the same rows as empty dicts that still say who they are, where rows do."""
        raise NotImplementedError

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Give a source that holds these rows, and where each of them is in it.

        A source that holds decoded bytes copies the rows, so that they do not keep all others
        alive; one that refers to what is alive anyway gives itself.

        Args:
            rows: positions in this source, in any order, repeats allowed, shape [n], int64.
        """
        return self, rows


class Payload:
    """Rows by reference, in any order, each as often as wanted.

    sources: where the rows lie.
    source_of: which source holds each row, shape [rows], int32.
    row_of: the row's position in its source, shape [rows], int64. Both are kept, not copied.
    """

    __slots__ = ("_row_of", "_source_of", "_sources")

    def __init__(
        self,
        sources: tuple[RowSource, ...],
        source_of: NDArray[np.int32],
        row_of: NDArray[np.int64],
    ) -> None:
        self._sources = sources
        self._source_of = source_of
        self._row_of = row_of

    def __len__(self) -> int:
        return len(self._row_of)

    def __repr__(self) -> str:
        return f"Payload({len(self)} rows in {len(self._sources)} groups)"

    def row(self, i: int) -> Any:
        """Decode row i: a dict (any JSON value from JSONL, any object from memory).

        Each call gives a fresh copy that the caller may change.

        Raises:
            DataError: the row cannot be decoded; the message says where it lies.
        """
        return self._sources[self._source_of.item(i)].row(self._row_of.item(i))

    def rows(self) -> list[Any]:
        """Decode all rows, in order; fresh values, as ``row`` gives them.

        Raises:
            DataError: as ``row``, of the first bad row in some order.
        """
        return self._of_each(lambda source, rows: source.rows(rows))

    def moved(self) -> list[Any]:
        """Give all rows, in order, maybe the very objects that sources hold.

        Only for who changes none of them, or owns this payload and its sources and asks once.

        Raises:
            DataError: as ``rows``.
        """
        return self._of_each(lambda source, rows: source.moved(rows))

    def _of_each(self, values: Callable[[RowSource, NDArray[np.int64]], list[Any]]) -> list[Any]:
        """Ask each source for its rows, and put these in order."""
        if len(self._sources) == 1:
            return values(self._sources[0], self._row_of)
        made: list[Any] = [None] * len(self)
        order = np.argsort(self._source_of, kind="stable")
        stops = np.cumsum(np.bincount(self._source_of, minlength=len(self._sources))).tolist()
        start = 0
        for source, stop in zip(self._sources, stops, strict=True):
            mine = order[start:stop]
            for place, value in zip(mine.tolist(), values(source, self._row_of[mine]), strict=True):
                made[place] = value
            start = stop
        return made

    @property
    def has_metas(self) -> bool:
        """Whether rows say themselves who they are."""
        for source in self._sources:  # noqa: SIM110 - a generator costs a batch half a microsecond
            if source.has_metas:
                return True
        return False

    @property
    def are_dicts(self) -> bool:
        """Whether every row surely is a dict."""
        return all(source.are_dicts for source in self._sources)

    def place(self, i: int) -> str:
        """Say where row i lies, for messages; "" if its source does not know."""
        return self._sources[self._source_of.item(i)].place(self._row_of.item(i))

    def meta(self, i: int) -> SampleMeta:
        """Give what row i says of itself; only where ``has_metas``."""
        return self._sources[self._source_of.item(i)].meta(self._row_of.item(i))

    def metas_only(self) -> Payload:
        """Give the same rows as empty dicts that still say who they are."""
        sources = tuple(source.metas_only() for source in self._sources)
        return Payload(sources, self._source_of, self._row_of)

    def take(self, indices: NDArray[np.int64]) -> Payload:
        """Pick rows, in the order of ``indices``; lets go of sources that hold none of them."""
        source_of, row_of = self._source_of[indices], self._row_of[indices]
        if len(self._sources) == 1:
            return Payload(self._sources, source_of, row_of)
        used, renumbered = np.unique(source_of, return_inverse=True)
        sources = tuple(self._sources[index] for index in used.tolist())
        return Payload(sources, renumbered.astype(np.int32), row_of)

    def part(self, first: int, stop: int) -> Payload:
        """Give rows [first, stop); lets go of sources that hold none of them."""
        source_of, sources = self._source_of[first:stop], self._sources
        if len(sources) > 1:
            if first == stop or (source_of != source_of[0]).any():
                return self.take(np.arange(first, stop))
            sources = (sources[source_of[0]],)
            source_of = np.zeros(stop - first, np.int32)
        return Payload(sources, source_of, self._row_of[first:stop])

    def copied(self) -> Payload:
        """Give the same rows, copied out of sources that would keep other rows alive."""
        sources, row_of = [], np.empty_like(self._row_of)
        order = np.argsort(self._source_of, kind="stable")
        stops = np.cumsum(np.bincount(self._source_of, minlength=len(self._sources))).tolist()
        start = 0
        for source, stop in zip(self._sources, stops, strict=True):
            mine = order[start:stop]
            few, row_of[mine] = source.some(self._row_of[mine])
            sources.append(few)
            start = stop
        return Payload(tuple(sources), self._source_of, row_of)

    @classmethod
    def concat(cls, parts: Sequence[Payload]) -> Payload:
        """Put payloads one after another; a source that several share is held once."""
        if len(parts) == 1:
            return parts[0]
        number: dict[int, int] = {}
        sources: list[RowSource] = []
        source_of = [np.empty(0, np.int32)]
        for part in parts:
            for source in part._sources:
                if id(source) not in number:
                    number[id(source)] = len(sources)
                    sources.append(source)
            numbers = np.array([number[id(source)] for source in part._sources], np.int32)
            source_of.append(numbers[part._source_of])
        row_of = [np.empty(0, np.int64), *(part._row_of for part in parts)]
        return cls(tuple(sources), np.concatenate(source_of), np.concatenate(row_of))
