"""Rows on their way out of a packer's loop: flat lists that become ``Units`` at once.

A piece is three numbers in a list: seq, start, length. A row is the pieces of such a list, one
after another, so that adding a piece is one ``list +=`` and a whole push becomes one array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from zephon.exec.policies.policy import NO_UNITS, Units

NUMBERS = 3
"""Numbers that a piece takes."""


@dataclass(slots=True)
class PlacedRows:
    """Rows in the order in which they were let go.

    numbers: the pieces of all rows, three numbers each.
    ends: how many numbers there are up to each row's end.
    triggers: what let each row go.
    """

    numbers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    triggers: list[int] = field(default_factory=list)

    def add(self, pieces: list[int] | tuple[int, ...], trigger: int) -> None:
        """Append a row."""
        self.numbers += pieces
        self.ends.append(len(self.numbers))
        self.triggers.append(trigger)

    def units(self) -> Units:
        """Return the rows as units."""
        if not self.triggers:
            return NO_UNITS
        table = np.fromiter(self.numbers, np.int64, len(self.numbers)).reshape(-1, NUMBERS)
        splits = np.zeros(len(self.ends) + 1, np.int64)
        splits[1:] = self.ends
        splits //= NUMBERS
        seq, start, length = np.ascontiguousarray(table.T)
        return Units(splits, seq, start, length, np.array(self.triggers, np.int64))


def single_pieces(numbers: Iterable[int], count: int) -> Units:
    """Make a unit of each of ``count`` pieces; triggers mean nothing."""
    if not count:
        return NO_UNITS
    table = np.fromiter(numbers, np.int64, NUMBERS * count).reshape(-1, NUMBERS)
    seq, start, length = np.ascontiguousarray(table.T)
    return Units.single(
        seq=seq,
        start=start,
        length=length,
        trigger=np.zeros(count, np.int64),
    )


def flat_list(units: Units) -> list[int]:
    """Write the pieces of units into one flat list."""
    if not len(units.seq):
        return []
    return np.stack([units.seq, units.start, units.length], axis=1).ravel().tolist()
