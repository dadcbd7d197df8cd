"""Ranks that meet through collectives of torch.distributed, on a group of their own over gloo.

All collectives begin on the thread that asks. Each meeting begins with a pair of numbers of every
rank: what it is doing, and how long its part is or which number it has. So ranks that do different
things find out, instead of waiting for each other. A question is that pair alone: while it travels,
the thread does something else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from zephon.coordination.coordinator import (
    LEADER,
    Failure,
    Make,
    Participant,
    Unite,
    different_calls,
    other_rank_failed,
)
from zephon.errors import CoordinationError, ZephonError

_FAILED = 1 << 40
"""Added to the length of what says why a rank has no part."""


class CollectiveRounds:
    """A coordinator over a process group.

    Args:
        group: whose ranks meet; None: all that torch.distributed was started with. Making the
            coordinator is a collective on it.
        names: how messages call ranks.
        seconds: how long to wait for other ranks.
    """

    def __init__(self, group: Any, names: tuple[str, ...], seconds: float) -> None:
        import torch  # late: optional; it is loaded where there is a group
        import torch.distributed as dist

        self._torch, self._dist = torch, dist
        self._seconds = seconds
        ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        self.participant = Participant(ranks.index(dist.get_rank()), len(ranks), names)
        with self._waiting("options"):
            # Of our own: other collectives of the job must not meet ours, whatever their device.
            self._group = dist.new_group(
                ranks,
                backend="gloo",
                timeout=timedelta(seconds=seconds),
                use_local_synchronization=True,
            )
        self._leader = ranks[LEADER]

    def round(self, name: str, make: Make, unite: Unite) -> bytes:
        """Meet; see ``Coordinator``."""
        error: Exception | None = None
        try:
            part = make()
            length = len(part)
        except Exception as raised:
            error, part = raised, Failure.of(raised).to_bytes()
            length = len(part) + _FAILED
        lengths = self._meet(name, length)
        failed = [rank for rank, found in enumerate(lengths) if found >= _FAILED]
        parts = self._gather(name, part, [found % _FAILED for found in lengths])
        answer = self._answer(name, parts, failed, unite)
        if error is not None:
            raise error
        return answer

    def ask(self, name: str, number: int) -> _Numbers:
        """Begin to find the least number; see ``Coordinator``."""
        kind = zlib.crc32(name.encode())
        mine = self._torch.tensor([kind, number], dtype=self._torch.int64)
        found = [self._torch.empty_like(mine) for _ in range(self.participant.size)]
        with self._waiting(name):
            work = self._dist.all_gather(found, mine, group=self._group, async_op=True)

        def arrived() -> list[list[int]]:
            with self._waiting(name):
                work.wait()
            return [each.tolist() for each in found]

        return _Numbers(name, kind, self.participant, work.is_completed, arrived)

    def linger(self, *, ended: bool) -> None:
        """Stay for nobody: what was sent arrives without us."""

    def close(self) -> None:
        """Leave the group; the process group of the job stays."""
        if self._dist.is_initialized():
            self._dist.destroy_process_group(self._group)

    def _meet(self, name: str, number: int) -> list[int]:
        """Tell all ranks a number, and hear theirs."""
        with self._waiting(name):
            # It knows who is missing, where a gather does not.
            self._dist.monitored_barrier(
                self._group, timedelta(seconds=self._seconds), wait_all_ranks=True
            )
        return self.ask(name, number).all()

    def _gather(self, name: str, part: bytes, lengths: Sequence[int]) -> list[bytes]:
        """Bring all parts to the leader; empty elsewhere. Parts are as long as the longest."""
        torch, most = self._torch, max(lengths)
        mine = torch.zeros(most, dtype=torch.uint8)
        if part:
            mine[: len(part)] = torch.frombuffer(bytearray(part), dtype=torch.uint8)
        leads = self.participant.rank == LEADER
        found = [torch.empty_like(mine) for _ in lengths] if leads else None
        if most:
            with self._waiting(name):
                self._dist.gather(mine, found, dst=self._leader, group=self._group)
        return [
            each[:length].numpy().tobytes()
            for each, length in zip(found or [], lengths, strict=bool(found))
        ]

    def _answer(
        self, name: str, parts: Sequence[bytes], failed: Sequence[int], unite: Unite
    ) -> bytes:
        """Make the answer on the leader, and hand it to all."""
        error: Exception | None = None
        made = b""
        if self.participant.rank == LEADER:
            try:
                if failed:
                    who = self.participant.name(failed[0])
                    raise other_rank_failed(name, who, Failure.from_bytes(parts[failed[0]]))
                made = unite(parts)
                length = len(made)
            except Exception as raised:
                error, made = raised, Failure.of(raised).to_bytes()
                length = len(made) + _FAILED
        else:
            length = 0
        torch = self._torch
        told = torch.tensor([length], dtype=torch.int64)
        with self._waiting(name):
            self._dist.broadcast(told, self._leader, group=self._group)
            length = int(told[0])
            body = torch.zeros(length % _FAILED, dtype=torch.uint8)
            if made:
                body[:] = torch.frombuffer(bytearray(made), dtype=torch.uint8)
            if len(body):
                self._dist.broadcast(body, self._leader, group=self._group)
        if error is not None:
            raise error
        answer = body.numpy().tobytes()
        if length >= _FAILED:
            raise Failure.from_bytes(answer).error()
        return answer

    @contextmanager
    def _waiting(self, name: str) -> Iterator[None]:
        """Say what was being done when a collective fails, and what its error says of ranks."""
        try:
            yield
        except ZephonError:
            raise
        except RuntimeError as error:
            said = str(error).splitlines()[0]
            raise CoordinationError(
                f"{name}: ranks did not meet within {self._seconds:g} s, or one is gone: {said}; "
                "see whether all ranks run still and make the same calls, or raise "
                "aggregate_timeout_s"
            ) from error


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A number of each rank, on its way to all.

    kind: what is asked. are_here: says whether all arrived. arrived: waits for that, and gives kind
    and number of each rank.
    """

    name: str
    kind: int
    participant: Participant
    are_here: Callable[[], bool]
    arrived: Callable[[], list[list[int]]]

    def look(self) -> int | None:
        """Look for the least: they travel by themselves; see ``Asked``."""
        return self.least() if self.are_here() else None

    def least(self) -> int:
        """Wait for the least; see ``Asked``."""
        return min(self.all())

    def all(self) -> list[int]:
        """Wait for the numbers, by rank.

        Raises:
            CoordinationError: a rank is missing, or does something else.
        """
        pairs = self.arrived()
        other = next((rank for rank, (what, _) in enumerate(pairs) if what != self.kind), None)
        if other is not None:
            raise different_calls(self.name, self.participant.name(other), "another call")
        return [number for _, number in pairs]
