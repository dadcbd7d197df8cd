"""Ensure mixture: units wait until their component's turn, so what leaves keeps to the target.

As long as the component that is owed most has a unit waiting, that unit leaves; else all wait.
Weights that left then differ from what was due by about one unit's weight a component. What cannot
be put right by waiting is not: once ``max_buffer_size`` units wait, the best of them leave until
``drain_target_ratio`` of them are left, and shares drift to those of the source. Without a bound
nothing is forced, and what has no partner at the end of the lane never leaves; with token weights
and a source that mixes by rows that is a large part of it, and the buffer grows as the data does.

Nothing is thrown away. Order is kept within a component, and among packed rows for as long as they
serve the same ones. Costs 2 to 4 microseconds a unit for up to ten components, and grows with
their number, not with the buffer. Not needed where the source draws by weights already: it serves
to put right what filters, splits, tokens instead of rows, or packing did to the shares.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.contributions import NONE, SEVERAL, contributions
from zephon.exec.policies.mixing import BY_GROUP, Mixing
from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Policy, Units
from zephon.exec.renumbering import Renumbering

_EVERY = 64  # units from one look at the weights in force to the next
_SETTLED = 1000.0  # weight that leaves before a deviation is told of


class EnsureMixture(Policy[Mixing]):
    """Reorders a lane's units so that the weights that left follow the target.

    Args:
        groups: of each component the place of its name in ``names``.
        names: of the mixture's components.
        target: shape [names], float64, shares that hold throughout; None: the source's weights in
            force when a unit came. Looked at for every 64th unit.
        max_buffer_size: units that wait at most, >= 1; None: no bound.
        drain_target_ratio: part of ``max_buffer_size`` that is left when units were forced out.
        obsolete_drain_rate: units of components that left the target (or never were in it) leave
            one for so many others, 1 / rate rounded down; 0: only when forced.
        weight_by: what counts; see ``contributions``.
        warn_tolerance: deviation of a share above which a lane warns, once; None: never.
    """

    def __init__(
        self,
        *,
        groups: Sequence[int],
        names: Sequence[str],
        target: NDArray[np.float64] | None = None,
        max_buffer_size: int | None = 1000,
        drain_target_ratio: float = 0.8,
        obsolete_drain_rate: float = 0.1,
        weight_by: str = "tokens",
        warn_tolerance: float | None = None,
    ) -> None:
        self._groups = np.asarray(groups, np.int64)
        self._names = tuple(names)
        self._target = None if target is None else _shares(np.asarray(target, np.float64))
        self._most = math.inf if max_buffer_size is None else max_buffer_size
        self._least = 0 if max_buffer_size is None else int(drain_target_ratio * max_buffer_size)
        self._period = int(1 / obsolete_drain_rate) if obsolete_drain_rate else math.inf
        self._weight_by = weight_by
        self._tolerance = warn_tolerance
        self._warned: set[int] = set()  # lanes; in no state, since it decides nothing

    def make_state(self, lane: int) -> Mixing:
        """Return the state in which no unit waits."""
        state = Mixing.empty(lane, len(self._names))
        if self._target is not None:
            state.aim(self._target)
        return state

    def push(self, state: Mixing, units: Units, documents: Documents) -> Units:
        """Let units go whose turn has come; see ``Policy.push``.

        A unit that weighs nothing passes at once, as does any before a target is known.
        """
        if not len(units):
            return NO_UNITS
        parts = contributions(units, documents, self._groups, len(self._names), self._weight_by)
        first = state.store.add(units)
        out: list[int] = []
        ends: list[int] = []
        for place, (group, weight) in enumerate(zip(parts.group, parts.weight, strict=True)):
            look = False
            if state.pushed % _EVERY == 0:
                look = self._look_up(state, int(units.trigger[place]), documents)
            state.pushed += 1
            number = first + place
            if group == NONE:
                out.append(number)
            elif state.aimless:
                out.append(number)
                shares = parts.shares.get(place, ((group,), (weight,)))
                for one, part in zip(*shares, strict=True):
                    state.realised[one] += part
            elif group == SEVERAL:
                look |= state.add_several(number, parts.shares[place])
            else:
                look |= state.add(number, group, weight)
            if look or state.held >= self._most:
                self._settle(state, out)
            ends.append(len(out))
        trigger = np.repeat(units.trigger, np.diff(ends, prepend=0))
        gone = state.store.take(np.array(out, np.int64), trigger)
        if state.store.wasteful:
            state.tidy()
        return gone

    def finish(self, state: Mixing, documents: Documents) -> Units:
        """Let all go, the best first; without a bound nothing: what waits stays held."""
        if self._most == math.inf:
            return NO_UNITS
        out: list[int] = []
        self._force(state, 0, out)
        return state.store.take(np.array(out, np.int64), np.full(len(out), AT_END, np.int64))

    def held(self, state: Mixing) -> Held:
        """Return the units that wait, by arrival, and all sums."""
        return Held(state.store.look(state.waiting()), state.numbers())

    def resume(self, lane: int, held: Held, documents: Documents) -> Mixing:
        """Let the units wait again."""
        state = Mixing.empty(lane, len(self._names))
        served = iter(state.read(held.numbers))
        units = held.units
        state.store.add(units)
        parts = contributions(units, documents, self._groups, len(self._names), self._weight_by)
        for place, (group, weight) in enumerate(zip(parts.group, parts.weight, strict=True)):
            if group == SEVERAL:
                state.add_several(place, parts.shares[place], next(served))
            else:
                state.add(place, group, weight)
        return state

    def renumbered(self, held: Held, before: Policy[Mixing], numbers: Renumbering) -> Held:
        """Owe nothing to groups that are new; see ``Policy.renumbered``.

        The target of now comes into force with the next look at the weights.
        """
        fresh = Mixing.empty(0, numbers.count).numbers()  # a group is a component here
        found = dict(held.numbers)
        for name in BY_GROUP:
            found[name] = numbers.amounts(found[name], fresh[name])
        found["served"] = numbers.components(found["served"])
        return Held(held.units, found)

    def realised(self, state: Mixing) -> NDArray[np.float64]:
        """Return the weight that left of each component, shape [names]."""
        return np.array(state.realised, np.float64)

    def _settle(self, state: Mixing, out: list[int]) -> None:
        while True:
            if state.available(state.want) and not state.aimless:
                self._let_go(state, state.want, out)
            elif state.held >= self._most:
                self._force(state, self._least, out)
            else:
                return

    def _force(self, state: Mixing, least: int, out: list[int]) -> None:
        while state.held > least:
            group = state.best()
            if group is None:
                self._drain(state, out)
            else:
                self._let_go(state, group, out)

    def _let_go(self, state: Mixing, group: int, out: list[int]) -> None:
        out.append(state.release(group))
        if self._tolerance is not None:
            self._watch(state, self._tolerance)
        if state.obsolete:
            state.cadence += 1
            if state.cadence >= self._period:
                self._drain(state, out)

    def _drain(self, state: Mixing, out: list[int]) -> None:
        state.cadence = 0
        out.append(state.drain())
        if self._tolerance is not None:
            self._watch(state, self._tolerance)

    def _look_up(self, state: Mixing, trigger: int, documents: Documents) -> bool:
        if self._target is not None:  # an edit of the run may have changed it
            return state.aim(self._target)
        if trigger == AT_END:
            return False
        weights = documents.weights(trigger)
        if weights is None:
            return False
        sums = np.bincount(self._groups, weights, len(self._names)).astype(np.float64)
        return bool(sums.any()) and state.aim(_shares(sums))

    def _watch(self, state: Mixing, tolerance: float) -> None:
        """Warn of the largest deviation, once enough has left."""
        total = sum(state.realised)
        if state.lane in self._warned or total < _SETTLED:
            return
        moved = state.moved - state.began
        due = [due + share * moved for due, share in zip(state.due, state.target, strict=True)]
        wanted = sum(due)
        if not wanted:
            return
        deviation, group = max(
            (abs(real / total - ought / wanted), -group)
            for group, (real, ought) in enumerate(zip(state.realised, due, strict=True))
        )
        if deviation <= tolerance:
            return
        self._warned.add(state.lane)
        warnings.warn(
            f"ensure_mixture: lane {state.lane} let go {state.realised[-group] / total:.3f} of"
            f" {self._names[-group]!r}, wanted {due[-group] / wanted:.3f} within"
            f" {tolerance}; raise max_buffer_size, or set the shares at the source",
            RuntimeWarning,
            stacklevel=2,
        )


def _shares(weights: NDArray[np.float64]) -> list[float]:
    return (weights / weights.sum()).tolist()
