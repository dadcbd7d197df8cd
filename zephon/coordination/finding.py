"""How ranks find each other in a store, whatever earlier jobs left there.

No clock is needed, and nothing that lies there is trusted. Each rank says hello with a number of
its own that was drawn just now; the leader answers with a space of keys, drawn just now too, and
with the numbers that it saw; a rank goes there only where its own number was seen, and stays where
the leader at last names all that came. So leftovers of earlier runs, larger or smaller, are never
read as parts of this one, and no rank is there twice. Who finds its hello taken over by somebody
else refuses: two jobs use one place.
"""

from __future__ import annotations

import secrets

import msgspec

from zephon.coordination.coordinator import LEADER, Participant
from zephon.coordination.store import Store, awaited
from zephon.errors import CoordinationError

GRACE = 1.25
"""How much longer than the leader the others wait, so that they hear of whom it missed."""


class _Session(msgspec.Struct, array_like=True):
    """Where a job meets, and whom the leader saw, by rank."""

    job: str
    seen: list[str]


def find_each_other(store: Store, who: Participant, space: str, seconds: float) -> str:
    """Meet the ranks of this job; return a space of keys that no other job has.

    Args:
        store: where they meet.
        who: this rank.
        space: what tells this job from others there; words joined by `/`.
        seconds: how long to wait.

    Raises:
        CoordinationError: a rank did not come; names it. Or another job meets in the same place.
    """
    mine = secrets.token_hex(8)
    store.set(_hello(space, who.rank), mine.encode())
    if who.rank == LEADER:
        return _lead(store, who, space, seconds, mine)
    return _follow(store, who, space, seconds, mine)


def _lead(store: Store, who: Participant, space: str, seconds: float, mine: str) -> str:
    """Draw a space of keys, and tell all who say hello of it until all have come there."""
    job = secrets.token_hex(8)
    told: list[str] | None = None
    came: dict[int, str] = {LEADER: mine}

    def look() -> list[str] | None:
        nonlocal told
        seen = [_said(store, _hello(space, rank)) for rank in range(who.size)]
        for rank, number in came.items():
            _refuse_other(store, who, rank, number, seen[rank])
        if seen != told:
            written = msgspec.msgpack.encode(_Session(job, seen))
            store.set(f"{space}/session", written)
            told = seen
        for rank, number in enumerate(seen):
            if number and rank not in came and _said(store, _came(space, job, rank)) == number:
                came[rank] = number
        return seen if len(came) == who.size else None

    def missing() -> str:
        gone = [rank for rank in range(who.size) if rank not in came]
        return f"options: {who.told(gone)} did not come"

    found = awaited(store, look, seconds, missing)
    store.set(f"{space}/{job}/all", msgspec.msgpack.encode(_Session(job, found)))
    store.drop(_came(space, job, rank) for rank in range(1, who.size))
    return f"{space}/{job}"


def _follow(store: Store, who: Participant, space: str, seconds: float, mine: str) -> str:
    """Wait for the answer to the own hello; go where it says, and stay if named among all."""
    rank = who.rank

    def look() -> str | None:
        session = _read(store.get(f"{space}/session"))
        if session is not None and session.seen[rank : rank + 1] == [mine]:
            return session.job
        _refuse_other(store, who, rank, mine, _said(store, _hello(space, rank)))
        return None

    def stay() -> bool | None:
        named = _read(store.get(f"{space}/{job}/all"))
        if named is not None:
            _refuse_other(store, who, rank, mine, named.seen[rank])
            return True
        return None

    def missing() -> str:
        return f"options: {who.name(LEADER)}, which leads, did not come"

    job = awaited(store, look, seconds * GRACE, missing)
    store.set(_came(space, job, rank), mine.encode())
    awaited(store, stay, seconds * GRACE, missing)
    return f"{space}/{job}"


def _hello(space: str, rank: int) -> str:
    return f"{space}/hello/{rank}"


def _came(space: str, job: str, rank: int) -> str:
    return f"{space}/{job}/came/{rank}"


def _said(store: Store, key: str) -> str:
    return (store.get(key) or b"").decode("ascii", "replace")


def _read(value: bytes | None) -> _Session | None:
    try:
        return None if value is None else msgspec.msgpack.decode(value, type=_Session)
    except msgspec.DecodeError:
        return None  # of another release: this job's comes


def _refuse_other(store: Store, who: Participant, rank: int, number: str, said: str) -> None:
    if said != number:
        raise CoordinationError(
            f"options: another process says that it is {who.name(rank)} in {store.told}; two jobs "
            "meet there, or two ranks have one global_rank: give each job a run_id of its own, and "
            "each rank its number"
        )
