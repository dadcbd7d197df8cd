"""One lane of a mixture that counts tokens: a strand of draws for each component, and the target.

Which strand gives the next document is decided where the documents' tokens are known, after
tokenizing; so a lane is handed out in its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from zephon.work.course import Courses
from zephon.work.lane_stream import LaneStream


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLane:
    """The parts of a lane; all tuples have one entry a component, in component order.

    strands: their draws; a component that is never read has none.
    courses: how many tokens of each component the lane should hold, over its tokens.
    must_draw: rows to be drawn before the lane may end of itself; None: it does not matter.
    at_end: what happens when a strand ends: the component is finished ("finish"), or the lane
        ends when its share is due ("stop").
    budgets: tokens of this lane after which the component is finished; None for no bound.
    """

    lane: int
    strands: tuple[LaneStream, ...]
    courses: Courses
    must_draw: tuple[int | None, ...]
    at_end: tuple[str, ...]
    budgets: tuple[float | None, ...]
