"""What the engine asks of a work source: which rows a lane draws, by position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset


class LaneStream(ABC):
    """The draws of one lane: a pure function of position, safe in any thread."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> int | None:
        """How many draws the lane has; None if it never ends."""

    @abstractmethod
    def draw(self, start: int, count: int) -> Refs:
        """Give draws ``start`` up to ``start + count``, or up to the lane's end.

        Returns:
            References with ordinals from ``start`` on, new memory; none if the lane ended before.

        Raises:
            ValueError: ``start`` or ``count`` is negative.
        """


class WorkSource(ABC):
    """What to train on, in which order: references to rows, no reading.

    The engine asks for lanes by position, so that it can start anywhere. The chunk protocol
    (``next_chunk``, ``clone_for_lane``) is not part of this class.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def datasets_by_id(self) -> Mapping[int, Dataset]:
        """The datasets by the number that references and sample ids carry."""

    @abstractmethod
    def lane_stream(self, lane: int, lanes: int) -> LaneStream:
        """Give lane ``lane`` of ``lanes``."""

    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """List every argument that changes the data, as JSON values; part of the fingerprint."""

    def supports_indexing(self) -> bool:
        """Say whether samples can be asked for by number; a mixture's cannot."""
        return False
