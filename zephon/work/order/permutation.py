"""Keyed permutations: where position i of a shuffled range points, without holding the range.

A range of 64 items or more is permuted by a Feistel network: any position of 10^12 costs what the
first one does (about 25 ns when thousands are asked at once), and nothing is kept. Shorter ranges
are sorted by a hash of each item, because a Feistel network over a few dozen items is biased.
Both are functions of (size, key) alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.order.feistel import feistel

SORTED_BELOW = 64
"""Ranges shorter than this are sorted by hash; the sort packs an item's number in six bits."""

_ITEMS_AT_A_TIME = 16_384  # of short ranges; the arrays of so many fit into a core's own cache

_Method = Callable[
    [NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]],
    NDArray[np.int64],
]

_ITEM_BITS = np.uint64(6)
_ITEM_MASK = np.uint64(63)
_RANGE_SHIFT = np.uint64(44)
_HASH_SHIFT = np.uint64(26)


@dataclass(frozen=True, slots=True)
class Permutation:
    """One keyed permutation of the numbers below ``size``.

    >>> order = Permutation(size=1000, key=7)
    >>> indices = order.at(np.arange(1000))
    >>> bool((np.sort(indices) == np.arange(1000)).all())
    True
    """

    size: int
    key: int

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the item that stands at each position; both are below ``size``."""
        return permute(
            positions,
            np.array([len(positions)], dtype=np.int64),
            np.array([self.size], dtype=np.int64),
            np.array([self.key], dtype=np.uint64),
        )


def permute(
    positions: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Permute positions within many ranges at once.

    Args:
        positions: shape [positions], int64; those of range 0 first, then those of range 1, ...
        lengths: how many positions belong to each range, shape [ranges], int64.
        sizes: items of each range, shape [ranges], int64, below 2^52.
        keys: the key of each range, shape [ranges], uint64.

    Returns:
        The item at each position, shape [positions], int64. New memory.
    """
    return _by_size(_look_up, feistel, positions, lengths, sizes, keys)


def places(
    items: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Find the position of each item: the inverse of :func:`permute`, same arguments.

    A short range costs as many hashes an item as it is long, since nothing is sorted.

    >>> one = np.array([1000]), np.array([1000]), np.array([7], np.uint64)
    >>> bool((places(permute(np.arange(1000), *one), *one) == np.arange(1000)).all())
    True
    """
    return _by_size(_rank, partial(feistel, inverse=True), items, lengths, sizes, keys)


def _by_size(
    short_ranges: _Method,
    long_ranges: _Method,
    values: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    short = sizes < SORTED_BELOW
    if not short.any():
        return long_ranges(values, lengths, sizes, keys)
    if short.all():
        return short_ranges(values, lengths, sizes, keys)
    result = np.empty(len(values), dtype=np.int64)
    for method, chosen in ((short_ranges, short), (long_ranges, ~short)):
        inside = np.repeat(chosen, lengths)
        result[inside] = method(values[inside], lengths[chosen], sizes[chosen], keys[chosen])
    return result


def _look_up(
    positions: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Sort the items of each short range by their hashes, and read off those asked for."""
    ends = np.cumsum(sizes)
    total = int(ends[-1])
    if total <= _ITEMS_AT_A_TIME + SORTED_BELOW:
        return _look_up_at_once(positions, lengths, sizes, keys)
    result = np.empty(len(positions), dtype=np.int64)
    parts = np.searchsorted(ends, np.arange(_ITEMS_AT_A_TIME, total, _ITEMS_AT_A_TIME))
    ranges = [0, *parts.tolist(), len(sizes)]
    asked = np.concatenate(([0], np.cumsum(lengths)))[ranges].tolist()
    for (first, last), (start, stop) in zip(pairwise(ranges), pairwise(asked), strict=True):
        some = slice(first, last)
        result[start:stop] = _look_up_at_once(
            positions[start:stop], lengths[some], sizes[some], keys[some]
        )
    return result


def _look_up_at_once(
    positions: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    table = _hashes(sizes, keys)
    if len(sizes) > 1:
        # The range's number above the hash: one sort orders all ranges, each in its place.
        numbers = np.arange(len(sizes), dtype=np.uint64) << _RANGE_SHIFT
        np.bitwise_or(table, np.repeat(numbers, sizes), out=table)
        positions = np.repeat(np.cumsum(sizes) - sizes, lengths) + positions
    table.sort()
    return (table[positions] & _ITEM_MASK).astype(np.int64)


def _rank(
    items: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Count, for each item, the items of its range whose hashes are less."""
    sizes, keys = np.repeat(sizes, lengths), np.repeat(keys, lengths)
    hashes = _hashes(sizes, keys)
    starts = np.cumsum(sizes) - sizes
    less = hashes < np.repeat(hashes[starts + items], sizes)
    return np.add.reduceat(less, starts, dtype=np.int64)


def _hashes(sizes: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash the items of each short range, to be ordered by.

    Returns:
        38 bits of hash over 6 bits of item number, so that no two are equal; shape [items].
    """
    item = np.arange(int(sizes.sum()), dtype=np.int64)
    if len(sizes) == 1:
        hashes = seeds.subkeys(keys, item)
    else:
        np.subtract(item, np.repeat(np.cumsum(sizes) - sizes, sizes), out=item)
        hashes = seeds.subkeys(np.repeat(keys, sizes), item)
    np.right_shift(hashes, _HASH_SHIFT, out=hashes)
    np.left_shift(hashes, _ITEM_BITS, out=hashes)
    return np.bitwise_or(hashes, item.view(np.uint64), out=hashes)
