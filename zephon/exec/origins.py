"""Where records come from that an operator of the user gives: each must be made of what it got."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from zephon.errors import LineageError
from zephon.exec.operator import RowError
from zephon.types import SampleId, SampleMeta

Place = tuple[int, int]
"""The chunk of a drawn row, and its place in that."""

_RECENT = 4096  # origins that wait to be sorted among the older ones


class Origins(ABC):
    """The records of one lane that an operator got.

    lane: a record that leaves must be of it too.
    """

    def __init__(self, lane: int) -> None:
        self.lane = lane

    @abstractmethod
    def add(self, meta: SampleMeta, row: int = 0) -> None:
        """Take in a record that goes in; ``row``: how its place is called."""

    def rows_of(self, meta: SampleMeta) -> list[int]:
        """Find what a record is made of.

        Returns:
            What ``add`` was told: first of the record whose place it takes, then of those that
            are named as its contributors.

        Raises:
            RowError: it is of another lane, or of a record that did not go in; of the first row,
                with the cause.
        """
        if meta.lane_id != self.lane:
            raise _error(
                f"a record of lane {self.lane} must stay in it, got lane {meta.lane_id} in the "
                f"meta of sample {meta.sample_id}",
                "keep lane_id as it is",
            )
        return [self._row(*named) for named in _named(meta)]

    @abstractmethod
    def _row(self, place: Place, sample_id: SampleId) -> int: ...


class KnownOrigins(Origins):
    """Every record by its place."""

    def __init__(self, lane: int) -> None:
        super().__init__(lane)
        self._rows: dict[Place, tuple[SampleId, int]] = {}

    def add(self, meta: SampleMeta, row: int = 0) -> None:
        """Take in a record, and all that it is made of; of those at one place the first counts."""
        for place, sample_id in _named(meta):
            self._rows.setdefault(place, (sample_id, row))

    def _row(self, place: Place, sample_id: SampleId) -> int:
        known = self._rows.get(place)
        if known is None or known[0] != sample_id:
            raise _stranger(place, sample_id)
        return known[1]


class ManyOrigins(Origins):
    """Every record by a hash of its name and place: eight bytes each, however many there are.

    Hashes lie in sorted arrays, each more than twice as long as the next: so each is sorted again
    a logarithmic number of times, and there are few arrays to look into.
    """

    def __init__(self, lane: int) -> None:
        super().__init__(lane)
        self._recent: set[int] = set()
        self._older: list[NDArray[np.int64]] = []  # each ascending

    def add(self, meta: SampleMeta, row: int = 0) -> None:
        """Take in a record, and all that it is made of; all are row 0."""
        self._recent.update(map(hash, _named(meta)))
        if len(self._recent) >= _RECENT:
            recent = np.sort(np.fromiter(self._recent, np.int64, len(self._recent)))
            while self._older and len(self._older[-1]) <= 2 * len(recent):
                recent = np.union1d(self._older.pop(), recent)
            self._older.append(recent)
            self._recent.clear()

    def _row(self, place: Place, sample_id: SampleId) -> int:
        key = hash((place, sample_id))
        if key not in self._recent and not any(_holds(each, key) for each in self._older):
            raise _stranger(place, sample_id)
        return 0


class LatestOrigin(Origins):
    """The last place alone, where records of any age may be held."""

    def __init__(self, lane: int, latest: Place = (-1, -1)) -> None:
        super().__init__(lane)
        self.latest = latest

    def add(self, meta: SampleMeta, row: int = 0) -> None:
        """Take in a record, and all that it is made of."""
        self.latest = max(self.latest, *(place for place, _ in _named(meta)))

    def _row(self, place: Place, sample_id: SampleId) -> int:
        if place > self.latest:
            raise _stranger(place, sample_id)
        return 0


def _holds(ascending: NDArray[np.int64], value: int) -> bool:
    at = int(ascending.searchsorted(value))
    return at < len(ascending) and int(ascending[at]) == value


def _named(meta: SampleMeta) -> list[tuple[Place, SampleId]]:
    """Name the record whose place one takes, and those that are said to be in it."""
    own = ((meta.chunk_id, meta.chunk_offset), meta.sample_id)
    if meta.contributors is None:
        return [own]
    cursors = [ref.cursor for ref in meta.contributors]
    return [own, *((cursor.base_offset, cursor.sample_id) for cursor in cursors)]


def _stranger(place: Place, sample_id: SampleId) -> RowError:
    return _error(
        f"records must be made of those that went in, got one of sample {sample_id} at chunk "
        f"{place[0]}, offset {place[1]}",
        "keep the meta of a record, or make one with spawn_child or pack_meta",
    )


def _error(problem: str, way_out: str) -> RowError:
    error = RowError(0, f"{problem}, from the records that begin", way_out)
    error.__cause__ = LineageError(f"{problem}; {way_out}")
    return error
