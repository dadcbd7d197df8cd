"""What a request takes out of one row group, and how parts become one answer.

Rows that are few are copied, so that they do not keep all others of their group alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.faults import NULLED, BadRow, Faults
from zephon.io.formats.format import DecodedGroup
from zephon.io.frames import picked_values
from zephon.io.gather import picked
from zephon.io.kept_group import KeptGroup
from zephon.io.offsets import indices_of, is_ascending
from zephon.io.payload import Payload, RowSource

_PAYLOAD_SHARE = 0.5  # of a group: fewer rows are copied, so that they do not keep all of it


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TakenPart:
    """What was taken out of one group.

    start: where the rows asked of the group begin in a request, once that is sorted by group.
    found: which of these they are, ascending, shape [rows]; None: all.
    columns: the rows as bytes, a column of the plan each; a slice of the group's only where they
        are a good part of it. frame: columns of any type, likewise.
    faults: bad ones among them; as a rule only the first of a kind.
    source: holds them whole, if whole rows are wanted; at least these, at most the group.
    places: where each of them is in ``source``, shape [rows], int64.
    """

    start: int
    found: NDArray[np.int64] | None
    columns: Sequence[pa.Array]
    frame: Sequence[pa.Array]
    faults: Sequence[BadRow]
    source: RowSource | None
    places: NDArray[np.int64]

    def asked(self) -> NDArray[np.int64]:
        """Say which rows of the sorted request these are, ascending."""
        return self.start + (np.arange(len(self.places)) if self.found is None else self.found)


def places_of(
    parts: list[TakenPart], order: NDArray[np.int64] | None, asked: int, *, filtered: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Find which rows of a request are given, ascending, and where each is in the parts.

    None: the parts, one after another, have them in order.
    """
    if not filtered:
        kept, back = np.arange(asked), None
        if order is not None:
            back = np.empty_like(order)
            back[order] = kept
        return kept, back
    kept = np.concatenate([np.empty(0, np.int64), *(part.asked() for part in parts)])
    if order is None:
        return kept, None
    kept = order[kept]
    if is_ascending(kept):
        return kept, None
    back = np.argsort(kept)
    return kept[back], back


def bad_rows(
    parts: list[TakenPart], order: NDArray[np.int64] | None
) -> list[tuple[int, int, BadRow]]:
    """List bad rows: which of a request each is, and of one sorted by group, and what is wrong.

    Ascending, so that the bad row that was asked for first is named, whatever the order of groups;
    of what is wrong with one row, the same goes first whatever columns were read beside it.
    """
    found: list[tuple[int, int, BadRow]] = []
    for part in parts:
        for bad in part.faults:
            place = part.start + (bad.row if part.found is None else int(part.found[bad.row]))
            found.append((place if order is None else int(order[place]), place, bad))
    return sorted(found, key=_order)


def _order(found: tuple[int, int, BadRow]) -> tuple[Any, ...]:
    asked, place, bad = found
    return asked, place, bad.detail != NULLED, bad.raised, bad.unknown is not None, bad.detail


def taken(
    start: int,
    decoded: DecodedGroup,
    rows: NDArray[np.int64],
    indices: pa.Array,
    typed: int,
    late: bool,
) -> TakenPart:
    """Take rows out of one group, and let go of it where they are few."""
    source, places = decoded.payload, rows
    if source is not None and len(rows) < _PAYLOAD_SHARE * decoded.columns.num_rows:
        source, places = source.some(rows)
    arrays = decoded.columns.columns
    return TakenPart(
        start=start,
        found=None,
        columns=picked(arrays[:typed], rows, indices),
        frame=picked_values(arrays[typed:], rows) if len(arrays) > typed else (),
        faults=_bad(decoded.faults, rows, late) if decoded.faults else (),
        source=source,
        places=places,
    )


def taken_kept(
    start: int, group: KeptGroup, rows: NDArray[np.int64], typed: int, late: bool
) -> TakenPart | None:
    """Take the rows that pass out of one group; None if none does."""
    found, numbers, raised = group.find(rows)
    if not len(found):
        return None
    rows = group.places[numbers]
    source, places = None, rows
    if group.payload is not None:
        source, places = group.payload[0], group.payload[1][numbers]
        if len(rows) < _PAYLOAD_SHARE * group.columns.num_rows:
            source, places = source.some(places)
    arrays = group.columns.columns
    return TakenPart(
        start=start,
        found=found,
        columns=picked(arrays[:typed], rows, indices_of(rows)),
        frame=picked_values(arrays[typed:], rows),
        faults=[
            *_bad(group.faults, rows, late),
            *(BadRow(row, problem, raised=True) for row, problem in raised.items()),
        ],
        source=source,
        places=places,
    )


def _bad(faults: Sequence[Faults], rows: NDArray[np.int64], late: bool) -> Sequence[BadRow]:
    """Find bad rows among some: of each kind the first, or all."""
    return [found for bad in faults for found in (bad.among(rows) if late else bad.first(rows))]


def payload_of(parts: list[TakenPart]) -> Payload:
    """Put the whole rows of parts one after another."""
    sources = tuple(part.source for part in parts if part.source is not None)
    source_of = np.repeat(
        np.arange(len(parts), dtype=np.int32), [len(part.places) for part in parts]
    )
    row_of = [np.empty(0, np.int64), *(part.places for part in parts)]
    return Payload(sources, source_of, np.concatenate(row_of))
