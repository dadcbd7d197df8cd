"""What a lane counted before its pipeline was edited, and what the edit itself changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.renumbering import Renumbering

EDIT = "edit"
"""Why tokens are dropped that were held: their document is gone from the edited pipeline, or is
another one there, though a part of it was delivered."""


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Counts since the lane began, which policies that began anew do not know.

    made: tokens that documents have more than when they were drawn, since other functions made
    them again; shape [components], int64, may be negative. dropped: tokens thrown away, by reason,
    each of shape [components], int64. documents: how many were thrown away.
    """

    made: NDArray[np.int64]
    dropped: Mapping[str, NDArray[np.int64]]
    documents: int

    def renumbered(self, numbers: Renumbering) -> Carried:
        """Return the same among other components."""
        dropped = {reason: numbers.amounts(tokens) for reason, tokens in self.dropped.items()}
        return Carried(numbers.amounts(self.made), dropped, self.documents)


def added(
    some: Mapping[str, NDArray[np.int64]], more: Mapping[str, NDArray[np.int64]]
) -> dict[str, NDArray[np.int64]]:
    """Add up tokens by reason."""
    total = dict(some)
    for reason, tokens in more.items():
        total[reason] = total[reason] + tokens if reason in total else tokens
    return total
