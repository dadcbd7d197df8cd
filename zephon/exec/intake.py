"""How far a lane, or one strand of it, was handed out to be read, and came back."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.work.lane_stream import LaneStream


@dataclass(slots=True)
class Intake:
    """The way into a lane: of all its draws, or of those of one strand.

    next_draw: the next draw to hand to a task. read, tokens: draws that have come back, and tokens
    of their documents.
    """

    stream: LaneStream
    next_draw: int = 0
    read: int = 0
    tokens: int = 0

    @property
    def left(self) -> int | None:
        """Draws to hand to tasks; None: nobody knows how many."""
        length = self.stream.length
        return None if length is None else max(length - self.next_draw, 0)
