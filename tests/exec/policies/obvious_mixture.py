"""Ensure mixture the slow way: one list of all units that wait, looked through each time."""

import math

from tests.exec.policies.feeding import plain
from tests.exec.policies.test_contributions import obvious as shares_of
from zephon.exec.policies.policy import AT_END


class ObviousMixture:
    """The rules of the module, a unit at a time."""

    def __init__(self, groups, count, *, target, most, ratio, rate, weight_by, every):
        self.groups, self.most, self.weight_by = groups, most, weight_by
        self.least = None if most is None else int(ratio * most)
        self.period = int(1 / rate) if rate else math.inf
        self.fixed, self.every = target, every
        self.target = [0.0] * count
        self.owed, self.former = [0.0] * count, [1.0 / count] * count
        self.drained, self.realised = [0.0] * count, [0.0] * count
        self.moved = self.began = 0.0
        self.departures = self.cadence = self.pushed = 0
        self.waiting, self.out = [], []

    def run(self, units, known):
        self.aim(self.fixed)
        for row, trigger in plain(units):
            if self.fixed is None and self.pushed % self.every == 0 and trigger != AT_END:
                weights = known.weights(trigger)
                if weights is not None:
                    sums = [0.0] * len(self.target)
                    for group, weight in zip(self.groups, weights.tolist(), strict=True):
                        sums[group] += weight
                    self.aim([each / sum(sums) for each in sums])
            self.pushed += 1
            shares = shares_of(row, known, self.groups, self.weight_by)
            if not shares or not any(self.target):
                self.leave(row, shares, trigger)
            else:
                self.waiting.append([row, shares, self.served(shares)])
            self.settle(trigger)
        if self.most is not None:
            self.force(0, AT_END)
        return self.out

    def aim(self, target):
        if target is None or target == self.target:
            return
        moved, was = self.moved - self.began, self.target
        self.owed = [o + s * moved for o, s in zip(self.owed, was, strict=True)]
        waits = [
            self.drained[g]
            for g in range(len(was))
            if not was[g] and not target[g] and self.first(g)
        ]
        self.began, self.target = self.moved, target
        changed = [g for g in range(len(was)) if bool(was[g]) != bool(target[g])]
        for g, share in enumerate(was):
            self.former[g] = share or self.former[g]
        for g in changed:
            self.owed[g] = 0.0
            self.drained[g] = min(waits, default=0.0)
        if changed:
            left = sum(o for o, s in zip(self.owed, target, strict=True) if s)
            self.owed = [o - s * left for o, s in zip(self.owed, target, strict=True)]
            for unit in self.waiting:
                unit[2] = self.served(unit[1])

    def served(self, shares):
        total = sum(shares.values())
        over = {g: part - self.target[g] * total for g, part in shares.items() if self.target[g]}
        if not over:
            return [max(shares, key=shares.__getitem__)]
        return [g for g in over if over[g] >= 0.0] or [max(over, key=over.__getitem__)]

    def first(self, group):
        serving = [unit for unit in self.waiting if group in unit[2]]
        return min(serving, key=lambda unit: len(unit[1]) > 1, default=None)

    def by_owed(self, more):
        now = self.moved - self.began + more
        owed = [
            (-(o + s * now), g)
            for g, (o, s) in enumerate(zip(self.owed, self.target, strict=True))
            if s
        ]
        return [g for _, g in sorted(owed)]

    def settle(self, trigger):
        while any(self.target):
            wanted = self.by_owed(self.moved / self.departures if self.departures else 1.0)[0]
            if self.first(wanted):
                self.let_go(wanted, trigger)
            elif self.most is not None and len(self.waiting) >= self.most:
                self.force(self.least, trigger)
            else:
                return

    def force(self, least, trigger):
        while len(self.waiting) > least:
            group = next((g for g in self.by_owed(0.0) if self.first(g)), None)
            if group is None:
                self.drain(trigger)
            else:
                self.let_go(group, trigger)

    def let_go(self, group, trigger):
        unit = self.first(group)
        self.waiting.remove(unit)
        weight = 0.0
        for g, part in unit[1].items():
            if self.target[g]:
                self.owed[g] -= part
                weight += part
        self.moved += weight
        self.departures += 1
        self.leave(unit[0], unit[1], trigger)
        if any(not self.target[served[0]] for _, _, served in self.waiting):
            self.cadence += 1
            if self.cadence >= self.period:
                self.drain(trigger)

    def drain(self, trigger):
        self.cadence = 0
        waiting = [g for g, s in enumerate(self.target) if not s and self.first(g)]
        group = min(waiting, key=lambda g: self.drained[g])
        unit = self.first(group)
        self.waiting.remove(unit)
        self.drained[group] += sum(unit[1].values()) / self.former[group]
        self.leave(unit[0], unit[1], trigger)

    def leave(self, row, shares, trigger):
        for group, part in shares.items():
            self.realised[group] += part
        self.out.append((row, trigger))
