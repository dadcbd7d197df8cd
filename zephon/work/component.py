"""A dataset's place in a mixture, and the settings that give its rows their order and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.budget import Amount
from zephon.work.ends import Bounds
from zephon.work.order.deal import Deal
from zephon.work.order.dealt import Dealt, Former
from zephon.work.order.passes import Passes

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Component:
    """A dataset's place in a mixture.

    name: part of the key of its order; of a mixture's, the dataset's.
    dataset_id: position in the list of datasets.
    weight: share of the draws, or of the tokens, at the beginning; all add up to one.
    read: rows of it are drawn at some time; those of a dataset with weight zero never are.
    """

    name: str
    dataset_id: int
    dataset: Dataset
    weight: float
    read: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How one component's passes are ordered, and when they end.

    fresh: each pass has an order of its own.
    block_size: positions of a pass that are permuted among themselves; None: no blocks.
    policy: "stop", "repeat" or "redistribute".
    passes: after so many it has no row left; None: it repeats for ever.
    must: passes that it makes before the source ends of itself; None: the source does not.
    budget: after so much it is finished; None: no bound.
    """

    fresh: bool
    block_size: int | None
    policy: str
    passes: int | None
    must: int | None
    budget: Amount | None

    @classmethod
    def of(cls, recipe: Mapping[str, Any]) -> Rules:
        """Make the rules that gave a recipe."""
        budget = recipe["budget"]
        return cls(
            fresh=recipe["reshuffle_on_repeat"],
            block_size=recipe["shuffle_block_size"],
            policy=recipe["exhausted_policy"],
            passes=recipe["passes"],
            must=recipe["stop_after_passes"],
            budget=None if budget is None else Amount(**budget),
        )

    def recipe(self) -> dict[str, Any]:
        """Describe the rules as JSON values, by the names of the arguments that they come from."""
        return {
            "reshuffle_on_repeat": self.fresh,
            "shuffle_block_size": self.block_size,
            "exhausted_policy": self.policy,
            "passes": self.passes,
            "stop_after_passes": self.must,
            "budget": None if self.budget is None else asdict(self.budget),
        }

    def bounds(self, dealt: Dealt, lane: int, budget_rows: int | None) -> Bounds:
        """Count what the rules mean for one lane.

        Args:
            dealt: the component's rows.
            lane: which lane.
            budget_rows: rows of all lanes that the budget allows; None for no bound.
        """
        rows = None if self.passes is None else dealt.rows_before(lane, self.passes)
        finishes = [rows] if self.policy == "redistribute" and rows is not None else []
        if budget_rows is not None:
            finishes.append(max(0, -((lane - budget_rows) // dealt.lanes)))
        return Bounds(
            finish=min(finishes, default=None),
            stop=rows if self.policy != "redistribute" else None,
            must=None if self.must is None else dealt.rows_before(lane, self.must),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked arguments that all components share.

    Their names and meaning are those of ``StaticMixtureWorkSource``.
    """

    chunk_size: int
    seed: int
    shuffle_shards: bool
    shuffle_within_shard: bool
    lane_assignment: str

    def passes(self, name: str, rules: Rules, counts: NDArray[np.int64]) -> Passes:
        """Give the order of the rows of a component, whose shards have so many."""
        return Passes(
            seed=self.seed,
            name=name,
            counts=counts,
            shuffle_shards=self.shuffle_shards,
            shuffle_within_shard=self.shuffle_within_shard,
            block_size=rules.block_size,
            fresh=rules.fresh,
        )

    def dealt(
        self,
        component: Component,
        rules: Rules,
        passes: Passes,
        former: Sequence[Former],
        lanes: int,
    ) -> Dealt:
        """Deal a component's rows to lanes.

        Args:
            component: which.
            rules: of it.
            passes: the order of its rows.
            former: how it was until shards were added, one time after the other.
            lanes: how many.
        """
        permuted = self.lane_assignment == "permute"
        key = seeds.key(self.seed, component.name, "turns") if permuted else None
        parts: list[tuple[Deal, Passes]] = []
        first_pass = first_row = 0
        for stop, order in [*((each.stop, each.passes) for each in former), (None, passes)]:
            if stop is not None and stop <= first_pass:
                continue  # others were added before a pass of these began
            deal = Deal.of(
                rows=order.rows,
                lanes=lanes,
                chunk_size=self.chunk_size,
                turn_key=key,
                fresh=rules.fresh,
                first_pass=first_pass,
                first_row=first_row,
            )
            parts.append((deal, order))
            if stop is not None:
                first_row += (stop - first_pass) * order.rows
                first_pass = stop
        return Dealt(parts)
