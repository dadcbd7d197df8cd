"""Policies of a few lines, to try out what is around them: holding back, joining, weighing."""

from dataclasses import dataclass

import numpy as np

from zephon.exec.policies.policy import AT_END, NO_UNITS, Held, Policy, Units


@dataclass
class Kept:
    """units: held. count: units let go so far. weights: see ``Weighing``."""

    units: Units = NO_UNITS
    count: int = 0
    weights: np.ndarray | None = None


class HoldLast(Policy[Kept]):
    """Holds the last ``count`` units that came, and lets them go at the end; counts the others."""

    def __init__(self, count):
        self.count = count

    def make_state(self, lane):
        return Kept()

    def push(self, state, units, documents):
        both = Units.concat([state.units, units])
        go = max(len(both) - self.count, 0)
        before = len(state.units)
        state.units, state.count = both.rows(go, len(both)), state.count + go
        first = self.count - before  # the pushed unit that lets the first one go
        return both.rows(0, go).let_go(units.trigger[first : first + go])

    def finish(self, state, documents):
        rest, state.units = state.units, NO_UNITS
        return rest.let_go(np.full(len(rest), AT_END))

    def held(self, state):
        return Held(state.units, {"count": np.array([state.count])})

    def resume(self, lane, held, documents):
        return Kept(held.units, int(held.numbers["count"][0]))


class UpTo(Policy[Kept]):
    """Joins units to one as soon as the lengths that a function measured come to ``bound``.

    What is left at the end of the lane is let go if ``flush``, else lost.
    """

    def __init__(self, bound, flush=True):
        self.bound, self.flush = bound, flush

    def make_state(self, lane):
        return Kept()

    def push(self, state, units, documents):
        rows = []
        for number in range(len(units)):
            unit = units.rows(number, number + 1)
            state.units = Units.concat([state.units, unit])
            if documents.measures("length", state.units.seq).sum() >= self.bound:
                rows.append(joined(state.units, int(unit.trigger[0])))
                state.units = NO_UNITS
        return Units.concat(rows)

    def finish(self, state, documents):
        if not self.flush or not len(state.units):
            return NO_UNITS
        rest, state.units = state.units, NO_UNITS
        return joined(rest, AT_END)

    def held(self, state):
        return Held(state.units)

    def resume(self, lane, held, documents):
        return Kept(held.units)


class Weighing(Policy[Kept]):
    """Lets every unit go at once, and adds up the weights in force when each came."""

    def make_state(self, lane):
        return Kept(weights=np.zeros(0))

    def push(self, state, units, documents):
        for seq in units.trigger.tolist():
            found = documents.weights(seq)
            if len(state.weights) < len(found):
                state.weights = np.zeros(len(found))
            state.weights += found * (1 + state.count)
            state.count += 1
        return units

    def held(self, state):
        weights = state.weights.view(np.int64).copy()
        return Held(NO_UNITS, {"weights": weights, "count": np.array([state.count])})

    def resume(self, lane, held, documents):
        weights = held.numbers["weights"].view(np.float64).copy()
        return Kept(NO_UNITS, int(held.numbers["count"][0]), weights)


def joined(units, trigger):
    """Make one unit of several."""
    splits = np.array([0, len(units.seq)])
    return Units(splits, units.seq, units.start, units.length, np.array([trigger]))
