"""A mixture as a checkpoint's recipe tells of it: how lanes were drawn before a run was edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from zephon.work.component import Component, Rules, Settings
from zephon.work.mixture import MixtureSpec
from zephon.work.mixture_plan import MixturePlan, Reading
from zephon.work.schedule import MixtureSchedule

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

KIND = "static_mixture"
"""What the recipe of a mixture of ours calls its source."""


def former_plan(
    recipe: Mapping[str, Any],
    numbers: Mapping[str, int],
    counts: Mapping[str, NDArray[np.int64]],
) -> MixturePlan:
    """Make the plan that gave a recipe; its lanes draw what they drew, bit for bit.

    Args:
        recipe: what ``StaticMixtureWorkSource.recipe`` gave.
        numbers: of each component that it reads, the one that references shall have.
        counts: rows of each shard of those that are read; 0 for shards that were not there, which
            change nothing.
    """
    nothing = cast("Dataset", None)  # its rows are counted below, and nobody reads any here
    settings = Settings(**{field.name: recipe[field.name] for field in fields(Settings)})
    rules = {name: Rules.of(each) for name, each in recipe["rules"].items()}
    components = tuple(
        Component(name, numbers.get(name, -1), nothing, recipe["weights"][name], name in rules)
        for name in recipe["components"]
    )
    return MixturePlan(
        components=components,
        reading=tuple(
            Reading(
                each,
                rules[each.name],
                settings.passes(each.name, rules[each.name], counts[each.name]),
            )
            for each in components
            if each.read
        ),
        settings=settings,
        mixture=MixtureSpec.scaled(recipe["weights"]),
        counted=recipe["mixture_unit"],
        schedule=None if recipe["schedule"] is None else _schedule(recipe["schedule"]),
    )


def _schedule(recipe: Mapping[str, Any]) -> MixtureSchedule:
    points = [(position, MixtureSpec.scaled(weights)) for position, weights in recipe["points"]]
    return MixtureSchedule(points, unit=recipe["unit"], interpolation=recipe["interpolation"])
