"""Components by other numbers: an edit adds some, takes some away, or lists them otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Amount = TypeVar("Amount", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Renumbering:
    """Where components stand now.

    place: the number that each component of then has now, shape [then], int64; -1 for one that was
        never read, and is not there any more.
    count: how many there are now.

    >>> found = Renumbering.between(["prose", "code"], ["maths", "code", "prose"])
    >>> found.components(np.array([0, 0, 1])).tolist(), found.amounts(np.array([7, 8])).tolist()
    ([2, 2, 1], [0, 8, 7])
    """

    place: NDArray[np.int64]
    count: int

    @classmethod
    def between(cls, before: Sequence[str], after: Sequence[str]) -> Renumbering:
        """Compare the names of then and those of now, each once."""
        numbers = {name: number for number, name in enumerate(after)}
        return cls(np.array([numbers.get(name, -1) for name in before], np.int64), len(after))

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.count == len(self.place) and bool((self.place == np.arange(self.count)).all())

    def components(self, numbers: NDArray[np.integer]) -> NDArray[np.int64]:
        """Give the numbers that components have now."""
        return self.place[numbers]

    def amounts(self, each: NDArray[Amount], new: NDArray[Amount] | None = None) -> NDArray[Amount]:
        """Put what each component has where it stands now, shape [now].

        Args:
            each: shape [then].
            new: what components have that were not there, shape [now]; None: 0.
        """
        found = np.zeros(self.count, each.dtype) if new is None else new.copy()
        found[self.place[self.place >= 0]] = each[self.place >= 0]
        return found
