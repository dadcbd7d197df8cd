"""What policies share that reorder units within blocks: collecting a block, letting it go whole."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Policy, Units
from zephon.exec.policies.unit_store import UnitStore


@dataclass(slots=True, eq=False)
class FillingBlock:
    """The block being collected: its number from 0, and its units so far, by arrival."""

    lane: int
    number: int = 0
    count: int = 0
    store: UnitStore = field(default_factory=UnitStore)


class Blocks(Policy[FillingBlock]):
    """Each full block leaves in an order of its own; the last short one at the end of the lane."""

    @abstractmethod
    def size_of(self, number: int) -> int:
        """Say how many units a block has, >= 1."""

    @abstractmethod
    def order_of(
        self, lane: int, number: int, units: Units, documents: Documents
    ) -> NDArray[np.int64]:
        """Say in which order a block leaves.

        Args:
            lane: whose units they are.
            number: of the block.
            units: the block as it came; fewer than ``size_of`` at the end of a lane.
            documents: what is known of the documents in them.

        Returns:
            a permutation, shape [units].
        """

    def make_state(self, lane: int) -> FillingBlock:
        """Return an empty block."""
        return FillingBlock(lane)

    def push(self, state: FillingBlock, units: Units, documents: Documents) -> Units:
        """Let blocks go that these units fill; see ``Policy.push``."""
        out, at, count = [], 0, len(units)
        while count - at >= (missing := self.size_of(state.number) - state.count):
            state.store.add(units.rows(at, at + missing))
            state.count += missing
            at += missing
            out.append(self._whole(state, int(units.trigger[at - 1]), documents))
            state.number += 1
        if at < count:
            state.store.add(units.rows(at, count))
            state.count += count - at
        return Units.concat(out)

    def finish(self, state: FillingBlock, documents: Documents) -> Units:
        """Let the block go that is being collected."""
        return self._whole(state, AT_END, documents) if state.count else NO_UNITS

    def held(self, state: FillingBlock) -> Held:
        """Return the units of the block that is being collected, and its number."""
        units = state.store.look(np.arange(state.count))
        return Held(units, {"number": np.array([state.number], np.int64)})

    def resume(self, lane: int, held: Held, documents: Documents) -> FillingBlock:
        """Go on collecting the block."""
        state = FillingBlock(lane, int(held.numbers["number"][0]), len(held.units))
        state.store.add(held.units)
        return state

    def _whole(self, state: FillingBlock, trigger: int, documents: Documents) -> Units:
        units = state.store.take(np.arange(state.count), np.full(state.count, trigger, np.int64))
        state.store.keep(np.empty(0, np.int64))
        state.count = 0
        return units.take(self.order_of(state.lane, state.number, units, documents))
