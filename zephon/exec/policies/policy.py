"""What a policy promises: one lane's documents in order, integers only, all memory in its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Placements:
    """Finished rows as lists of pieces; row r holds pieces row_splits[r]:row_splits[r + 1].

    row_splits: shape [rows + 1], int64.
    seq: shape [pieces], int64, the arrival number of the document a piece comes from.
    start: shape [pieces], int64, the piece's first token in its document.
    length: shape [pieces], int64, tokens of the piece.
    trigger: shape [rows], int64, the arrival whose push finished the row.
    """

    row_splits: NDArray[np.int64]
    seq: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    trigger: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.trigger)

    def rows(self, first: int, stop: int) -> Placements:
        """Return rows [first, stop); the arrays share this object's memory."""
        a, b = self.row_splits[first], self.row_splits[stop]
        return Placements(
            row_splits=self.row_splits[first : stop + 1] - a,
            seq=self.seq[a:b],
            start=self.start[a:b],
            length=self.length[a:b],
            trigger=self.trigger[first:stop],
        )


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces that a policy still holds, in its own order; arrays of shape [pieces], int64."""

    seq: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]


NO_INTS = np.empty(0, np.int64)
NO_PIECES = Pieces(seq=NO_INTS, start=NO_INTS, length=NO_INTS)
NO_ROWS = Placements(
    row_splits=np.zeros(1, np.int64), seq=NO_INTS, start=NO_INTS, length=NO_INTS, trigger=NO_INTS
)


class Policy(ABC, Generic[State]):
    """Decides where one lane's documents go; all that it remembers is in ``state``.

    The rows that come out depend on the sequence of documents alone, never on how many are
    pushed at once.
    """

    @abstractmethod
    def make_state(self) -> State:
        """Return the state before the first document."""

    @abstractmethod
    def push(self, state: State, first_seq: int, lengths: NDArray[np.int64]) -> Placements:
        """Take documents first_seq, first_seq + 1, ... of these lengths; return finished rows.

        Args:
            state: changed in place; arrays inside it are replaced, never written to.
            first_seq: arrival number of the first document.
            lengths: tokens of each document, shape [docs], int64; only read.
        """

    @abstractmethod
    def finish(self, state: State) -> Placements:
        """Place what is still held; called once, at the true end of the lane."""

    @abstractmethod
    def held(self, state: State) -> Pieces:
        """Return the pieces that are placed in no finished row yet."""

    @abstractmethod
    def resume(self, held: Pieces) -> State:
        """Rebuild the state that ``held`` came from."""
