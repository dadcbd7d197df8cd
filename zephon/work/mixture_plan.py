"""A mixture with every argument checked; lanes.py makes lanes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from zephon.errors import DatasetError, PlanError
from zephon.work.arguments import CALL, Ending
from zephon.work.budget import Amount
from zephon.work.component import Component, Rules, Settings
from zephon.work.course import MOST_DRAWS
from zephon.work.mixture import MixtureSpec
from zephon.work.order.dealt import Former
from zephon.work.order.passes import Passes
from zephon.work.schedule import MixtureSchedule

AUTO_BLOCK_SHARDS = 8
"""An automatic block holds so many of the largest shard."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A component that is read, with its rules and the order of its rows.

    former: how it was read until shards were added, one time after the other.
    """

    component: Component
    rules: Rules
    passes: Passes
    former: tuple[Former, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePlan:
    """What a mixture is, once its arguments are checked.

    components: all of them, in order.
    reading: those that are read at some time.
    settings: what they share.
    mixture: the weights at the beginning.
    counted: what weights mean: "samples", "tokens" or "estimated tokens".
    schedule: later weights.
    """

    components: tuple[Component, ...]
    reading: tuple[Reading, ...]
    settings: Settings
    mixture: MixtureSpec
    counted: str
    schedule: MixtureSchedule | None

    @classmethod
    def of(
        cls,
        components: tuple[Component, ...],
        rules: Sequence[Rules],
        *,
        settings: Settings,
        mixture: MixtureSpec,
        counted: str,
        schedule: MixtureSchedule | None,
    ) -> MixturePlan:
        """Lay out the rows of what is read.

        Raises:
            DatasetError: a dataset that is to be read has no rows.
            PlanError: one has so little weight that its passes would not end.
        """
        # A dataset with weight zero is never read: its shards are not even looked at.
        reading = tuple(
            Reading(
                component,
                each,
                settings.passes(component.name, each, np.asarray(component.dataset.counts())),
            )
            for component, each in zip(components, rules, strict=True)
            if component.read
        )
        plan = cls(
            components=components,
            reading=reading,
            settings=settings,
            mixture=mixture,
            counted=counted,
            schedule=schedule,
        )
        later = () if schedule is None else schedule.points
        specs = [spec.normalized for spec in (mixture, *(spec for _, spec in later))]
        for each in reading:
            plan._check_end(each, max(spec[each.component.name] for spec in specs))
        return plan

    def with_blocks(self, sizes: Mapping[str, int | None]) -> MixturePlan:
        """Return the plan with these sizes of blocks for some components."""
        if all(
            r.rules.block_size == sizes.get(r.component.name, r.rules.block_size)
            for r in self.reading
        ):
            return self
        reading = []
        for each in self.reading:
            component, name = each.component, each.component.name
            rules = replace(each.rules, block_size=sizes.get(name, each.rules.block_size))
            passes = self.settings.passes(name, rules, np.asarray(component.dataset.counts()))
            reading.append(replace(each, rules=rules, passes=passes))
        return replace(self, reading=tuple(reading))

    def with_former(self, former: Mapping[str, tuple[Former, ...]]) -> MixturePlan:
        """Return the plan of a run in which shards were added; each has its rows from a pass on.

        Args:
            former: how components were read until then, by name.
        """
        if not former:
            return self
        reading = (replace(r, former=former.get(r.component.name, ())) for r in self.reading)
        return replace(self, reading=tuple(reading))

    def reading_on(self, rules: Mapping[str, Mapping[str, Any]]) -> MixturePlan:
        """Return the plan where components that were read are read, if only without weight.

        Args:
            rules: of those, as a recipe has them, by name.
        """
        found = [each.name for each in self.components if not each.read and each.name in rules]
        if not found:
            return self
        components = tuple(replace(c, read=c.read or c.name in found) for c in self.components)
        known = {each.component.name: each for each in self.reading}
        reading = []
        for component in (each for each in components if each.read):
            name = component.name
            if name in known:
                reading.append(known[name])
                continue
            own = Rules.of(rules[name])
            counts = np.asarray(component.dataset.counts())
            reading.append(Reading(component, own, self.settings.passes(name, own, counts)))
        return replace(self, components=components, reading=tuple(reading))

    def recipe(self, costs: Mapping[str, float] | None) -> dict[str, Any]:
        """List everything that changes the data, as JSON values."""
        return {
            "source": "static_mixture",
            "mixture_unit": self.counted,
            "components": [each.name for each in self.components],
            "weights": {each.name: each.weight for each in self.components},
            "rules": {each.component.name: each.rules.recipe() for each in self.reading},
            "schedule": None if self.schedule is None else self.schedule.recipe(),
            "token_costs": None if costs is None else dict(costs),
            **asdict(self.settings),
        }

    def _check_end(self, each: Reading, weight: float) -> None:
        component, rows = each.component, each.passes.rows
        if rows == 0:
            shards = len(component.dataset.counts())
            raise DatasetError(
                f"{CALL}: dataset {component.name!r} must have rows, since its weight is "
                f"{component.weight:.4g}; it has none in {shards} shards; set its weight to 0, or "
                "leave it out"
            )
        wanted = rows * (each.rules.must or 0) or 1
        if wanted > MOST_DRAWS * weight:
            raise PlanError(
                f"{CALL}: dataset {component.name!r} must get its rows within 2^53 draws, and "
                f"{wanted} at weight {weight!r} take more; raise its weight, or set it to 0"
            )


def rules_of(
    components: Sequence[Component],
    block_size: int | str | None,
    fresh: Sequence[bool],
    endings: Sequence[Ending],
    budgets: Mapping[str, Amount],
) -> tuple[Rules, ...]:
    """Bring together the arguments of each component; "auto" and "global" become sizes."""
    read = [np.asarray(c.dataset.counts()) if c.read else np.zeros(0, int) for c in components]
    largest = 0
    if block_size == "auto":
        largest = AUTO_BLOCK_SHARDS * max(int(counts.max(initial=0)) for counts in read)
    rules = []
    for place, component in enumerate(components):
        size = block_size
        if isinstance(size, str):
            rows = int(read[place].sum())
            size = max(1, rows if size == "global" else min(largest, rows))
        ending = endings[place]
        rules.append(
            Rules(
                fresh=fresh[place],
                block_size=size,
                policy=ending.policy,
                passes=ending.passes,
                must=ending.must,
                budget=budgets.get(component.name),
            )
        )
    return tuple(rules)
