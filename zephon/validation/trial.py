"""An accumulator in use: every call of it is guarded, and what goes in and comes out is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from zephon.types import LaneId, SampleRecord
from zephon.validation.identities import Source, sources_of
from zephon.validation.report import Issue, issue, told
from zephon.validation.samples import copies
from zephon.validation.subject import takes

Group: TypeAlias = list[SampleRecord]
Make: TypeAlias = Callable[[], Any]

BURST = 2
"""Records that are pushed at once."""


class Refused(Exception):
    """A check that cannot go on; holds the issue that says why."""

    def __init__(self, found: Issue) -> None:
        super().__init__(str(found))
        self.found = found


class Trial:
    """A new accumulator, to push into and to flush.

    drops: it says itself that it drops the last records. pushed: all that went in. groups: all
    that came out.

    Raises:
        Refused: it cannot be made, as every method if the accumulator fails, or gives no groups.
    """

    def __init__(self, name: str, make: Make) -> None:
        self._name = name
        try:
            self._accumulator = make()
        except Exception as exc:  # of any class: it is code of the user
            raise Refused(
                issue(
                    "ACC_FACTORY_RAISED",
                    name,
                    f"accumulator must make one before setup(), got {told(exc)}; let it need "
                    "nothing but deterministic and ctx",
                )
            ) from exc
        missing = [
            method
            for method in ("push_many", "flush", "has_pending_data")
            if not callable(getattr(self._accumulator, method, None))
        ]
        if missing:
            raise Refused(
                issue(
                    "ACC_FACTORY_RAISED",
                    name,
                    f"accumulator must make an Accumulator, got a "
                    f"{type(self._accumulator).__name__} without {missing[0]}; derive from "
                    "zephon.ops.Accumulator",
                )
            )
        self.drops = bool(getattr(self._accumulator, "drop_last", False))
        self.groups: list[Group] = []
        self.pushed: list[SampleRecord] = []

    @property
    def gives_whole_records(self) -> bool:
        """Whether all that came out are records as they went in, and nothing made of them."""
        return all(record.meta.contributors is None for group in self.groups for record in group)

    @property
    def flushes_lanes(self) -> bool:
        """Whether ``flush`` takes what a flush of one lane passes."""
        return takes(self._accumulator.flush, "reset", "lane_id")

    def push(self, records: Sequence[SampleRecord]) -> list[Group]:
        """Push copies of some records; returns the groups that came out."""
        self.pushed += records
        given = copies(records)
        return self._groups("ACC_PUSH_OR_FLUSH_RAISED", self._accumulator.push_many, given)

    def push_in_bursts(self, lanes: dict[LaneId, list[SampleRecord]]) -> None:
        """Push all lanes in turn, a few records at a time."""
        for burst in bursts(lanes):
            self.push(burst)

    def flush(self) -> list[Group]:
        """Flush all lanes, as at the end of the data."""
        return self._groups("ACC_PUSH_OR_FLUSH_RAISED", self._accumulator.flush)

    def flush_lane(self, lane: LaneId) -> list[Group]:
        """Flush one lane, which goes on afterwards."""
        return self._groups("ACC_RESET_RAISED", self._accumulator.flush, reset=True, lane_id=lane)

    def pending(self, lane: LaneId | None = None) -> bool:
        """Ask whether something is held."""
        return bool(
            self._call("ACC_PUSH_OR_FLUSH_RAISED", self._accumulator.has_pending_data, lane)
        )

    def held(self, lane: LaneId | None = None) -> set[Source]:
        """Say which records went in and have not come out."""
        out = {source for group in self.groups for record in group for source in sources_of(record)}
        return {
            source
            for record in self.pushed
            for source in sources_of(record)
            if lane in (None, source[0]) and source not in out
        }

    def _groups(
        self, code: str, method: Callable[..., Any], *args: Any, **named: Any
    ) -> list[Group]:
        answer = self._call(code, method, *args, **named)
        try:
            groups = [list(group) for group, _waited in answer]
        except (TypeError, ValueError):
            groups = [[answer]]
        if not all(isinstance(record, SampleRecord) for group in groups for record in group):
            raise Refused(
                issue(
                    code,
                    self._name,
                    f"{method.__name__} must return a list of (records, nanoseconds) pairs, got "
                    f"{' '.join(repr(answer)[:60].split())}; return [] if no group is complete",
                )
            )
        self.groups += groups
        return groups

    def _call(self, code: str, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except Exception as exc:  # of any class: it is code of the user
            raise Refused(
                issue(
                    code,
                    self._name,
                    f"{method.__name__} must take the records of the checks, got {told(exc)}; "
                    "give validation_samples if it needs others",
                )
            ) from exc


def bursts(lanes: dict[LaneId, list[SampleRecord]]) -> Iterator[list[SampleRecord]]:
    """Yield the records of all lanes in turn, a few of one lane at a time."""
    for start in range(0, max(map(len, lanes.values())), BURST):
        for records in lanes.values():
            if records[start : start + BURST]:
                yield records[start : start + BURST]
