"""How much of each component of a mixture units hold: what ``ensure_mixture`` weighs.

Most units are of one component, and are listed so; a packed row may hold several.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import Documents, Units

Shares = tuple[tuple[int, ...], tuple[float, ...]]
"""Groups of which a unit holds something, in order, and how much of each, above 0."""

NONE, SEVERAL = -1, -2
"""In place of a group: the unit weighs nothing; it holds several."""


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """What some units hold.

    group: of each unit, or ``NONE`` or ``SEVERAL``.
    weight: of each unit, of all groups together.
    shares: by place, of the units that hold several.
    """

    group: list[int]
    weight: list[float]
    shares: dict[int, Shares]


def contributions(
    units: Units, documents: Documents, groups: NDArray[np.int64], count: int, weigh: str
) -> Contributions:
    """Weigh units.

    Args:
        units: any.
        documents: what is known of the documents in them.
        groups: shape [components], int64, the group of each component.
        count: of groups.
        weigh: "tokens", those of each piece; "samples", source rows that end in the unit: a piece
            counts when it ends its document and that is the last part of its row; or "weight",
            what was measured of each document's row, for whole documents alone.

    Returns:
        sums over the pieces of each unit, in their order: the same however units are grouped.
    """
    group = groups[documents.components(units.seq)]
    weight = _weights(units, documents, weigh)
    if len(units.seq) == len(units):
        group = np.where(weight > 0.0, group, NONE)
        return Contributions(group.tolist(), weight.tolist(), {})
    unit = np.repeat(np.arange(len(units)), np.diff(units.splits))
    counts = weight > 0.0
    weight = weight[counts]
    codes, inverse = np.unique(unit[counts] * count + group[counts], return_inverse=True)
    sums = np.bincount(inverse, weight, minlength=len(codes))
    first = np.searchsorted(codes, np.arange(len(units) + 1) * count)
    held = np.diff(first)
    whose = codes % count
    only = np.full(len(units), NONE, np.int64)
    only[held == 1] = whose[first[:-1][held == 1]]
    only[held > 1] = SEVERAL
    splits, whose, listed = first.tolist(), whose.tolist(), sums.tolist()
    shares = {
        place: (
            tuple(whose[splits[place] : splits[place + 1]]),
            tuple(listed[splits[place] : splits[place + 1]]),
        )
        for place in np.flatnonzero(held > 1).tolist()
    }
    total = np.bincount(unit[counts], weight, minlength=len(units))
    return Contributions(only.tolist(), total.tolist(), shares)


def _weights(units: Units, documents: Documents, weigh: str) -> NDArray[np.float64]:
    if weigh == "tokens":
        return units.length.astype(np.float64)
    if weigh == "weight":
        return documents.measures("weight", units.seq).view(np.float64)
    ends = units.start + units.length == documents.lengths(units.seq)
    return (ends & documents.last_parts(units.seq)).astype(np.float64)
