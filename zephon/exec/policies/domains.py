"""One policy for several domains that never meet: each has a state of its own.

Rows come in the order of the units that let them go, so a domain's rows are those that it would
give alone. At the end of the lane the domains are finished in the order of their numbers.

State grows with the domains: with ``num_bins`` open rows each, a hundred domains hold a hundred
times as many documents as one, and a small domain's documents wait for others of their kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import (
    NO_INTS,
    NO_UNITS,
    Documents,
    Held,
    Policy,
    Units,
)
from zephon.exec.renumbering import Renumbering

_UNITS = "domain units"
_NUMBERS = "domain numbers of "


class Domains(Policy[list[Any]]):
    """A policy applied to each domain by itself; the state is one of its states a domain.

    Args:
        policy: what is done in each domain.
        domains: shape [components], the domain of each component; -1 of one that is gone, of which
            nothing comes.
    """

    def __init__(self, policy: Policy[Any], domains: Sequence[int]) -> None:
        self._policy = policy
        self.packs, self.cuts = policy.packs, policy.cuts
        # Numbered from 0 without gaps, in their own order.
        self._domains = np.array(domains, np.int64)
        here = self._domains >= 0
        self._domains[here] = np.unique(self._domains[here], return_inverse=True)[1]
        self._count = int(self._domains.max()) + 1

    def make_state(self, lane: int) -> list[Any]:
        """Return the first state of each domain."""
        return [self._policy.make_state(lane) for _ in range(self._count)]

    def push(self, state: list[Any], units: Units, documents: Documents) -> Units:
        """Push each domain's units into its state; see ``Policy.push``."""
        if not len(units):
            return NO_UNITS
        domain = self._domains[documents.components(units.seq[units.splits[:-1]])]
        order = np.argsort(domain, kind="stable")
        present, first = np.unique(domain[order], return_index=True)
        # The trigger says which of these units it was: triggers proper may be shared.
        let_go = Units.concat(
            [
                self._policy.push(state[number], units.take(some).let_go(some), documents)
                for number, some in zip(present.tolist(), np.split(order, first[1:]), strict=True)
            ]
        )
        if not len(let_go):
            return NO_UNITS
        if len(present) > 1:
            let_go = let_go.take(np.argsort(let_go.trigger, kind="stable"))
        return let_go.let_go(units.trigger[let_go.trigger])

    def finish(self, state: list[Any], documents: Documents) -> Units:
        """Finish the domains in order."""
        return Units.concat([self._policy.finish(one, documents) for one in state])

    def held(self, state: list[Any]) -> Held:
        """Return what each domain holds, one after another, and how much of it is whose.

        An array of numbers is the domains' arrays one after another; beside it stands how long
        each is, -1 where a domain has none of that name.
        """
        return _joined([self._policy.held(one) for one in state])

    def resume(self, lane: int, held: Held, documents: Documents) -> list[Any]:
        """Rebuild each domain's state."""
        parts = zip(range(self._count), _parted(held), strict=True)
        return [self._policy.resume(lane, part, documents) for _, part in parts]

    def renumbered(self, held: Held, before: Policy[list[Any]], numbers: Renumbering) -> Held:
        """Let each domain go on that has a component still; see ``Policy.renumbered``."""
        was, then = cast("Domains", before), _parted(held)
        now = np.where(numbers.place < 0, -1, self._domains[numbers.place])
        parts = [self._policy.held(one) for one in self.make_state(0)]
        for domain in range(was._count):
            components = np.flatnonzero((was._domains == domain) & (now >= 0))
            if len(components):
                part = self._policy.renumbered(then[domain], was._policy, numbers)
                parts[int(now[components[0]])] = part
        return _joined(parts)

    def dropped(self, state: list[Any]) -> Mapping[str, NDArray[np.int64]]:
        """Count tokens that were thrown away in any domain, by reason and component."""
        total: dict[str, NDArray[np.int64]] = {}
        for one in state:
            for reason, tokens in self._policy.dropped(one).items():
                total[reason] = total.get(reason, 0) + tokens
        return total

    def dropped_documents(self, state: list[Any]) -> int:
        """Count documents that were thrown away in all domains."""
        return sum(self._policy.dropped_documents(one) for one in state)


def _joined(parts: Sequence[Held]) -> Held:
    """Put together what domains hold."""
    numbers = {_UNITS: np.array([len(part.units) for part in parts], np.int64)}
    for name in sorted({name for part in parts for name in part.numbers}):
        arrays = [part.numbers.get(name) for part in parts]
        numbers[name] = np.concatenate([NO_INTS if a is None else a for a in arrays])
        numbers[_NUMBERS + name] = np.array([-1 if a is None else len(a) for a in arrays], np.int64)
    return Held(Units.concat([part.units for part in parts]), numbers)


def _parted(held: Held) -> list[Held]:
    """Take apart what ``_joined`` put together."""
    counts = held.numbers[_UNITS].tolist()
    numbers: list[dict[str, NDArray[np.int64]]] = [{} for _ in counts]
    for name in [name for name in held.numbers if _NUMBERS + name in held.numbers]:
        lengths = held.numbers[_NUMBERS + name]
        stops = np.cumsum(np.maximum(lengths, 0))
        for own, array, length in zip(
            numbers, np.split(held.numbers[name], stops[:-1]), lengths.tolist(), strict=True
        ):
            if length >= 0:
                own[name] = array
    parts, first = [], 0
    for own, count in zip(numbers, counts, strict=True):
        parts.append(Held(held.units.rows(first, first + count), own))
        first += count
    return parts
