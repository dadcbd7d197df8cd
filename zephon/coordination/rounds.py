"""Ranks that meet in a store, in numbered rounds: parts go to the leader, its answer to all.

A question is a round that is left alone for a while: parts are given when it begins, the leader
answers when it looks and finds all of them, and the others look for that later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from zephon.coordination.coordinator import (
    LEADER,
    Asked,
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

_MOMENT = 2.0
"""Seconds to linger where others may have gone elsewhere."""


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
        # Keys that nobody looks for any more once all ranks have begun what begins next.
        self._old = [f"{self._space}/all"]
        self._asked: _Round | None = None

    def round(self, name: str, make: Make, unite: Unite) -> bytes:
        """Meet; see ``Coordinator``."""
        met = self._next(name, unite)
        try:
            met.give(make)
            answer = met.answer()
            met.wait_for_readers(self._seconds)
        finally:
            self._old += met.left()
        return answer

    def ask(self, name: str, number: int) -> Asked:
        """Begin to find the least number; see ``Coordinator``."""
        if self._asked is not None:  # until now, somebody might have come for its answer
            self._old += self._asked.left()
        self._asked = self._next(name, min)
        self._asked.give(lambda: number.to_bytes(8, "big"))
        return self._asked

    def linger(self, *, ended: bool) -> None:
        """Stay while others have to hear the last answer; see ``Coordinator``."""
        if self._asked is not None and self._asked.is_heard:
            with suppress(CoordinationError):  # who did not come for it hears of that itself
                self._asked.wait_for_readers(self._seconds if ended else _MOMENT)

    def close(self) -> None:
        """Leave. The last answers stay, since others may read them still."""

    def _next(self, name: str, unite: Unite) -> _Round:
        at = f"{self._space}/{self._number}"
        self._number += 1
        old, self._old = self._old, []
        return _Round(self._store, self.participant, self._seconds, name, at, unite, old)


class _Part(msgspec.Struct, array_like=True):
    """What a rank gives to a round: its part, or why it has none."""

    name: str
    value: bytes
    failed: bool = False


class _Answer(msgspec.Struct, array_like=True):
    """What the leader gives to all: what it made, or why it made nothing."""

    value: bytes
    failed: bool = False


@dataclass(slots=True)
class _Round:
    """One round, as one rank sees it.

    store, who, seconds: as in ``StoreRounds``. name, unite: as in ``Coordinator``. at: the space of
    its keys. old: keys that may go once all ranks have given their parts. parts: those that the
    leader has. made: its answer. is_told: the leader has published that, or why there is none.
    is_heard: it has needed the answer itself, so the others do, too. looks: how often another has
    looked for it.
    """

    store: Store
    who: Participant
    seconds: float
    name: str
    at: str
    unite: Unite
    old: list[str]
    parts: dict[int, bytes] = field(default_factory=dict)
    made: bytes | None = None
    is_told: bool = False
    is_heard: bool = False
    looks: int = 0

    def give(self, make: Make) -> None:
        """Give this rank's part, or say why there is none."""
        try:
            value = make()
        except Exception as error:
            failure = Failure.of(error)
            if self._leads:
                told = other_rank_failed(self.name, self.who.name(LEADER), failure)
                self._publish(_Answer(Failure.of(told).to_bytes(), failed=True))
            else:
                self._send(_Part(self.name, failure.to_bytes(), failed=True))
            raise
        if self._leads:
            self.parts[LEADER] = value
        else:
            self._send(_Part(self.name, value))

    def look(self) -> int | None:
        """Answer, if all parts are there, or look for the answer; see ``Asked``.

        The leader keeps it until it needs it, and the others begin to look after it did.
        """
        if self._leads:
            with self._telling():
                self._united()
            return None
        self.looks += 1
        told = self._told() if self.looks > 1 else None
        return None if told is None else int.from_bytes(self._heard(told), "big")

    def least(self) -> int:
        """Wait for the answer to a question; see ``Asked``."""
        return int.from_bytes(self.answer(), "big")

    def answer(self) -> bytes:
        """Wait for the answer, or for all parts and make it.

        Raises:
            CoordinationError: a rank is missing, or does something else; names it.
            Exception: what ``unite`` raises.
        """
        if self._leads:
            with self._telling():
                made = awaited(self.store, self._united, self.seconds, self._missing)
            self.is_heard = True
            return made
        told = awaited(
            self.store,
            self._told,
            self.seconds * GRACE,
            lambda: f"{self.name}: {self.who.name(LEADER)}, which leads, did not answer",
        )
        return self._heard(told)

    def wait_for_readers(self, seconds: float) -> None:
        """On the leader, stay until all have read the answer, where it passes with this process."""
        if not self._leads or not self.store.passes:
            return
        reads = self._of_others("read")

        def look() -> bool | None:
            return all(self.store.get(key) is not None for key in reads) or None

        awaited(
            self.store,
            look,
            seconds,
            lambda: f"{self.name}: the answer of {self.who.name(LEADER)} was not read by all ranks",
        )

    def left(self) -> list[str]:
        """Give the keys that the leader has to take away once nobody comes back to this round."""
        if not self._leads:
            return []
        reads = self._of_others("read") if self.store.passes else []
        unread = [] if self.made is not None else [*self.old, *self._of_others("part")]
        return [*unread, f"{self.at}/answer", *reads]

    @property
    def _leads(self) -> bool:
        return self.who.rank == LEADER

    def _of_others(self, what: str) -> list[str]:
        return [f"{self.at}/{what}/{rank}" for rank in range(1, self.who.size)]

    def _send(self, part: _Part) -> None:
        self.store.set(f"{self.at}/part/{self.who.rank}", msgspec.msgpack.encode(part))

    def _united(self) -> bytes | None:
        """Make and publish the answer, once all parts are there, and tidy up."""
        if self.made is None and self._has_all():
            made = self.unite([self.parts[rank] for rank in range(self.who.size)])
            self._publish(_Answer(made))
            self.made = made
            self.store.drop([*self.old, *self._of_others("part")])
        return self.made

    def _told(self) -> bytes | None:
        return self.store.get(f"{self.at}/answer")

    def _heard(self, told: bytes) -> bytes:
        if self.store.passes:
            self.store.set(f"{self.at}/read/{self.who.rank}", b"")
        found = msgspec.msgpack.decode(told, type=_Answer)
        if found.failed:
            raise Failure.from_bytes(found.value).error()
        return found.value

    def _has_all(self) -> bool:
        for rank, key in enumerate(self._of_others("part"), 1):
            found = None if rank in self.parts else self.store.get(key)
            if found is None:
                continue
            part = msgspec.msgpack.decode(found, type=_Part)
            if part.name != self.name:
                raise different_calls(self.name, self.who.name(rank), part.name)
            if part.failed:
                failure = Failure.from_bytes(part.value)
                raise other_rank_failed(self.name, self.who.name(rank), failure)
            self.parts[rank] = part.value
        return len(self.parts) == self.who.size

    def _missing(self) -> str:
        gone = [rank for rank in range(self.who.size) if rank not in self.parts]
        return f"{self.name}: no word from {self.who.told(gone)}"

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Let the others hear of an error, if they have heard nothing yet."""
        try:
            yield
        except Exception as error:
            if not self.is_told:
                self._publish(_Answer(Failure.of(error).to_bytes(), failed=True))
            raise

    def _publish(self, answer: _Answer) -> None:
        self.is_told = True
        self.store.set(f"{self.at}/answer", msgspec.msgpack.encode(answer))
