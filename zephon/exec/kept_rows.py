"""Rows that an operator of the user has taken, by reference: with them it can be made to go again.

They are kept interval by interval. An interval begins where the operator has no memory, or has
written it down; whoever pushes the rows of an interval once more gets the same records once more.
An interval may be long, and is mostly never needed: a row costs about 20 bytes in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import Known
from zephon.exec.policies import NO_UNITS, Units
from zephon.work.refs import Refs

_TOGETHER = 16
"""Groups whose rows are narrowed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """Finished rows of the lane below the operator.

    units: ``seq`` is the place of each piece's document in ``known``; triggers mean nothing. known:
    the documents, in any order, one any number of times.
    """

    units: Units
    known: Known

    def __len__(self) -> int:
        return len(self.units)

    @classmethod
    def of(cls, rows: Units, known: Known) -> KeptRows:
        """Keep rows, given the document of each of their pieces."""
        places = np.arange(len(known))
        return cls(Units(rows.splits, places, rows.start, rows.length, rows.trigger), known)

    @classmethod
    def concat(cls, parts: Sequence[KeptRows]) -> KeptRows:
        """Put rows one after another; one part keeps its arrays."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls(NO_UNITS, Known.none())
        firsts = np.cumsum([0, *(len(part.known) for part in parts)])
        units = [
            Units(u.splits, u.seq + first, u.start, u.length, u.trigger)
            for u, first in zip((part.units for part in parts), firsts.tolist(), strict=False)
        ]
        return cls(Units.concat(units), Known.concat([part.known for part in parts]))

    def rows(self, first: int, stop: int) -> KeptRows:
        """Return rows [first, stop), and the documents of their pieces."""
        units = self.units.rows(first, stop)
        return KeptRows.of(units, self.known.take(units.seq))

    def distinct(self) -> KeptRows:
        """Return the same rows, each document once, in the order of the lane."""
        refs, units = self.known.refs, self.units
        width = int(refs.child.max(initial=0)) + 1
        names = refs.ordinal * width + refs.child
        if (np.diff(names) > 0).all():
            return self
        _, firsts, place = np.unique(names, return_index=True, return_inverse=True)
        seq = place.reshape(-1)[units.seq]
        return KeptRows(
            Units(units.splits, seq, units.start, units.length, units.trigger),
            self.known.take(firsts),
        )


class _Narrow:
    """Rows in the narrowest integers; every piece has an entry of its own among the documents.

    sizes: rows of each group.
    """

    __slots__ = ("_columns", "_lane", "_measures", "_pieces", "sizes")

    def __init__(self, groups: Sequence[KeptRows]) -> None:
        rows = KeptRows.concat(groups)
        units, known, refs = rows.units, rows.known, rows.known.refs
        self.sizes = [len(group) for group in groups]
        self._lane = int(refs.lane[0]) if len(refs) else 0
        self._pieces = _narrow(np.diff(units.splits))
        self._columns = [
            *map(_narrow, (units.start, units.length, known.length, known.position)),
            *map(_narrow, (refs.component, refs.shard, refs.row, refs.pass_index)),
            *map(_narrow, (refs.ordinal, refs.child, refs.last_child)),
        ]
        self._measures = [_narrow(each) for each in known.measures]

    def documents(self) -> NDArray[np.int64]:
        """List the draws that the documents came from."""
        return _wide(self._columns[8])

    def rows(self) -> KeptRows:
        """Return the rows as they were."""
        start, length, tokens, position, component, shard, row, passes, ordinal, child, last = map(
            _wide, self._columns
        )
        refs = Refs(
            component=component.astype(np.int32),
            shard=shard,
            row=row,
            pass_index=passes.astype(np.int32),
            ordinal=ordinal,
            child=child.astype(np.int32),
            last_child=last.astype(bool),
            lane=np.full(len(row), self._lane, np.int32),
        )
        measures = np.array([_wide(each) for each in self._measures], np.int64)
        known = Known(refs, tokens, position, measures.reshape(len(self._measures), len(row)))
        splits = np.concatenate([[0], np.cumsum(_wide(self._pieces))]).astype(np.int64)
        trigger = np.zeros(len(splits) - 1, np.int64)
        return KeptRows.of(Units(splits, ordinal, start, length, trigger), known)


class Interval:
    """The groups of rows that an operator took from one beginning on.

    first: number of the first group. snapshot: the operator's memory before it, as JSON values;
    None: it had none. One thread adds groups; any may look.
    """

    def __init__(self, first: int, snapshot: Any = None, groups: Sequence[KeptRows] = ()) -> None:
        self.first = first
        self.snapshot = snapshot
        self._kept: tuple[tuple[_Narrow, ...], list[KeptRows]] = (), list(groups)

    def __len__(self) -> int:
        return len(self.sizes())

    def add(self, group: KeptRows) -> None:
        """Add the rows of the next group."""
        narrow, groups = self._kept
        full = len(groups) // _TOGETHER * _TOGETHER
        if full:
            parts = (_Narrow(groups[at : at + _TOGETHER]) for at in range(0, full, _TOGETHER))
            self._kept = (*narrow, *parts), [*groups[full:], group]
        else:
            groups.append(group)

    def sizes(self) -> list[int]:
        """Count the rows of each group."""
        narrow, groups = self._kept
        return [*(size for part in narrow for size in part.sizes), *map(len, groups)]

    def rows(self) -> KeptRows:
        """Return the rows of all groups."""
        narrow, groups = self._kept
        return KeptRows.concat([*(part.rows() for part in narrow), *groups])

    def groups(self) -> list[KeptRows]:
        """Return the rows group by group."""
        stops, rows = np.cumsum(self.sizes()).tolist(), self.rows()
        return [rows.rows(a, b) for a, b in zip([0, *stops], stops, strict=False)]

    def until(self, group: int) -> Interval:
        """Return the same interval without the groups from one on."""
        narrow, groups = self._kept
        whole, rest = divmod(max(0, group - self.first), _TOGETHER)
        found = Interval(self.first, self.snapshot)
        if whole < len(narrow):
            rest_of = Interval(0)
            rest_of._kept = (narrow[whole],), []
            found._kept = narrow[:whole], rest_of.groups()[:rest]
        else:
            found._kept = narrow, groups[: (whole - len(narrow)) * _TOGETHER + rest]
        return found

    def documents(self) -> NDArray[np.int64]:
        """List the draws that the documents of the rows came from, in the lane below."""
        narrow, groups = self._kept
        draws = [part.documents() for part in narrow]
        draws += [group.known.refs.ordinal for group in groups]
        return np.concatenate([np.empty(0, np.int64), *draws])


def _narrow(values: NDArray[Any]) -> tuple[int, NDArray[np.unsignedinteger[Any]]]:
    """Write integers as the least of them, and what each is above it."""
    wide = values.astype(np.int64)
    least = int(wide.min(initial=np.iinfo(np.int64).max)) if len(wide) else 0
    above = (wide - least).view(np.uint64)  # as if without a sign: no difference is too large
    kind = np.min_scalar_type(int(above.max(initial=0)))
    return least, above.astype(kind)


def _wide(narrow: tuple[int, NDArray[np.unsignedinteger[Any]]]) -> NDArray[np.int64]:
    least, above = narrow
    return above.astype(np.uint64).view(np.int64) + least
