"""What forms the groups of records that an operator of the user gets.

An accumulator runs on one thread, and here serves one lane: it is made anew where a lane begins,
and after each place where what lanes hold is flushed. With ``snapshot`` and ``restore`` it is
carried across such places instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from zephon.errors import PlanError

T = TypeVar("T")

ReadyBatch: TypeAlias = tuple[list[T], int]
"""A group that may go on, and how long it waited, in nanoseconds."""


@dataclass(frozen=True)
class SourceExhaustion:
    """Which components of a lane have ended.

    exhausted: have no more rows. continuing: of these, the ones that begin again. final_component:
    the one with which the lane ends; None: it has not ended.
    """

    exhausted: frozenset[int] = frozenset()
    continuing: frozenset[int] = frozenset()
    final_component: int | None = None


class Accumulator(ABC, Generic[T]):
    """Takes records as they come, and gives them on in groups; derive from it.

    ``snapshot`` and ``restore`` are optional: whoever writes both is never flushed before the end
    of the data, and a checkpoint holds what it remembers.
    """

    @abstractmethod
    def push_many(self, elems: Sequence[T]) -> list[ReadyBatch[T]]:
        """Take some records; return the groups that are complete."""

    @abstractmethod
    def flush(self, *, reset: bool = False, lane_id: int | None = None) -> list[ReadyBatch[T]]:
        """Return what is held.

        Args:
            reset: the lane goes on afterwards, and must be like a new one.
            lane_id: the lane; None: all of them.
        """

    def has_pending_data(self, lane_id: int | None = None) -> bool:
        """Say whether something is held, of a lane or at all."""
        return False

    def try_epoch_reset(self, boundary_chunk_id: int, lane_id: int | None = None) -> bool:
        """Say whether the lane may go on without a flush at this chunk."""
        return not self.has_pending_data(lane_id)

    def on_source_exhausted(self, lane_id: int, component_id: int) -> list[ReadyBatch[T]]:
        """Hear that a component has ended in a lane; return groups that are complete by that.

        All are told at the end of the lane's data, before the last ``flush``; an accumulator that
        was flushed right there, and holds nothing, is not told.
        """
        return []

    @property
    def reads_payload(self) -> bool:
        """Whether ``push_many`` looks at payloads."""
        return False

    def snapshot(self) -> Any:
        """Write down all that is held, as JSON values."""
        raise NotImplementedError

    def restore(self, saved: Any) -> None:
        """Become what was written down; called on a new accumulator."""
        raise NotImplementedError


_HELD_BY = ("__init__", "push_many", "flush", "on_source_exhausted", "try_epoch_reset")


def writes_itself_down(accumulator: object) -> bool:
    """Tell whether an accumulator has ``snapshot`` and ``restore``, of all that it holds.

    A class that changes what is held, below the one that wrote them, must write them anew.
    """
    for kind in type(accumulator).__mro__:
        if kind is Accumulator:
            return False
        if "snapshot" in vars(kind) and "restore" in vars(kind):
            return True
        if any(name in vars(kind) for name in _HELD_BY):
            return False
    return False


class PassthroughAccumulator(Accumulator[T]):
    """Gives on what comes, as it comes."""

    def push_many(self, elems: Sequence[T]) -> list[ReadyBatch[T]]:
        """Return the records as one group; none if there are none."""
        return [(list(elems), 0)] if elems else []

    def flush(self, *, reset: bool = False, lane_id: int | None = None) -> list[ReadyBatch[T]]:
        """Return nothing: nothing is held."""
        return []


class CountingAccumulator(Accumulator[T]):
    """Gives groups of ``max_batch`` records of one lane.

    Args:
        max_batch: records of a group.
        max_latency_ms: no group is given for its age, since then a clock would decide what is in
            it; it is taken so that code which names it runs.
        drop_last: a flush drops a group that is not full; else it gives it.

    Raises:
        PlanError: a number is no integer of at least 1.
    """

    def __init__(
        self, max_batch: int, max_latency_ms: int | None = None, *, drop_last: bool = False
    ) -> None:
        for name, value in (("max_batch", max_batch), ("max_latency_ms", max_latency_ms)):
            if name == "max_latency_ms" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise PlanError(
                    f"CountingAccumulator: {name} must be an integer of at least 1, got {value!r}"
                )
        self.max_batch = max_batch
        self.max_latency_ms = max_latency_ms
        self.drop_last = drop_last
        self._held: dict[int, list[T]] = {}

    def push_many(self, elems: Sequence[T]) -> list[ReadyBatch[T]]:
        """Take records; return full groups, in the order in which they became full."""
        ready: list[ReadyBatch[T]] = []
        for elem in elems:
            lane = _lane_of(elem)
            held = self._held.setdefault(lane, [])
            held.append(elem)
            if len(held) == self.max_batch:
                ready.append((self._held.pop(lane), 0))
        return ready

    def flush(self, *, reset: bool = False, lane_id: int | None = None) -> list[ReadyBatch[T]]:
        """Return what a lane holds, or every lane; nothing with ``drop_last``."""
        lanes = list(self._held) if lane_id is None else [lane_id]
        groups = [self._held.pop(lane) for lane in lanes if lane in self._held]
        return [] if self.drop_last else [(group, 0) for group in groups]

    def has_pending_data(self, lane_id: int | None = None) -> bool:
        """Say whether a group waits for more."""
        return bool(self._held) if lane_id is None else lane_id in self._held


def _lane_of(elem: Any) -> int:
    """Give the lane of a record, or of a batch."""
    return elem.lane_ids[0] if hasattr(elem, "lane_ids") else elem.meta.lane_id
