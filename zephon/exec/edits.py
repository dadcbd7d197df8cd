"""Edits of a run: what held up to some place of each lane, and what a state says of it.

A state holds the edits of its run, oldest first. Each says what the work source was before it and
where every lane stood: that gives the base from which lanes go on, and what was drawn before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.history import LaneState
from zephon.exec.saved_values import DAMAGE, pack, unpack
from zephon.work.ends import Base
from zephon.work.schedule import StepSize

RESIZED = "global_batch_size"
"""The word of an edit that changes the size of a step, and nothing of what lanes draw."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A component that an edit took away. rows: of a pass. digest: of its data and its rules."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """Shards that were added to a dataset.

    stop: the first pass that has their rows. rows: of the shards that were there before. added:
    their positions among the shards from there on, ascending, shape [shards added].
    """

    stop: int
    rows: int
    added: NDArray[np.int64]

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Growth:
        """Read one back; raises what damaged values raise."""
        stop, rows, added = int(saved["stop"]), int(saved["rows"]), _counts(saved["added"])
        if stop < 0 or rows < 1 or not len(added) or (np.diff(added) <= 0).any():
            raise ValueError("shards that were added must be there, in order")
        return cls(stop, rows, added)

    def before(self, there: NDArray[np.int64]) -> NDArray[np.int64]:
        """Leave out of some shards those that were added.

        Args:
            there: what stands for each shard from there on, shape [shards].

        Raises:
            CheckpointError: there are not so many.
        """
        if int(self.added[-1]) >= len(there):
            raise CheckpointError(
                f"restore: the checkpoint says that shard {int(self.added[-1])} of {len(there)} "
                "was added, so it is damaged; restore an earlier one"
            )
        return np.delete(there, self.added)

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {"stop": self.stop, "rows": self.rows, "added": pack(self.added)}


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One edit of a run; arrays of shape [lanes].

    words: of ``restore(allow=...)`` that let it through. step: steps delivered before it; None
    where ranks share none. size: what a step was. source: the recipe of the work source before it.
    start: the first draw behind it. rows: rows delivered before it. time: what a lane had drawn,
    as its courses count: draws, or tokens by the estimate. drawn: rows drawn before it, of each
    component by name, also of those that were taken away earlier. removed: what it took away.
    grown: datasets to which shards were added, by name.
    """

    words: tuple[str, ...]
    step: int | None
    size: StepSize | None
    source: Mapping[str, Any]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    time: NDArray[np.float64]
    drawn: Mapping[str, NDArray[np.int64]]
    removed: Mapping[str, Removed]
    grown: Mapping[str, Growth]

    @classmethod
    def at(
        cls,
        states: Sequence[LaneState],
        names: Sequence[str],
        before: Edit | None,
        *,
        words: Sequence[str],
        step: int | None,
        size: StepSize | None,
        source: Mapping[str, Any],
        removed: Mapping[str, Removed],
        grown: Mapping[str, Growth],
    ) -> Edit:
        """Make the edit that stands at some states, one a lane, all of them.

        Args:
            states: where lanes stand.
            names: of the components that they count.
            before: the edit before it.
            words, step, size, source, removed, grown: of the edit.
        """
        bottoms = [state.bottom() for state in states]
        drawn: dict[str, NDArray[np.int64]] = {}
        for name, rows in zip(names, np.array([b.counts().rows for b in bottoms]).T, strict=True):
            drawn[name] = drawn.get(name, 0) + rows
        costs = source.get("token_costs") or {}
        time = np.zeros(len(states)) if before is None else before.time.copy()
        for name, rows in drawn.items():
            known = 0 if before is None else before.drawn.get(name, 0)
            time += (rows - known) * costs.get(name, 1.0)
        return cls(
            words=tuple(sorted(words)),
            step=step,
            size=size,
            source=source,
            start=np.array([next_draw(bottom) for bottom in bottoms]),
            rows=np.array([state.rows for state in states]),
            time=time,
            drawn=drawn,
            removed=removed,
            grown=grown,
        )

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], lanes: int) -> Edit:
        """Read an edit of so many lanes back.

        Raises:
            CheckpointError: a part is missing or does not fit the others.
        """
        try:
            drawn = {name: _counts(text) for name, text in saved["drawn"].items()}
            start, rows = _counts(saved["start"]), _counts(saved["rows"])
            time = np.array(saved["time"], np.float64)
            if not (np.isfinite(time) & (time >= 0)).all():
                raise ValueError("times that are none")
            if {len(start), len(rows), len(time), *map(len, drawn.values())} != {lanes}:
                raise ValueError(f"it must tell of {lanes} lanes")
            return cls(
                words=tuple(saved["words"]),
                step=saved["step"],
                size=None if saved["size"] is None else StepSize(*saved["size"]),
                source=saved["source"],
                start=start,
                rows=rows,
                time=time,
                drawn=drawn,
                removed={
                    name: Removed(int(each["rows"]), str(each["digest"]))
                    for name, each in saved["removed"].items()
                },
                grown={name: Growth.from_dict(each) for name, each in saved["grown"].items()},
            )
        except DAMAGE as exc:
            raise CheckpointError(
                f"restore: what the checkpoint says of its edits is damaged: {exc}; restore an "
                "earlier one"
            ) from exc

    @property
    def rebases(self) -> bool:
        """Whether lanes draw otherwise behind it."""
        return bool(set(self.words) - {RESIZED})

    def to_dict(self) -> dict[str, Any]:
        """Write the edit as JSON values."""
        return {
            "words": list(self.words),
            "step": self.step,
            "size": None if self.size is None else [self.size.count, self.size.unit],
            "source": dict(self.source),
            "start": pack(self.start),
            "rows": pack(self.rows),
            "time": self.time.tolist(),
            "drawn": {name: pack(rows) for name, rows in self.drawn.items()},
            "removed": {name: asdict(each) for name, each in self.removed.items()},
            "grown": {name: each.to_dict() for name, each in self.grown.items()},
        }

    def base(self, lane: int, numbers: Mapping[str, int], components: int) -> Base:
        """Say where a lane goes on behind it.

        Args:
            lane: which.
            numbers: of the components there are, by name.
            components: how many are counted.
        """
        drawn = np.zeros(components, np.int64)
        for name, rows in self.drawn.items():
            if name in numbers:
                drawn[numbers[name]] = rows[lane]
        return Base(int(self.start[lane]), float(self.time[lane]), drawn)


def with_removed(names: Iterable[str], edits: Iterable[Edit]) -> tuple[str, ...]:
    """Name what a state counts: the components of a source, then those that edits took away."""
    found = [*names]
    for edit in edits:
        found += [name for name in edit.removed if name not in found]
    return tuple(found)


def _counts(text: str) -> NDArray[np.int64]:
    values = unpack(text)
    if len(values) and int(values.min()) < 0:
        raise ValueError("counts below 0")
    return values


def next_draw(state: LaneState) -> int:
    """Give the draw that follows those that a state stands behind."""
    return state.last_draw + 1 if state.rows else state.tick.ordinal
