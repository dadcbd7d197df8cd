"""A mixture with fixed weights: several datasets, drawn in proportion, in a keyed random order.

The order is arithmetic on positions, so it needs no memory to speak of and starts anywhere. Read
next: interleave.py (whose turn it is), deal.py (which lane takes which position of a pass),
passes.py and order.py (which row lies there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from zephon import seeds
from zephon.errors import DatasetError, PlanError
from zephon.work import arguments
from zephon.work.arguments import UNSET, Unset
from zephon.work.component import Component, Settings
from zephon.work.interleave import Interleave, Pace
from zephon.work.lane import Member, MixtureLane
from zephon.work.mixture import MixtureSpec
from zephon.work.phases import lane_phases
from zephon.work.source import WorkSource

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

MOST_DRAWS = 2**60
"""Draws after which a source must have ended; due times and row numbers stay exact enough."""


class StaticMixtureWorkSource(WorkSource):
    """Draw from several datasets in fixed proportion until each has made its passes.

    Every lane draws each dataset within ``len(datasets) + 1`` samples of its share at any point.
    A dataset that is used up begins again, in a fresh order, until the slowest has made
    ``stop_after_passes`` passes: so every row is drawn that often at least.

    Args:
        datasets: at least one; their names differ. A dataset's id is its position here.
        mixture: a weight for each dataset's name; zero for one that is never read.
        chunk_size: at most so many neighbouring rows of a pass go to a lane at a time; also the
            unit in which sample ids count.
        seed: decides every order; a whole number of 64 bits, signed.
        shuffle_shards: permute the shards of each pass.
        shuffle_within_shard: permute the rows of each shard.
        shuffle_block_size: not yet.
        exhausted_policy: not yet.
        reshuffle_on_repeat: each pass has an order of its own; otherwise all repeat the first.
        max_repeats: not yet.
        stop_after_passes: passes that every dataset makes at least; 1 if left out.
        lane_assignment: how neighbouring rows go round the lanes: "permute" in a random order of
            lanes each round, or "modulo" in lane order.
        token_estimation: not yet.
        mixture_unit: what the weights count; "tokens" is not there yet.
        schedule: not yet.
        budget: not yet.

    Raises:
        PlanError: an argument is wrong; the message names it.
        NotYetError: an argument asks for what this version does not have.
        DatasetError: a dataset with a weight has no rows.
    """

    __slots__ = ("_components", "_passes", "_settings", "_total_samples")

    def __init__(
        self,
        datasets: Sequence[Dataset],
        mixture: MixtureSpec | Mapping[str, float],
        chunk_size: int = 16384,
        seed: int = 0,
        shuffle_shards: bool = True,
        shuffle_within_shard: bool = False,
        shuffle_block_size: int | str | None = None,
        exhausted_policy: str | Mapping[str, str] | None = None,
        reshuffle_on_repeat: bool | Mapping[str, bool] = True,
        max_repeats: int | Mapping[str, int] | None = None,
        stop_after_passes: int | Unset | None = UNSET,
        lane_assignment: str = "permute",
        token_estimation: object | None = None,
        *,
        mixture_unit: str = "samples",
        schedule: object | None = None,
        budget: object | None = None,
    ) -> None:
        found = arguments.checked_datasets(datasets)
        names = [dataset.name for dataset in found]
        spec = mixture if isinstance(mixture, MixtureSpec) else MixtureSpec(mixture)
        weights = spec.normalized_for(names)
        arguments.check_block_size(shuffle_block_size)
        arguments.check_units(
            token_estimation=token_estimation,
            mixture_unit=mixture_unit,
            schedule=schedule,
            budget=budget,
        )
        self._settings = Settings(
            chunk_size=arguments.whole_number("chunk_size", chunk_size, least=1),
            seed=arguments.seed_number(seed),
            shuffle_shards=arguments.flag("shuffle_shards", shuffle_shards),
            shuffle_within_shard=arguments.flag("shuffle_within_shard", shuffle_within_shard),
            reshuffle_on_repeat=arguments.fresh_passes(reshuffle_on_repeat, names),
            stop_after_passes=arguments.stop_passes(
                stop_after_passes=stop_after_passes,
                exhausted_policy=exhausted_policy,
                max_repeats=max_repeats,
                names=names,
            ),
            lane_assignment=arguments.one_of(
                "lane_assignment", lane_assignment, ("permute", "modulo")
            ),
        )
        self._components = tuple(
            Component(name=dataset.name, dataset_id=place, dataset=dataset, weight=weight)
            for place, (dataset, weight) in enumerate(zip(found, weights.values(), strict=True))
        )
        # A weight of zero is never read: its shards are not even looked at. One that was given
        # but vanished in scaling is kept, to be refused as too small.
        self._passes = tuple(
            (component, self._settings.passes(component))
            for component in self._components
            if spec.weights[component.name] > 0
        )
        for component, passes in self._passes:
            self._check_end(component, passes.rows)
        self._total_samples = self.lane_stream(0, 1).length

    @property
    def components(self) -> tuple[Component, ...]:
        """The datasets and their weights; a reference's component is a position here."""
        return self._components

    @property
    def dataset_ids(self) -> tuple[int, ...]:
        """The ids of the datasets: their positions in the list."""
        return tuple(range(len(self._components)))

    @property
    def datasets_by_id(self) -> Mapping[int, Dataset]:
        """The datasets by id."""
        return MappingProxyType({each.dataset_id: each.dataset for each in self._components})

    @property
    def seed(self) -> int:
        """The number that decides every order."""
        return self._settings.seed

    @property
    def chunk_size(self) -> int:
        """Neighbouring rows that go to a lane at a time, at most."""
        return self._settings.chunk_size

    @property
    def total_samples(self) -> int:
        """Draws until the source ends, with one lane."""
        return self._total_samples

    def __len__(self) -> int:
        return self._total_samples

    def lane_stream(self, lane: int, lanes: int) -> MixtureLane:
        """Give lane ``lane`` of ``lanes``.

        Raises:
            PlanError: there is no such lane.
        """
        lanes = arguments.whole_number("lanes", lanes, least=1)
        lane = arguments.whole_number("lane", lane, least=0)
        if lane >= lanes:
            raise PlanError(f"lane_stream: lane must be below lanes={lanes}, got {lane}")
        read = [component for component, _ in self._passes]
        phases = lane_phases(
            [component.weight for component in read],
            [seeds.key(self.seed, component.name, "phase") for component in read],
            lane,
            lanes,
        )
        return MixtureLane(
            lane=lane,
            members=tuple(
                Member(
                    component=component.dataset_id,
                    name=component.name,
                    deal=self._settings.deal(component, passes.rows, lanes),
                    passes=passes,
                )
                for component, passes in self._passes
            ),
            interleave=Interleave(
                tuple(Pace(c.weight, phase) for c, phase in zip(read, phases, strict=True))
            ),
            stop_after_passes=self._settings.stop_after_passes,
            shuffle_within_shard=self._settings.shuffle_within_shard,
        )

    def recipe(self) -> dict[str, Any]:
        """List the arguments that change the data; datasets by name, in their order."""
        return {
            "source": "static_mixture",
            "mixture_unit": "samples",
            "components": [[each.name, each.weight] for each in self._components],
            **asdict(self._settings),
        }

    def __repr__(self) -> str:
        shares = ", ".join(f"{each.name}: {each.weight:.4g}" for each in self._components)
        return f"StaticMixtureWorkSource({shares}; seed={self.seed})"

    def _check_end(self, component: Component, rows: int) -> None:
        if rows == 0:
            shards = len(component.dataset.counts())
            raise DatasetError(
                f"StaticMixtureWorkSource: dataset {component.name!r} must have rows, since its "
                f"weight is {component.weight:.4g}; it has none in {shards} shards; "
                "set its weight to 0, or leave it out"
            )
        wanted = rows * self._settings.stop_after_passes
        if wanted > MOST_DRAWS * component.weight:
            raise PlanError(
                f"StaticMixtureWorkSource: dataset {component.name!r} must make its passes within "
                f"2^60 draws, and {wanted} rows at weight {component.weight!r} take more; "
                "raise its weight, or set it to 0"
            )
