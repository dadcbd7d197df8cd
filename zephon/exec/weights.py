"""The weights in force when a row was finished, by the names of components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from zephon.exec.lane_run import LaneRun


class WeightsInForce:
    """Names weights; as long as they stay the same, in the same mapping.

    Args:
        components: the name of each; a component may span datasets, which are counted apart. Of
            others, behind these, no weight is named.
    """

    def __init__(self, components: Sequence[str]) -> None:
        self._components = components
        self._latest: tuple[tuple[float, ...], dict[str, float]] = (), {}
        self._of_lane: dict[int, tuple[NDArray[np.float64], dict[str, float]]] = {}

    def at(self, run: LaneRun, draw: int, time: int) -> Mapping[str, float] | None:
        """Give the weights in force in a lane when a document came; None where nobody knows."""
        weights = run.weights_at(draw, time)
        if weights is None:
            return None
        before = self._of_lane.get(run.lane)
        if before is not None and before[0] is weights:
            return before[1]
        values = tuple(weights[: len(self._components)].tolist())
        mixture = self._latest[1]
        if values != self._latest[0]:
            mixture = dict.fromkeys(self._components, 0.0)
            for name, value in zip(self._components, values, strict=True):
                mixture[name] += value
        self._latest = values, mixture
        self._of_lane[run.lane] = weights, mixture
        return mixture
