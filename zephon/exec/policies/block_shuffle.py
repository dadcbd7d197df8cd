"""Block shuffle: units are collected into blocks, and each full block leaves permuted.

Inside a block every order is equally likely; from one block into another nothing moves, so no unit
is displaced by ``buffer_size`` or more. It lets units go in bursts of ``buffer_size``, and nothing
before the first is full, where the streaming shuffle spreads them; a warm-up begins with small
blocks, so that the first units come early. Costs about 0.1 microseconds a unit, and holds the
documents of one block.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.exec.policies.blocks import Blocks
from zephon.exec.policies.policy import Documents, Units
from zephon.exec.policies.reservoir import first_window, permutation


class BlockShuffle(Blocks):
    """Blocks of ``buffer_size``, each permuted.

    Args:
        buffer_size: units of a block, >= 1; 1 changes nothing.
        seed: with the stage, the lane and the block's number, decides its order.
        stage: place in the lane's chain of policies.
        warmup_growth: above 1; blocks begin with max(1, min(128, buffer_size // 16)) units, and
            each is so many times as long as the one before, rounded up, until ``buffer_size``.
            None: all are of ``buffer_size``.
    """

    def __init__(
        self, *, buffer_size: int, seed: int, stage: int, warmup_growth: float | None = None
    ) -> None:
        self._sizes = block_sizes(buffer_size, warmup_growth)
        self._seed = seed
        self._stage = stage

    def size_of(self, number: int) -> int:
        """Look the size up; see ``Blocks.size_of``."""
        return self._sizes[min(number, len(self._sizes) - 1)]

    def order_of(
        self, lane: int, number: int, units: Units, documents: Documents
    ) -> NDArray[np.int64]:
        """Order by hash; see ``Blocks.order_of``."""
        return permutation(
            seeds.key(self._seed, "block shuffle", self._stage, lane, number), len(units)
        )


def block_sizes(buffer_size: int, warmup_growth: float | None) -> list[int]:
    """List the sizes of the first blocks; all later ones are as long as the last of these.

    >>> block_sizes(100, 2.0), block_sizes(100, None)
    ([6, 12, 24, 48, 96, 100], [100])
    """
    if warmup_growth is None:
        return [buffer_size]
    sizes = [first_window(buffer_size)]
    while sizes[-1] < buffer_size:
        sizes.append(math.ceil(min(sizes[-1] * warmup_growth, buffer_size)))
    return sizes
