"""What packing's ``shuffle_strategy`` does: reorder the units of fixed windows before a packer.

Windows are counted off as units arrive, so what is packed together does not depend on how reading
is grouped. "length" puts the longest first: first fit and best fit then fill rows better, and the
rows of long and of short documents come in turns, a window apart; "random" only breaks up
neighbours. For mixing over a longer range there is ``shuffle``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.exec.policies.blocks import Blocks
from zephon.exec.policies.policy import Documents, Units
from zephon.exec.policies.reservoir import permutation


class Windows(Blocks):
    """Each window of ``size`` units leaves permuted, or longest first.

    Args:
        order: "random", or "length": longest first, those of one length as they came.
        seed: with the stage, the lane and the window's number, decides the random order.
        stage: place in the lane's chain of policies.
        size: units of a window, >= 1.
        by_length: with "length", what counts is the "length" that ``Documents.measures`` knows,
            instead of tokens.
    """

    def __init__(
        self,
        *,
        order: str,
        seed: int,
        stage: int,
        size: int = 1024,
        by_length: bool = False,
    ) -> None:
        self._order = order
        self._seed = seed
        self._stage = stage
        self._size = size
        self._by_length = by_length

    def size_of(self, number: int) -> int:
        """Return the one size there is; see ``Blocks.size_of``."""
        return self._size

    def order_of(
        self, lane: int, number: int, units: Units, documents: Documents
    ) -> NDArray[np.int64]:
        """Order by hash or by length; see ``Blocks.order_of``."""
        if self._order == "random":
            return permutation(
                seeds.key(self._seed, "windows", self._stage, lane, number), len(units)
            )
        if self._by_length:
            measured = documents.measures("length", units.seq)
            lengths = np.add.reduceat(measured, units.splits[:-1])
        else:
            lengths = units.tokens()
        return np.argsort(-lengths, kind="stable")
