"""Fill every row to the brim, cutting documents where a row ends.

No padding ever. A document is cut about once every max_length tokens, so short documents
rarely suffer and long ones always do. The unfinished row at the end of the data is dropped and
counted.

With a bound on the pieces of a row, as some attention kernels want it, a row ends where it is full
or where its last piece may end, and is padded then; so is the last row, and nothing is dropped.
With documents of 275 tokens on average and rows of 2,049, a bound of 8 leaves 10 % free, one of 12
leaves 0.5 %; 13 % of the documents are cut, where ``best_fit_wrap`` cuts 3 %.

The loop of the bounded form runs over rows, not over documents.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Policy, Units


@dataclass(slots=True)
class OpenRow:
    """The row being filled: its pieces so far, as units of one piece each."""

    pieces: Units = NO_UNITS


class Wrap(Policy[OpenRow]):
    """One stream of tokens, cut every ``max_length``, or after so many pieces.

    Args:
        max_length: tokens of a row at most, >= 1.
        max_sequences_per_bin: pieces of a row at most, >= 1; None: any number.
    """

    packs = cuts = True

    def __init__(self, *, max_length: int, max_sequences_per_bin: int | None = None) -> None:
        self._max_length = max_length
        self._most = max_sequences_per_bin

    def make_state(self, lane: int) -> OpenRow:
        """Return an empty row."""
        return OpenRow()

    def push(self, state: OpenRow, units: Units, documents: Documents) -> Units:
        """Cut the stream that the open row and these documents make; see ``Policy.push``."""
        if not units.length.all():
            units = units.take(np.flatnonzero(units.length))
        if not len(units):
            return NO_UNITS
        pieces = Units.concat([state.pieces, units]) if len(state.pieces) else units
        ends = np.cumsum(pieces.length)
        if self._most is None:
            row_ends = np.arange(1, int(ends[-1]) // self._max_length + 1) * self._max_length
        else:
            row_ends = self._bounded_ends(ends.tolist(), self._most)
        rows, state.pieces = cut(pieces, ends, row_ends)
        return rows

    def finish(self, state: OpenRow, documents: Documents) -> Units:
        """Let the unfinished row go if rows may be short; else it stays held, which is lost."""
        if self._most is None or not len(state.pieces):
            return NO_UNITS
        pieces, state.pieces = state.pieces, NO_UNITS
        return Units(
            splits=np.array([0, len(pieces)], np.int64),
            seq=pieces.seq,
            start=pieces.start,
            length=pieces.length,
            trigger=np.array([AT_END], np.int64),
        )

    def held(self, state: OpenRow) -> Held:
        """Return the pieces of the unfinished row."""
        return Held(state.pieces)

    def resume(self, lane: int, held: Held, documents: Documents) -> OpenRow:
        """Rebuild the open row."""
        return OpenRow(held.units)

    def _bounded_ends(self, ends: list[int], most: int) -> NDArray[np.int64]:
        """Find where rows end in a stream of pieces that end at ``ends``, both in tokens."""
        row_ends, at, piece, pieces = [], 0, 0, len(ends)
        while True:
            stop, last = at + self._max_length, piece + most - 1
            if last < pieces and ends[last] < stop:
                stop = ends[last]
            if stop > ends[-1]:
                return np.array(row_ends, np.int64)
            row_ends.append(stop)
            at = stop
            piece = bisect_right(ends, stop, piece, min(last + 1, pieces))


def cut(pieces: Units, ends: NDArray[np.int64], row_ends: NDArray[np.int64]) -> tuple[Units, Units]:
    """Cut consecutive pieces into rows.

    Args:
        pieces: in stream order, one a unit, each at least one token long.
        ends: shape [pieces], int64, where in the stream each ends.
        row_ends: shape [rows], int64, where in the stream each row ends; rising.

    Returns:
        The rows, let go by what let their last piece go; and the pieces after the last row, one a
        unit.

    >>> ints = lambda *xs: np.array(xs, np.int64)
    >>> stream = Units.whole(seq=ints(0, 1), length=ints(3, 6), trigger=ints(0, 1))
    >>> rows, rest = cut(stream, ints(3, 9), row_ends=ints(4, 8))
    >>> rows.seq.tolist(), rows.start.tolist(), rows.length.tolist(), rows.splits.tolist()
    ([0, 1, 1], [0, 0, 1], [3, 1, 4], [0, 2, 3])
    >>> rest.seq.tolist(), rest.start.tolist(), rest.length.tolist()
    ([1], [5], [1])
    """
    if not len(row_ends):
        return NO_UNITS, pieces
    begins, total = ends - pieces.length, int(ends[-1])
    # A piece starts where a document does or where a row does; where both do it is one piece.
    inner = row_ends[row_ends < total]
    whose = np.searchsorted(ends, inner, side="right")
    inside = begins[whose] != inner
    at = np.concatenate([begins, inner[inside]])
    piece = np.concatenate([np.arange(len(begins)), whose[inside]])
    order = np.argsort(at, kind="stable")
    at, piece = at[order], piece[order]
    found = Units.single(
        seq=pieces.seq[piece],
        start=pieces.start[piece] + (at - begins[piece]),
        length=np.diff(at, append=total),
        trigger=pieces.trigger[piece],
    )
    splits = np.concatenate([[0], np.searchsorted(at, row_ends)]).astype(np.int64)
    placed = int(splits[-1])
    rows = Units(
        splits=splits,
        seq=found.seq[:placed],
        start=found.start[:placed],
        length=found.length[:placed],
        trigger=found.trigger[splits[1:] - 1],
    )
    return rows, found.rows(placed, len(found))
