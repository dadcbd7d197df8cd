"""Every document is a row of its own: what happens where nothing packs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import NO_PIECES, NO_ROWS, Pieces, Placements, Policy


@dataclass(slots=True)
class Nothing:
    """No state."""


class Each(Policy[Nothing]):
    """One document, one row; an empty document is an empty row."""

    def make_state(self) -> Nothing:
        """Return the only state there is."""
        return Nothing()

    def push(self, state: Nothing, first_seq: int, lengths: NDArray[np.int64]) -> Placements:
        """Make a row of each document; see ``Policy.push``."""
        seq = np.arange(first_seq, first_seq + len(lengths), dtype=np.int64)
        return Placements(
            row_splits=np.arange(len(lengths) + 1, dtype=np.int64),
            seq=seq,
            start=np.zeros(len(lengths), np.int64),
            length=lengths,
            trigger=seq,
        )

    def finish(self, state: Nothing) -> Placements:
        """Nothing is held."""
        return NO_ROWS

    def held(self, state: Nothing) -> Pieces:
        """Nothing is held."""
        return NO_PIECES

    def resume(self, held: Pieces) -> Nothing:
        """Return the only state there is."""
        return Nothing()
