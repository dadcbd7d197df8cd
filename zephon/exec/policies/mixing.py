"""What the groups of a mixture are owed, and the units that wait for their turn.

A group is owed its target's share of all that left, less what left of it; the one that is owed
most is wanted next. Targets that change are added up over what left under each, so a schedule is
followed along its way, and what was owed stays owed.

A unit of one group serves that group. One of several (a packed row) serves those of which it holds
at least the target's share: letting it go leaves none of them worse off. A unit of which no group
is in the target any more is obsolete, and serves the one of which it holds most.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.contributions import Shares
from zephon.exec.policies.unit_store import UnitStore

_COUNTS = ("pushed", "departures", "cadence")
_SUMS = ("moved", "began")
BY_GROUP = ("target", "owed", "due", "realised", "former", "drained")


@dataclass(slots=True, eq=False)
class Mixing:
    """One lane's units that wait, and the weights that left. Lists have one entry a group.

    lane: whose units they are.
    target: shares, of sum 1; all 0 until one is known.
    owed: weight owed when the target came, less what left of the group since; minus infinity
        without a share. What is owed now is this and the share of what moved since.
    due: weight that should have left until the target came.
    realised: weight that left.
    former: the last share above 0; one among all for a group that never had one.
    drained: weight that left without a share, over the former share: the one behind leaves next.
    pushed, departures: units that came; that left for a group in the target.
    moved, began: weight that left of groups in the target; and when the target came.
    cadence: departures since an obsolete unit left, while one waited.
    want: the group owed most; follows from the rest.
    held, obsolete: units that wait, and those of them that are obsolete.
    single: units of one group that wait, as (number in the store, weight), by arrival.
    several: units of several groups that wait, by number: what they hold, and whom they serve.
    serving: those by whom they serve, by arrival; numbers that are in ``several`` no more left.
    """

    lane: int
    target: list[float]
    owed: list[float]
    due: list[float]
    realised: list[float]
    former: list[float]
    drained: list[float]
    single: list[deque[tuple[int, float]]]
    serving: list[deque[int]]
    several: dict[int, tuple[Shares, Sequence[int]]] = field(default_factory=dict)
    store: UnitStore = field(default_factory=UnitStore)
    pushed: int = 0
    departures: int = 0
    moved: float = 0.0
    began: float = 0.0
    cadence: int = 0
    want: int = 0
    held: int = 0
    obsolete: int = 0

    @classmethod
    def empty(cls, lane: int, groups: int) -> Mixing:
        """Make the state before the first unit."""
        return cls(
            lane=lane,
            target=[0.0] * groups,
            owed=[-math.inf] * groups,
            due=[0.0] * groups,
            realised=[0.0] * groups,
            former=[1.0 / groups] * groups,
            drained=[0.0] * groups,
            single=[deque() for _ in range(groups)],
            serving=[deque() for _ in range(groups)],
        )

    @property
    def aimless(self) -> bool:
        """No target is known yet."""
        return self.owed[self.want] == -math.inf

    def aim(self, target: list[float]) -> bool:
        """Set the target; say whether it is another one."""
        was = self.target
        if target == was:
            return False
        moved, groups = self.moved - self.began, range(len(was))
        self.due = [due + share * moved for due, share in zip(self.due, was, strict=True)]
        self.owed = [owed + share * moved for owed, share in zip(self.owed, was, strict=True)]
        self.target, self.began = target, self.moved
        others = [g for g in groups if not was[g] and not target[g] and self.available(g)]
        behind = min((self.drained[g] for g in others), default=0.0)
        changed = False
        for group in groups:
            if was[group]:
                self.former[group] = was[group]
            if bool(was[group]) != bool(target[group]):
                changed = True
                self.owed[group] = 0.0 if target[group] else -math.inf
                self.drained[group] = behind
        if changed:  # what those that went were owed, the others are not
            left = sum(owed for owed in self.owed if owed > -math.inf)
            self.owed = [owed - s * left for owed, s in zip(self.owed, target, strict=True)]
            self._serve_anew()
        self._look()
        return True

    def add(self, number: int, group: int, weight: float) -> bool:
        """Let a unit of one group wait; say whether it is wanted."""
        self.single[group].append((number, weight))
        self.held += 1
        if not self.target[group]:
            self.obsolete += 1
        return group == self.want

    def add_several(self, number: int, shares: Shares, served: Sequence[int] = ()) -> bool:
        """Let a unit of several groups wait; say whether it is wanted.

        Args:
            number: in the store.
            shares: what it holds.
            served: the groups that it serves; found by the target if not given.
        """
        served = served or self._served(shares)
        self.several[number] = shares, served
        for group in served:
            self.serving[group].append(number)
        self.held += 1
        if not self.target[served[0]]:
            self.obsolete += 1
        return self.want in served

    def available(self, group: int) -> bool:
        """Say whether a unit waits that serves this group."""
        if self.single[group]:
            return True
        serving = self.serving[group]
        while serving and serving[0] not in self.several:
            serving.popleft()
        return bool(serving)

    def best(self) -> int | None:
        """Find the group owed most of those in the target for which a unit waits."""
        now = self.moved - self.began
        owed = [
            (owed + share * now, -group)
            for group, (owed, share) in enumerate(zip(self.owed, self.target, strict=True))
            if share and self.available(group)
        ]
        return -max(owed)[1] if owed else None

    def release(self, group: int) -> int:
        """Let the first unit go that serves a group in the target; return its number.

        One of that group alone goes before a packed row that also serves it.
        """
        if self.single[group]:
            number, weight = self.single[group].popleft()
            self.owed[group] -= weight
            self.realised[group] += weight
        else:
            number = self.serving[group].popleft()
            weight = 0.0
            for one, part in zip(*self.several.pop(number)[0], strict=True):
                self.realised[one] += part
                if self.target[one]:
                    self.owed[one] -= part
                    weight += part
        self.moved += weight
        self.departures += 1
        self.held -= 1
        self._look()
        return number

    def drain(self) -> int:
        """Let an obsolete unit go, of the group that is most behind; return its number."""
        waiting = [
            (self.drained[group], group)
            for group, share in enumerate(self.target)
            if not share and self.available(group)
        ]
        group = min(waiting)[1]
        if self.single[group]:
            number, weight = self.single[group].popleft()
            self.realised[group] += weight
        else:
            number = self.serving[group].popleft()
            weight = 0.0
            for one, part in zip(*self.several.pop(number)[0], strict=True):
                self.realised[one] += part
                weight += part
        self.drained[group] += weight / self.former[group]
        self.held -= 1
        self.obsolete -= 1
        return number

    def waiting(self) -> NDArray[np.int64]:
        """List the numbers of all units that wait, by arrival, shape [units]."""
        numbers = [number for queue in self.single for number, _ in queue]
        return np.sort(np.array([*numbers, *self.several], np.int64))

    def tidy(self) -> None:
        """Clear the store of what left, and number the units that wait anew."""
        waiting = self.waiting()
        self.store.keep(waiting)
        new = {number: place for place, number in enumerate(waiting.tolist())}
        self.single = [deque((new[n], weight) for n, weight in queue) for queue in self.single]
        self.serving = [deque(new[n] for n in q if n in self.several) for q in self.serving]
        self.several = {new[number]: unit for number, unit in self.several.items()}

    def numbers(self) -> dict[str, NDArray[np.int64]]:
        """Write all down but the units, floats as their bits; see ``Held.numbers``."""
        served = [groups for _, groups in self.several.values()]
        return {
            "counts": np.array([getattr(self, name) for name in _COUNTS], np.int64),
            "sums": _bits([getattr(self, name) for name in _SUMS]),
            **{name: _bits(getattr(self, name)) for name in BY_GROUP},
            "served_sizes": np.array([len(groups) for groups in served], np.int64),
            "served": np.array([group for groups in served for group in groups], np.int64),
        }

    def read(self, numbers: Mapping[str, NDArray[np.int64]]) -> list[list[int]]:
        """Take on what ``numbers`` wrote; return whom the units of several groups serve."""
        for name, count in zip(_COUNTS, numbers["counts"].tolist(), strict=True):
            setattr(self, name, count)
        for name, total in zip(_SUMS, numbers["sums"].view(np.float64).tolist(), strict=True):
            setattr(self, name, total)
        for name in BY_GROUP:
            setattr(self, name, numbers[name].view(np.float64).tolist())
        self._look()
        served = iter(numbers["served"].tolist())
        return [list(islice(served, size)) for size in numbers["served_sizes"].tolist()]

    def _look(self) -> None:
        """Find the group that is wanted: owed most once another unit of mean weight has left."""
        mean = self.moved / self.departures if self.departures else 1.0
        now = self.moved - self.began + mean
        owed = [owed + share * now for owed, share in zip(self.owed, self.target, strict=True)]
        self.want = owed.index(max(owed))

    def _served(self, shares: Shares) -> list[int]:
        total, target = sum(shares[1]), self.target
        over = [
            (part - target[group] * total, -group)
            for group, part in zip(*shares, strict=True)
            if target[group]
        ]
        if not over:
            return [-max((part, -group) for group, part in zip(*shares, strict=True))[1]]
        # What obsolete groups take up may leave each of the others less than its share.
        return [-group for above, group in over if above >= 0.0] or [-max(over)[1]]

    def _serve_anew(self) -> None:
        """Find whom units serve, after groups came into the target or left it."""
        several, self.several = self.several, {}
        self.serving = [deque() for _ in self.serving]
        self.obsolete = sum(len(q) for q, s in zip(self.single, self.target, strict=True) if not s)
        self.held -= len(several)
        for number, (shares, _) in several.items():
            self.add_several(number, shares)


def _bits(floats: Sequence[float]) -> NDArray[np.int64]:
    return np.array(floats, np.float64).view(np.int64)
