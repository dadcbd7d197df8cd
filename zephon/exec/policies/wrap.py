"""Fill every row to the brim, cutting documents where a row ends.

No padding ever. A document is cut about once every max_length tokens, so short documents
rarely suffer and long ones always do. The unfinished row at the end of the data is dropped and
counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import NO_PIECES, NO_ROWS, Pieces, Placements, Policy


@dataclass(slots=True)
class OpenRow:
    """The row being filled: its pieces so far."""

    pieces: Pieces = NO_PIECES


class Wrap(Policy[OpenRow]):
    """One stream of tokens, cut every ``max_length``."""

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length

    def make_state(self) -> OpenRow:
        """Return an empty row."""
        return OpenRow()

    def push(self, state: OpenRow, first_seq: int, lengths: NDArray[np.int64]) -> Placements:
        """Cut the stream that the open row and these documents make; see ``Policy.push``."""
        seqs = np.flatnonzero(lengths)
        pieces = _join(
            state.pieces,
            Pieces(seq=seqs + first_seq, start=np.zeros(len(seqs), np.int64), length=lengths[seqs]),
        )
        placed, rest = cut(pieces, self._max_length)
        state.pieces = rest
        return placed

    def finish(self, state: OpenRow) -> Placements:
        """Drop the unfinished row: what is held stays held, and is counted as such."""
        return NO_ROWS

    def held(self, state: OpenRow) -> Pieces:
        """Return the pieces of the unfinished row."""
        return state.pieces

    def resume(self, held: Pieces) -> OpenRow:
        """Rebuild the open row."""
        return OpenRow(held)


def cut(pieces: Pieces, max_length: int) -> tuple[Placements, Pieces]:
    """Cut consecutive pieces into rows of ``max_length`` tokens.

    Args:
        pieces: in stream order, each at least one token long.
        max_length: tokens of a row, >= 1.

    Returns:
        The full rows, and the pieces of the row that is left unfinished.

    >>> ints = lambda *xs: np.array(xs, np.int64)
    >>> rows, rest = cut(Pieces(seq=ints(0, 1), start=ints(0, 0), length=ints(3, 6)), 4)
    >>> rows.seq.tolist(), rows.start.tolist(), rows.length.tolist(), rows.row_splits.tolist()
    ([0, 1, 1], [0, 0, 1], [3, 1, 4], [0, 2, 3])
    >>> rest.seq.tolist(), rest.start.tolist(), rest.length.tolist()
    ([1], [5], [1])
    """
    ends = np.cumsum(pieces.length)
    total = int(ends[-1]) if len(ends) else 0
    rows = total // max_length
    if rows == 0:
        return NO_ROWS, pieces
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
    row_splits = np.searchsorted(at, row_begins)
    placed = int(row_splits[rows])
    return (
        Placements(
            row_splits=row_splits,
            seq=seq[:placed],
            start=start[:placed],
            length=length[:placed],
            trigger=seq[row_splits[1:] - 1],
        ),
        Pieces(seq=seq[placed:], start=start[placed:], length=length[placed:]),
    )


def _join(first: Pieces, second: Pieces) -> Pieces:
    if not len(first.seq):
        return second
    return Pieces(
        seq=np.concatenate([first.seq, second.seq]),
        start=np.concatenate([first.start, second.start]),
        length=np.concatenate([first.length, second.length]),
    )
