"""Blocks of consecutive positions, each in an order of its own; as long as a pass: one order.

Nothing is held: a block's key follows from its pass and number, and any position of a block of
10^12 costs what the first one does. Two positions of one block share its keyed permutation, so a
call that asks for neighbours pays for the few blocks they lie in, not for each position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.order.permutation import permute
from zephon.work.order.runs import Runs, count_up, first_of_each


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a component's passes.

    rows: of one pass, below 2^52.
    size: positions of a block, at most rows; the last block of a pass has the rest.
    key: decides the orders of all blocks of all passes.
    fresh: each pass has orders of its own; otherwise all have those of pass 0.
    """

    rows: int
    size: int
    key: int
    fresh: bool

    @property
    def whole(self) -> bool:
        """Each pass is one block, so what came before it in the order decides nothing."""
        return self.size == self.rows

    def positions(self, runs: Runs) -> NDArray[np.int64]:
        """Give the position of the pass that each row of the runs is taken from.

        Returns:
            Shape [rows], int64, in the order of the runs' rows. New memory.
        """
        first, last = runs.start // self.size, (runs.start + runs.length - 1) // self.size
        parts = last - first + 1
        number = count_up(first, parts)
        border = number * self.size
        start = np.maximum(np.repeat(runs.start, parts), border)
        stop = np.minimum(np.repeat(runs.start + runs.length, parts), border + self.size)
        pass_index = np.repeat(runs.pass_index, parts)
        # Neighbouring runs in one block are one range: a short block is sorted once for them all.
        per_pass = -(-self.rows // self.size)
        begins = first_of_each(number + (pass_index - pass_index[0]) * per_pass)
        lengths = np.add.reduceat(stop - start, begins)
        inside = count_up(start - border, stop - start)
        number, border = number[begins], border[begins]
        pass_keys = seeds.subkeys(self.key, pass_index[begins] if self.fresh else 0)
        keys = seeds.subkeys(pass_keys, number)
        taken = permute(inside, lengths, np.minimum(self.rows - border, self.size), keys)
        return np.add(taken, np.repeat(border, lengths), out=taken)
