"""Units that a policy holds, by number: adding and taking cost what is moved, not what is held.

Pieces lie in arrays that grow by doubling. What was taken stays in them as waste until the owner
clears it away (``keep``), once more than half is waste; so each piece is moved a bounded number
of times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import AT_END, Units

_LEAST = 2048  # pieces: below it, clearing waste away costs more than the waste


class UnitStore:
    """Numbered units; a number is given by ``add``, in order, and holds until ``keep``."""

    __slots__ = ("_live", "_pieces", "_splits", "_table", "_units")

    def __init__(self) -> None:
        self._units = self._pieces = self._live = 0
        self._splits = np.zeros(_LEAST + 1, np.int64)
        self._table = np.empty((3, _LEAST), np.int64)  # seq, start, length of each piece

    @property
    def wasteful(self) -> bool:
        """More than half of the pieces were taken: the owner should call ``keep``."""
        return self._pieces > _LEAST and self._pieces > 2 * self._live

    def add(self, units: Units) -> int:
        """Copy units to the end; return the number of the first."""
        first, base = self._units, self._pieces
        self._units, self._pieces = first + len(units), base + len(units.seq)
        self._live += len(units.seq)
        if self._units >= len(self._splits) or self._pieces > self._table.shape[1]:
            self._grow(first, base)
        np.add(units.splits[1:], base, out=self._splits[first + 1 : self._units + 1])
        table = self._table
        table[0, base : self._pieces] = units.seq
        table[1, base : self._pieces] = units.start
        table[2, base : self._pieces] = units.length
        return first

    def take(self, numbers: NDArray[np.int64], trigger: NDArray[np.int64]) -> Units:
        """Take units out, each once, in the order asked for; copies.

        Args:
            numbers: shape [units], int64.
            trigger: shape [units], int64, what let each of them go; kept, not copied.
        """
        units = self._copy(numbers, trigger)
        self._live -= len(units.seq)
        return units

    def look(self, numbers: NDArray[np.int64]) -> Units:
        """Copy units that stay, in the order asked for; their triggers are ``AT_END``."""
        return self._copy(numbers, np.full(len(numbers), AT_END, np.int64))

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Forget all other units; those that stay are numbered anew, from 0 in the order given."""
        units = self.look(numbers)
        self._units = self._pieces = self._live = 0
        self.add(units)

    def _copy(self, numbers: NDArray[np.int64], trigger: NDArray[np.int64]) -> Units:
        if self._pieces == self._units:  # one piece each, as documents have
            pieces, splits = numbers, np.arange(len(numbers) + 1, dtype=np.int64)
        else:
            first = self._splits[numbers]
            splits = np.zeros(len(numbers) + 1, np.int64)
            sizes = self._splits[numbers + 1] - first
            np.cumsum(sizes, out=splits[1:])
            pieces = np.repeat(first - splits[:-1], sizes) + np.arange(splits[-1])
        seq, start, length = np.take(self._table, pieces, axis=1)
        return Units(splits=splits, seq=seq, start=start, length=length, trigger=trigger)

    def _grow(self, units: int, pieces: int) -> None:
        splits = np.zeros(max(2 * units, self._units) + 1, np.int64)
        splits[: units + 1] = self._splits[: units + 1]
        table = np.empty((3, max(2 * pieces, self._pieces)), np.int64)
        table[:, :pieces] = self._table[:, :pieces]
        self._splits, self._table = splits, table
