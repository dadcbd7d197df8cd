"""Edits of a run: what held up to some place of each lane, and what a state says of it.

A state holds the edits of its run, oldest first. Each says what the work source was before it and
where every lane stood: that gives the base from which lanes go on, and what was drawn before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One edit of a run; arrays of shape [lanes].

    words: of ``restore(allow=...)`` that let it through. step: steps delivered before it; None
    where ranks share none. size: what a step was. source: the recipe of the work source before it.
    start: the first draw behind it. rows: rows delivered before it. drawn: rows drawn before it, of
    each component by name.
    """

    words: tuple[str, ...]
    step: int | None
    size: StepSize | None
    source: Mapping[str, Any]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    drawn: Mapping[str, NDArray[np.int64]]

    @classmethod
    def at(
        cls,
        states: Sequence[LaneState],
        *,
        words: Sequence[str],
        step: int | None,
        size: StepSize | None,
        source: Mapping[str, Any],
    ) -> Edit:
        """Make the edit that stands at some states, one a lane, all of them."""
        bottoms = [state.bottom() for state in states]
        rows = np.array([bottom.counts().rows for bottom in bottoms])
        return cls(
            words=tuple(sorted(words)),
            step=step,
            size=size,
            source=source,
            start=np.array([next_draw(bottom) for bottom in bottoms]),
            rows=np.array([state.rows for state in states]),
            drawn=dict(zip(source["components"], rows.T, strict=True)),
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
            if {len(start), len(rows), *map(len, drawn.values())} != {lanes}:
                raise ValueError(f"it must tell of {lanes} lanes")
            return cls(
                words=tuple(saved["words"]),
                step=saved["step"],
                size=None if saved["size"] is None else StepSize(*saved["size"]),
                source=saved["source"],
                start=start,
                rows=rows,
                drawn=drawn,
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
            "drawn": {name: pack(rows) for name, rows in self.drawn.items()},
        }

    def base(self, lane: int, numbers: Mapping[str, int], components: int) -> Base:
        """Say where a lane goes on behind it.

        Args:
            lane: which.
            numbers: of the components there are, by name.
            components: how many are counted.
        """
        costs = self.source["token_costs"] or {}
        drawn = np.zeros(components, np.int64)
        time = 0.0
        for name, rows in self.drawn.items():
            count = int(rows[lane])
            time += count * costs.get(name, 1.0)
            if name in numbers:
                drawn[numbers[name]] = count
        return Base(int(self.start[lane]), time, drawn)


def _counts(text: str) -> NDArray[np.int64]:
    values = unpack(text)
    if len(values) and int(values.min()) < 0:
        raise ValueError("counts below 0")
    return values


def next_draw(state: LaneState) -> int:
    """Give the draw that follows those that a state stands behind."""
    return state.last_draw + 1 if state.rows else state.tick.ordinal
