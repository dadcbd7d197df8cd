"""Every random choice starts here, as a function of numbers that a checkpoint can name.

Nothing is drawn from a stream that must be replayed: a key names a place (a seed, a component, a
pass, a shard), and what is chosen there is computed from the key alone. So the 10^12th choice
costs what the first one costs, on any thread, in any order.
"""

from __future__ import annotations

import hashlib
import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

STREAM_VERSION = 1
"""The version of what a recipe means: it is part of every fingerprint.

Raise it whenever a release changes any order or any byte of packing for an unchanged recipe;
checkpoints made under another version are then refused instead of going on in a different order.
"""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: its multiples never repeat
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_FIRST_SHIFT, _SECOND_SHIFT, _THIRD_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)


def key(*parts: int | str | bytes) -> int:
    """Make one 64-bit key from any numbers, names and bytes; the same on every machine.

    Parts are told apart by kind and length, so neither ("a", "b") and ("ab",) nor (1,) and ("1",)
    give one key.

    >>> key(42, "prose", 0) == key(42, "prose", 0), key(1, "1") == key("1", 1)
    (True, False)

    Raises:
        TypeError: a part is neither a whole number nor a string nor bytes.
    """
    return int.from_bytes(_digest(parts, 8), "little")


def generator(*parts: int | str | bytes) -> np.random.Generator:
    """Make a counter-based generator (Philox) that belongs to these parts.

    >>> int(generator(42, "lane", 3).integers(1000)) == int(generator(42, "lane", 3).integers(1000))
    True

    Raises:
        TypeError: a part is neither a whole number nor a string nor bytes.
    """
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_digest(parts, 16), "little")))


def mix64(
    values: NDArray[np.uint64],
    *,
    out: NDArray[np.uint64] | None = None,
    scratch: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint64]:
    """Hash each value; different values have different hashes.

    Args:
        values: any shape, uint64; only read, unless it is also ``out``.
        out: same shape, uint64; receives the hashes. Omitted: a new array.
        scratch: same shape, uint64; overwritten. Saves an allocation in a loop.

    Source:
        The finalizer of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
        generators", OOPSLA 2014, with the constants of Stafford's "Mix13".
    """
    mixed = np.empty_like(values) if out is None else out
    shifted = np.empty_like(values) if scratch is None else scratch
    np.right_shift(values, _FIRST_SHIFT, out=shifted)
    np.bitwise_xor(values, shifted, out=mixed)
    np.multiply(mixed, _FIRST_FACTOR, out=mixed)
    np.right_shift(mixed, _SECOND_SHIFT, out=shifted)
    np.bitwise_xor(mixed, shifted, out=mixed)
    np.multiply(mixed, _SECOND_FACTOR, out=mixed)
    np.right_shift(mixed, _THIRD_SHIFT, out=shifted)
    np.bitwise_xor(mixed, shifted, out=mixed)
    return mixed


def mix32(
    values: NDArray[np.uint64], *, out: NDArray[np.uint64], scratch: NDArray[np.uint64]
) -> None:
    """Hash each value to a number below 2^32; :func:`mix64` without the steps for lower bits.

    Args:
        values: any shape, uint64; only read.
        out: same shape, uint64; receives the hashes.
        scratch: same shape, uint64; overwritten.
    """
    np.right_shift(values, _FIRST_SHIFT, out=scratch)
    np.bitwise_xor(values, scratch, out=out)
    np.multiply(out, _FIRST_FACTOR, out=out)
    np.right_shift(out, _SECOND_SHIFT, out=scratch)
    np.bitwise_xor(out, scratch, out=out)
    np.multiply(out, _SECOND_FACTOR, out=out)
    np.right_shift(out, _HALF, out=out)


def subkeys(keys: ArrayLike, numbers: ArrayLike) -> NDArray[np.uint64]:
    """Derive the keys numbered ``numbers`` of each key; the vectorized form of :func:`key`.

    Args:
        keys: uint64, any shape that broadcasts with ``numbers``.
        numbers: non-negative integers below 2^63.

    Returns:
        uint64, the broadcast shape, at least one axis: SplitMix64's output number ``numbers``
        for a generator that starts at ``keys``.
    """
    steps = np.atleast_1d(np.asarray(numbers)).astype(np.uint64)
    np.add(steps, np.uint64(1), out=steps)
    np.multiply(steps, _GOLDEN, out=steps)
    mixed = steps + np.asarray(keys, dtype=np.uint64)
    return mix64(mixed, out=mixed)


def _digest(parts: tuple[int | str | bytes, ...], size: int) -> bytes:
    digest = hashlib.blake2b(digest_size=size, person=b"zephon-seeds")
    for part in parts:
        match part:
            case bytes():
                kind, body = b"b", part
            case str():
                # surrogatepass: a file name that is not valid Unicode still has one key.
                kind, body = b"s", part.encode("utf-8", "surrogatepass")
            case _:
                kind, body = b"i", str(operator.index(part)).encode("ascii")
        digest.update(kind + len(body).to_bytes(8, "little") + body)
    return digest.digest()
