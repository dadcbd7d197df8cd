"""Ranks that meet in a store, in numbered rounds: parts go to the leader, its answer to all."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from zephon.coordination.coordinator import (
    LEADER,
    Failure,
    Make,
    Participant,
    Unite,
    different_calls,
    other_rank_failed,
)
from zephon.coordination.finding import GRACE, find_each_other
from zephon.coordination.store import Store, awaited
from zephon.errors import CoordinationError


class _Part(msgspec.Struct, array_like=True):
    """What a rank gives to a round: its part, or why it has none."""

    name: str
    value: bytes
    failed: bool = False


class _Answer(msgspec.Struct, array_like=True):
    """What the leader gives to all: what it made, or why it made nothing."""

    value: bytes
    failed: bool = False


class StoreRounds:
    """A coordinator over a store.

    Args:
        store: where ranks meet.
        participant: who this is.
        space: what tells this job from others in the store; words joined by `/`.
        seconds: how long to wait for other ranks.

    Raises:
        CoordinationError: a rank did not come; names it. Or another job meets in the same place.
    """

    def __init__(self, store: Store, participant: Participant, space: str, seconds: float) -> None:
        self.participant = participant
        self._store = store
        self._seconds = seconds
        self._number = 0
        self._space = find_each_other(store, participant, space, seconds)
        # What may go once all ranks are known to have read it.
        self._old = [f"{self._space}/all"]

    def round(self, name: str, make: Make, unite: Unite) -> bytes:
        """Meet; see ``Coordinator``."""
        at = f"{self._space}/{self._number}"
        self._number += 1
        mine = self._part(name, make, at)
        if self.participant.rank == LEADER:
            return self._answer(name, at, mine, unite)
        answer = awaited(
            self._store,
            lambda: self._store.get(f"{at}/answer"),
            self._seconds * GRACE,
            lambda: f"{name}: {self.participant.name(LEADER)}, which leads, did not answer",
        )
        if self._store.passes:
            self._store.set(f"{at}/read/{self.participant.rank}", b"")
        found = msgspec.msgpack.decode(answer, type=_Answer)
        if found.failed:
            raise Failure.from_bytes(found.value).error()
        return found.value

    def least(self, name: str, number: int) -> int:
        """Meet for the least number; see ``Coordinator``."""
        answer = self.round(name, lambda: number.to_bytes(8, "big"), min)
        return int.from_bytes(answer, "big")

    def close(self) -> None:
        """Leave. The last answer stays, since others may read it still."""

    def _part(self, name: str, make: Make, at: str) -> bytes:
        try:
            value, failure = make(), None
        except Exception as error:
            value, failure = Failure.of(error).to_bytes(), error
        part = msgspec.msgpack.encode(_Part(name, value, failure is not None))
        if self.participant.rank != LEADER:
            self._store.set(f"{at}/part/{self.participant.rank}", part)
        elif failure is not None:
            self._publish(at, Failure.of(self._failed(name, LEADER, value)).to_bytes(), failed=True)
        if failure is not None:
            raise failure
        return value

    def _answer(self, name: str, at: str, mine: bytes, unite: Unite) -> bytes:
        """Gather the parts, publish what is made of them, and tidy up after the round before."""
        try:
            made = unite(self._gather(name, at, mine))
        except Exception as error:
            self._publish(at, Failure.of(error).to_bytes(), failed=True)
            raise
        self._publish(at, made)
        return made

    def _gather(self, name: str, at: str, mine: bytes) -> list[bytes]:
        parts: dict[int, bytes] = {LEADER: mine}

        def look() -> list[bytes] | None:
            for rank in range(self.participant.size):
                if rank not in parts:
                    found = self._store.get(f"{at}/part/{rank}")
                    if found is None:
                        continue
                    part = msgspec.msgpack.decode(found, type=_Part)
                    if part.name != name:
                        raise different_calls(name, self.participant.name(rank), part.name)
                    if part.failed:
                        raise self._failed(name, rank, part.value)
                    parts[rank] = part.value
            if len(parts) < self.participant.size:
                return None
            return [parts[rank] for rank in range(self.participant.size)]

        return awaited(self._store, look, self._seconds, lambda: self._missing(name, parts))

    def _missing(self, name: str, there: Collection[int]) -> str:
        gone = [rank for rank in range(self.participant.size) if rank not in there]
        return f"{name}: no word from {self.participant.told(gone)}"

    def _failed(self, name: str, rank: int, value: bytes) -> CoordinationError:
        return other_rank_failed(name, self.participant.name(rank), Failure.from_bytes(value))

    def _publish(self, at: str, value: bytes, *, failed: bool = False) -> None:
        self._store.set(f"{at}/answer", msgspec.msgpack.encode(_Answer(value, failed)))
        if failed:
            return
        others = range(1, self.participant.size)
        # All parts of this round were there, so all ranks have read the answer of the one before.
        self._store.drop([*self._old, *(f"{at}/part/{rank}" for rank in others)])
        self._old = [f"{at}/answer"]
        if self._store.passes:
            reads = {rank: f"{at}/read/{rank}" for rank in others}
            self._old += reads.values()
            awaited(
                self._store,
                lambda: all(self._store.get(key) is not None for key in reads.values()) or None,
                self._seconds,
                lambda: "options: the answer of rank 0 was not read by all ranks",
            )
