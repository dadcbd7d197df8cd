"""The mixture of a run before each of its edits, by the places that all has now.

Shards that were not there yet have no rows in it, and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from zephon.exec.edits import Edit
from zephon.work.former import former_plan
from zephon.work.lanes import Lanes
from zephon.work.mixture_plan import MixturePlan
from zephon.work.order.dealt import Former
from zephon.work.static_mixture import StaticMixtureWorkSource


def counts_of(source: StaticMixtureWorkSource) -> dict[str, NDArray[np.int64]]:
    """Count the rows of each shard of all components that are read."""
    return {c.name: np.asarray(c.dataset.counts()) for c in source.components if c.read}


class FormerMixtures:
    """What lanes were drawn by.

    Args:
        edits: of the run, oldest first.
        lanes: how many there are.
        numbers: of each component, by name.
        counts: rows of each shard that is there now, of each component that is read.
        components: how many are counted.
    """

    def __init__(
        self,
        edits: Sequence[Edit],
        lanes: int,
        numbers: Mapping[str, int],
        counts: Mapping[str, NDArray[np.int64]],
        components: int,
    ) -> None:
        self.edits = tuple(edits)
        self._numbers = numbers
        self._count = lanes
        self._components = components
        self._counts = _counts_before(self.edits, counts)
        self.lanes = cache(self._lanes)
        self._plan = cache(self._made)

    def former(self, place: int) -> dict[str, tuple[Former, ...]]:
        """Say how components were read until shards were added, by name.

        Args:
            place: of an edit: those that were added before it count.
        """
        found: dict[str, tuple[Former, ...]] = {}
        for number, edit in enumerate(self.edits[:place]):
            for name, growth in edit.grown.items():
                reading = self._plan(number).reading
                passes = next(each.passes for each in reading if each.component.name == name)
                found[name] = (*found.get(name, ()), Former(growth.stop, passes))
        return found

    def _made(self, place: int) -> MixturePlan:
        edit = self.edits[place]
        plan = former_plan(edit.source, self._numbers, self._counts[place])
        return plan.with_former(self.former(place))

    def _lanes(self, place: int) -> Lanes:
        """Lay out the lanes as they were before an edit."""
        edit = self.edits[place]
        costs = edit.source["token_costs"]
        return Lanes(self._plan(place), self._count, edit.size, costs, self._components)


def _counts_before(
    edits: Sequence[Edit], counts: Mapping[str, NDArray[np.int64]]
) -> list[Mapping[str, NDArray[np.int64]]]:
    """Count the rows of each shard that was there before each edit; 0 for those that were not.

    Of components that are gone, whose rows nobody reads any more, in one shard.
    """
    there = {name: np.arange(len(each)) for name, each in counts.items()}
    found, now = [], dict(counts)
    for edit in reversed(edits):
        for name, each in edit.removed.items():
            if name not in counts:
                now[name] = np.array([each.rows])
        for name, growth in edit.grown.items():
            if name not in counts:
                now[name] = np.array([growth.rows])
                continue
            there[name] = growth.before(there[name])
            now[name] = np.zeros_like(counts[name])
            now[name][there[name]] = counts[name][there[name]]
        found.append(dict(now))
    return found[::-1]
