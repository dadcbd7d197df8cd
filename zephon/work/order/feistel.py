"""A permutation of a long range by arithmetic: no table, any position at any time.

Positions are cells of a rectangle; in turns, each row is shifted by a hash of its column, and each
column by a hash of its row. Below about 64 items the shifts are too few to be fair: permutation.py
sorts those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon import seeds

ROUNDS = 8
"""Each half of a position is changed four times.

Items of one row or column stay in one with a chance of 1/sqrt(size) a change. So neighbours come
out as neighbours more often than by chance would have it: by a part in size with eight rounds, in
sqrt(size) with six.
"""

# Arrays without axes: over few positions an operand of shape [1] takes twice as long.
_ONE = np.array(1, dtype=np.uint64)
_HALF = np.array(32, dtype=np.uint64)
_ROUND_MARKS = tuple(np.array(number << 56, dtype=np.uint64) for number in range(ROUNDS))
_BLOCK = 16_384  # positions worked on at a time: five such arrays fit into a core's own cache


def feistel(
    positions: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    *,
    inverse: bool = False,
) -> NDArray[np.int64]:
    """Permute positions within ranges by a Feistel network on a x b cells, a = ceil(sqrt(size)).

    Fewer than a cells lie outside the range, so hardly a position must walk on.

    Args:
        positions: shape [positions], int64; those of range 0 first, then those of range 1, ...
        lengths: how many positions belong to each range, shape [ranges], int64.
        sizes: items of each range, shape [ranges], int64, below 2^52.
        keys: the key of each range, shape [ranges], uint64.
        inverse: go back from items to positions.

    Returns:
        The item at each position, shape [positions], int64. New memory.

    Source:
        The generalized Feistel cipher of Black and Rogaway, "Ciphers with arbitrary finite
        domains", CT-RSA 2002: modular addition in place of exclusive or, and cycle walking.
    """
    cells = _Cells.of(sizes, keys, lengths)
    values = positions.astype(np.uint64)
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        part = values[block]  # a view: the walk writes into ``values``
        _walk(part, cells.part(block), inverse=inverse)
    return values.view(np.int64)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The rectangle under each position; all arrays uint64, shape [positions], or [] for all."""

    height: NDArray[np.uint64]
    width: NDArray[np.uint64]
    limit: NDArray[np.uint64]
    key: NDArray[np.uint64]

    @classmethod
    def of(
        cls, sizes: NDArray[np.int64], keys: NDArray[np.uint64], lengths: NDArray[np.int64]
    ) -> _Cells:
        limit = sizes.astype(np.uint64)
        height = np.ceil(np.sqrt(limit)).astype(np.uint64)
        width = (limit + height - _ONE) // height
        if len(sizes) == 1:
            return cls(*(each.reshape(()) for each in (height, width, limit, keys)))
        return cls(*(np.repeat(each, lengths) for each in (height, width, limit, keys)))

    def part(self, which: slice | NDArray[np.int64]) -> _Cells:
        if self.limit.ndim == 0:
            return self
        return _Cells(self.height[which], self.width[which], self.limit[which], self.key[which])


def _walk(values: NDArray[np.uint64], cells: _Cells, *, inverse: bool) -> None:
    """Apply the network in place, again to every value that left its range."""
    _apply_rounds(values, cells, inverse=inverse)
    outside = np.flatnonzero(values >= cells.limit)
    while len(outside):
        again = values[outside]
        rest = cells.part(outside)
        _apply_rounds(again, rest, inverse=inverse)
        values[outside] = again
        outside = outside[again >= rest.limit]


def _apply_rounds(values: NDArray[np.uint64], cells: _Cells, *, inverse: bool) -> None:
    # Whole numbers below 2^53 divide exactly enough in float64 for floor, and six times faster.
    column = np.floor(values / cells.height).astype(np.uint64)
    row = values - column * cells.height
    change, scratch = np.empty_like(row), np.empty_like(row)
    for number in reversed(range(ROUNDS)) if inverse else range(ROUNDS):
        if number % 2 == 0:
            half, other, size = row, column, cells.height
        else:
            half, other, size = column, row, cells.width
        np.bitwise_xor(other, cells.key, out=change)
        np.bitwise_xor(change, _ROUND_MARKS[number], out=change)
        seeds.mix32(change, out=change, scratch=scratch)
        # A 32-bit hash times the size, its upper part: a number below the size.
        np.multiply(change, size, out=change)
        np.right_shift(change, _HALF, out=change)
        if inverse:
            np.subtract(size, change, out=change)
        np.add(half, change, out=half)
        # Unsigned numbers wrap: the lesser of the two is the remainder.
        np.subtract(half, size, out=change)
        np.minimum(half, change, out=half)
    np.multiply(column, cells.height, out=values)
    np.add(values, row, out=values)
