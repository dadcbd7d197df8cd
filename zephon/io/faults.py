"""What is wrong with bad rows, and which of their values nobody knows.

A bad row holds some stand-in, and is an error only when it is taken and no filter drops it. A value
that is bad in a column that expressions read is unknown, and so is what an expression makes of it:
a predicate neither keeps nor drops a row by it. What a plan reads as text or numbers beside that,
and what a row is as a whole, is no concern of predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zephon.io.fields import Column

NULLED = "\0null"
"""The detail of a row whose text is null, in a column that drops such rows: it is not bad."""

WAY_OUT = "mend or remove the row, or filter it out before"
"""What to do about a row for which an expression raises, the end of a message."""

NOTHING: frozenset[str] = frozenset()

Parts = Sequence[tuple[frozenset[str], NDArray[np.int64]]]
"""Bad rows by what is unknown of them, ascending, shape [rows]; no row is in two parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Faults:
    """Rows of one row group that are bad in one column, or as a whole.

    rows: positions in the group, ascending, shape [faults], int64.
    details: what is wrong with each, beginning right after the row's number in a message.
    unknown: the column of kind "any" whose values are unknown; None: they are bad elsewhere.
    """

    rows: NDArray[np.int64]
    details: Sequence[str]
    unknown: str | None = None

    @classmethod
    def of(cls, details: Mapping[int, str], column: Column | None = None) -> Faults:
        """Sort faults of a column, or of whole rows, that were found row by row."""
        rows = sorted(details)
        found = [details[row] for row in rows]
        return cls(np.array(rows, dtype=np.int64), found, unknown_by(column))

    def first(self, rows: NDArray[np.int64]) -> list[BadRow]:
        """Find the first of some rows that is bad, if one is: by its position in ``rows``."""
        return self._at(rows, 1)

    def among(self, rows: NDArray[np.int64]) -> list[BadRow]:
        """Find all of some rows that are bad, as ``first`` does the first."""
        return self._at(rows, None)

    def of_kept(self, kept: NDArray[np.int64]) -> Faults:
        """Give the faults of some rows, by their numbers among these.

        Args:
            kept: at least one, ascending.
        """
        numbers = np.searchsorted(kept, self.rows).clip(max=len(kept) - 1)
        there = np.flatnonzero(kept[numbers] == self.rows)
        details = [self.details[place] for place in there.tolist()]
        return Faults(numbers[there], details, self.unknown)

    def _at(self, rows: NDArray[np.int64], most: int | None) -> list[BadRow]:
        if not len(self.rows):
            return []
        places = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        bad = np.flatnonzero(self.rows[places] == rows)[:most].tolist()
        return [BadRow(at, self.details[int(places[at])], self.unknown) for at in bad]


class BadRow(NamedTuple):
    """One of some rows, and what is wrong with it.

    row: its position among them. detail: see ``Faults``; where a filter raised, the problem alone.
    unknown: see ``Faults``. raised: a filter raised for it.
    """

    row: int
    detail: str
    unknown: str | None = None
    raised: bool = False


@dataclass(frozen=True, slots=True)
class RowFault:
    """Why a row is bad, and what is unknown of it.

    why: the whole message; where a step raised, the problem alone. step: the kind of the step that
    raised; None: the row was read so. unknown: columns of the frame.
    """

    why: str
    step: str | None = None
    unknown: frozenset[str] = NOTHING

    @property
    def is_null(self) -> bool:
        """Whether nothing is wrong with the row but that its text is null, which drops it."""
        return self.why == NULLED

    @property
    def rank(self) -> int:
        """Order what may be wrong with a row: the least is named, wherever filters run."""
        if self.is_null:
            return -1
        return 0 if self.step is None else 1 if self.step == "filter" else 2


def unknown_by(column: Column | None) -> str | None:
    """Name what is unknown of a row that is bad in a column."""
    return column.path if column is not None and column.kind == "any" else None


def unknown_parts(faults: Sequence[Faults], reads: Iterable[str]) -> Parts:
    """Part rows of a group that are bad in some of the columns that a filter reads."""
    read = set(reads)
    found = [(bad.unknown, bad.rows) for bad in faults if bad.unknown in read and len(bad.rows)]
    if len(found) < 2:
        return [(frozenset([name]), rows) for name, rows in found if name is not None]
    names: dict[int, frozenset[str]] = {}
    for name, rows in found:
        for row in rows.tolist():
            names[row] = names.get(row, NOTHING) | {name}
    return parted(names)


def parted(unknown: Mapping[int, frozenset[str]]) -> Parts:
    """Part bad rows, given what is unknown of each."""
    places: dict[frozenset[str], list[int]] = {}
    for row in sorted(unknown):
        places.setdefault(unknown[row], []).append(row)
    return [(names, np.array(rows, np.int64)) for names, rows in places.items()]
