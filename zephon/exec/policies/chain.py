"""The policies of a plan in a row: what one lets go is what the next one takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import NO_UNITS, Documents, Held, Policy, Units
from zephon.exec.renumbering import Renumbering

States = list[Any]
"""One state a policy, of one lane."""


class Chain:
    """Policies in order; without any, every document is a row.

    Like a policy it remembers nothing itself: a lane keeps its ``States``.
    """

    def __init__(self, policies: Sequence[Policy[Any]] = ()) -> None:
        self._policies = tuple(policies)

    def __len__(self) -> int:
        return len(self._policies)

    @property
    def cuts(self) -> bool:
        """Whether rows may hold a part of a document."""
        return any(policy.cuts for policy in self._policies)

    @property
    def packer(self) -> int:
        """The place of the policy that makes rows of documents; behind all if there is none."""
        packers = [place for place, policy in enumerate(self._policies) if policy.packs]
        return packers[0] if packers else len(self)

    def joins(self, place: int) -> bool:
        """Say whether the splits of a row are one unit where they come to a policy."""
        told = [p.joins for p in self._policies[:place] if p.joins is not None]
        return bool(told) and told[-1]

    def make_state(self, lane: int) -> States:
        """Return the states before the first document of a lane."""
        return [policy.make_state(lane) for policy in self._policies]

    def push(self, states: States, units: Units, documents: Documents) -> Units:
        """Take documents, one a unit; return finished rows. See ``Policy.push``."""
        return self.push_from(0, states, units, documents)

    def finish(self, states: States, documents: Documents) -> Units:
        """Let go what is still to be let go at the true end of a lane, policy after policy."""
        rows = []
        for number, policy in enumerate(self._policies):
            units = policy.finish(states[number], documents)
            rows.append(self.push_from(number + 1, states, units, documents))
        return Units.concat([part for part in rows if len(part)])

    def held(self, states: States) -> tuple[Held, ...]:
        """Return all of the states, one entry a policy."""
        return tuple(p.held(state) for p, state in zip(self._policies, states, strict=True))

    def resume(self, lane: int, held: Sequence[Held], documents: Documents) -> States:
        """Rebuild states.

        Raises:
            ValueError: there are more or fewer of them than policies.
        """
        return [
            policy.resume(lane, part, documents)
            for policy, part in zip(self._policies, held, strict=True)
        ]

    def renumbered(
        self, held: Sequence[Held], before: Chain, numbers: Renumbering
    ) -> tuple[Held, ...]:
        """Return the states of another chain among other components; see ``Policy.renumbered``.

        Finished rows may stand behind them.
        """
        pairs = zip(self._policies, before._policies, held, strict=False)
        found = [now.renumbered(part, was, numbers) for now, was, part in pairs]
        return (*found, *held[len(found) :])

    def dropped(self, states: States) -> Mapping[str, NDArray[np.int64]]:
        """Count tokens that were thrown away since the lane began, by reason and component."""
        total: dict[str, NDArray[np.int64]] = {}
        for policy, state in zip(self._policies, states, strict=True):
            for reason, tokens in policy.dropped(state).items():
                total[reason] = total.get(reason, 0) + tokens
        return total

    def dropped_documents(self, states: States) -> int:
        """Count documents that were thrown away since the lane began."""
        pairs = zip(self._policies, states, strict=True)
        return sum(policy.dropped_documents(state) for policy, state in pairs)

    def push_from(self, first: int, states: States, units: Units, documents: Documents) -> Units:
        """Take units into one policy, and what it lets go into those behind it."""
        for number in range(first, len(self._policies)):
            if not len(units):
                return NO_UNITS
            units = self._policies[number].push(states[number], units, documents)
        return units
