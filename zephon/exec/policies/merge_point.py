"""Where a merge by tokens stands: at a document, and under way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.due_documents import Queue
from zephon.exec.renumbering import Renumbering
from zephon.work.course import Courses


@dataclass(frozen=True, slots=True, eq=False)
class MergePoint:
    """Where a merge stands right after a document; all of shape [components].

    position: draws of each strand that are drawn; those of later documents are not, even if read.
    base: tokens that each component had emitted at the last re-basing.
    live: components that are not finished.
    """

    position: NDArray[np.int64]
    base: NDArray[np.int64]
    live: NDArray[np.bool_]

    def renumbered(self, numbers: Renumbering) -> MergePoint:
        """Return the same among other components; those that are new are finished."""
        position, base = (numbers.amounts(each) for each in (self.position, self.base))
        return MergePoint(position, base, numbers.amounts(self.live))


@dataclass(slots=True, eq=False)
class Merging:
    """A merge under way: what it knows, and where it stands.

    time: tokens merged since the last re-basing, and ``began`` those before. stretches: where each
    stretch began, in documents merged since this state was made and in tokens of the lane, and its
    courses. wants: the strand whose next document
    is needed; None where the lane has ended. missed: a strand was found to have no document left
    although draws of it were. decided: draws of a strand of which it was found that all are known,
    though no document followed them. holding: components that the end of the lane waits for.
    waiting, eligible: components by start and by finish.
    """

    queues: list[Queue]
    live: NDArray[np.bool_]
    base: NDArray[np.int64]
    began: int
    courses: Courses
    time: int = 0
    stretches: list[tuple[int, int, Courses]] = field(default_factory=list)
    ended: bool = False
    wants: int | None = None
    missed: bool = False
    decided: dict[int, int] = field(default_factory=dict)
    holding: set[int] = field(default_factory=set)
    waiting: list[tuple[float, int]] = field(default_factory=list)
    eligible: list[tuple[float, int]] = field(default_factory=list)
