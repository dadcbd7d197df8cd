"""Where in its interval each component's items are due, lane by lane, so that lanes balance.

An item k of a component is due at (k + phase) / weight. Over the lanes the phases of one component
spread evenly over (0, 1). Within a lane, components are paired by weight and a pair's phases add
up to one, so that all lanes have made as many draws at the same lane time: then after any number
of draws, not only at any lane time, all lanes together hold each component at its share. With two
components they are within one item of it; with more, within about a sixth of the lanes (measured
at 64 lanes over 300 draws: 2 to 11 items, random mixtures of 3 to 50 components). One phase for
all components of a lane would not do: with equal weights every lane would then draw the same
component first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zephon.work.order.permutation import Permutation


def lane_phases(weights: Sequence[float], keys: Sequence[int], lanes: int) -> NDArray[np.float64]:
    """Give each component's phase in each lane, between 0 and 1; shape [lanes, components].

    Args:
        weights: of the components.
        keys: one a component; the heavier one's decides the order of lanes for its pair.
        lanes: how many there are.

    >>> lane_phases((0.7, 0.3), (1, 2), 2).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    by_weight = sorted(range(len(weights)), key=lambda c: (-weights[c], c))
    phases = np.zeros((lanes, len(weights)))
    every_lane = np.arange(lanes)
    for heavier, lighter in zip(by_weight[::2], [*by_weight[1::2], None], strict=False):
        places = Permutation(lanes, keys[heavier]).at(every_lane)
        phases[:, heavier] = (places + 0.5) / lanes
        if lighter is not None:
            phases[:, lighter] = 1.0 - phases[:, heavier]
    return phases
