"""A dataset's place in a mixture, and the settings that give its rows their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zephon import seeds
from zephon.work.deal import Deal
from zephon.work.passes import Passes

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Component:
    """A dataset's place in a mixture.

    name: of the dataset; part of the key of its order.
    dataset_id: position in the list of datasets.
    weight: share of the draws, 0 for a dataset that is never read; all add up to one.
    """

    name: str
    dataset_id: int
    dataset: Dataset
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked arguments that change the data, beside the datasets and their weights.

    Their names and meaning are those of ``StaticMixtureWorkSource``.
    """

    chunk_size: int
    seed: int
    shuffle_shards: bool
    shuffle_within_shard: bool
    reshuffle_on_repeat: bool
    stop_after_passes: int
    lane_assignment: str

    def passes(self, component: Component) -> Passes:
        """Give the order of a component's rows."""
        return Passes(
            seed=self.seed,
            name=component.name,
            counts=np.asarray(component.dataset.counts()),
            shuffle_shards=self.shuffle_shards,
            shuffle_within_shard=self.shuffle_within_shard,
            fresh=self.reshuffle_on_repeat,
        )

    def deal(self, component: Component, rows: int, lanes: int) -> Deal:
        """Give the way in which a component's rows are dealt to lanes."""
        permuted = self.lane_assignment == "permute"
        return Deal.of(
            rows=rows,
            lanes=lanes,
            chunk_size=self.chunk_size,
            turn_key=seeds.key(self.seed, component.name, "turns") if permuted else None,
            fresh=self.reshuffle_on_repeat,
        )
