"""Fill every row to the brim, cutting documents where a row ends.

No padding ever. A document is cut about once every max_length tokens, so short documents
rarely suffer and long ones always do. The unfinished row at the end of the data is dropped and
counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zephon.exec.policies.policy import NO_UNITS, Documents, Held, Policy, Units


@dataclass(slots=True)
class OpenRow:
    """The row being filled: its pieces so far, as units of one piece each."""

    pieces: Units = NO_UNITS


class Wrap(Policy[OpenRow]):
    """One stream of tokens, cut every ``max_length``."""

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length

    def make_state(self, lane: int) -> OpenRow:
        """Return an empty row."""
        return OpenRow()

    def push(self, state: OpenRow, units: Units, documents: Documents) -> Units:
        """Cut the stream that the open row and these documents make; see ``Policy.push``."""
        if not units.length.all():
            units = units.take(np.flatnonzero(units.length))
        pieces = Units.concat([state.pieces, units]) if len(state.pieces) else units
        rows, state.pieces = cut(pieces, self._max_length)
        return rows

    def held(self, state: OpenRow) -> Held:
        """Return the pieces of the unfinished row; at the end of the lane they are lost."""
        return Held(state.pieces)

    def resume(self, lane: int, held: Held, documents: Documents) -> OpenRow:
        """Rebuild the open row."""
        return OpenRow(held.units)


def cut(pieces: Units, max_length: int) -> tuple[Units, Units]:
    """Cut consecutive pieces into rows of ``max_length`` tokens.

    Args:
        pieces: in stream order, one a unit, each at least one token long.
        max_length: tokens of a row, >= 1.

    Returns:
        The full rows, let go by what let their last piece go; and the pieces of the row that is
        left unfinished, one a unit.

    >>> ints = lambda *xs: np.array(xs, np.int64)
    >>> stream = Units.whole(seq=ints(0, 1), length=ints(3, 6), trigger=ints(0, 1))
    >>> rows, rest = cut(stream, 4)
    >>> rows.seq.tolist(), rows.start.tolist(), rows.length.tolist(), rows.splits.tolist()
    ([0, 1, 1], [0, 0, 1], [3, 1, 4], [0, 2, 3])
    >>> rest.seq.tolist(), rest.start.tolist(), rest.length.tolist()
    ([1], [5], [1])
    """
    ends = np.cumsum(pieces.length)
    total = int(ends[-1]) if len(ends) else 0
    rows = total // max_length
    if rows == 0:
        return NO_UNITS, pieces
    begins = ends - pieces.length
    row_begins = np.arange(rows + 1, dtype=np.int64) * max_length
    # A piece starts where a document does or where a row does; where both do it is one piece.
    inner = row_begins[: rows + (row_begins[rows] < total)]
    whose = np.searchsorted(ends, inner, side="right")
    cuts = begins[whose] != inner
    at = np.concatenate([begins, inner[cuts]])
    piece = np.concatenate([np.arange(len(begins)), whose[cuts]])
    order = np.argsort(at, kind="stable")
    at, piece = at[order], piece[order]
    length = np.diff(at, append=total)
    start = pieces.start[piece] + (at - begins[piece])
    seq = pieces.seq[piece]
    splits = np.searchsorted(at, row_begins)
    placed = int(splits[rows])
    trigger = pieces.trigger[piece]
    return (
        Units(
            splits=splits,
            seq=seq[:placed],
            start=start[:placed],
            length=length[:placed],
            trigger=trigger[splits[1:] - 1],
        ),
        Units(
            splits=np.arange(len(seq) - placed + 1, dtype=np.int64),
            seq=seq[placed:],
            start=start[placed:],
            length=length[placed:],
            trigger=trigger[placed:],
        ),
    )
