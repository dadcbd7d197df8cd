"""What ranks can do together, whatever carries their bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from zephon import errors
from zephon.errors import CoordinationError, ZephonError, told

Make = Callable[[], bytes]
Unite = Callable[[Sequence[bytes]], bytes]

LEADER = 0
"""The rank that gets all parts, and unites them."""


@dataclass(frozen=True, slots=True)
class Participant:
    """Who takes part.

    rank: which of them this is, from 0. size: how many there are. names: how messages call each;
    empty: rank 0, rank 1 and so on.
    """

    rank: int
    size: int
    names: tuple[str, ...] = ()

    def name(self, rank: int) -> str:
        """Say how messages call a participant."""
        return self.names[rank] if self.names else f"rank {rank}"

    def told(self, ranks: Sequence[int]) -> str:
        """Name participants, the first ten of them."""
        more = f" and {len(ranks) - 10} more" if len(ranks) > 10 else ""
        return ", ".join(self.name(rank) for rank in ranks[:10]) + more


class Asked(Protocol):
    """A question for the least of the ranks' numbers: this rank's is given, those of others come.

    Whoever does not care any more leaves it alone.
    """

    def look(self) -> int | None:
        """Bring it on without waiting for anybody; return the least if it is here by now.

        For now and then, in between. Somebody may have to look before others see the least.

        Raises:
            CoordinationError: as ``least``.
        """
        ...

    def least(self) -> int:
        """Wait for the numbers of all ranks, and return the least.

        Raises:
            CoordinationError: a rank is missing, or does something else; names it.
        """
        ...


class Coordinator(Protocol):
    """Ranks that meet. All of them make the same calls in the same order.

    Between a question and its answer they may make others.
    """

    participant: Participant

    def round(self, name: str, make: Make, unite: Unite) -> bytes:
        """Give every rank's part to one of them, and to each what that one makes of all parts.

        Args:
            name: what is being done; ranks that do something else are told so.
            make: makes this rank's part. What it raises is raised here, and told to the others.
            unite: makes the answer of the parts, by rank; called on one rank. What it raises
                is raised on all.

        Raises:
            CoordinationError: a rank is missing, does something else, or failed; names it.
        """
        ...

    def ask(self, name: str, number: int) -> Asked:
        """Begin to find the least of the ranks' numbers, each of 63 bits; wait for nobody.

        Args:
            name: as in ``round``.
            number: of this rank.
        """
        ...

    def linger(self, *, ended: bool) -> None:
        """Stay while others have to hear the last answer, if it passes with this process.

        Args:
            ended: all ranks come to hear it; else they may have gone elsewhere, and a moment will
                do.
        """
        ...

    def close(self) -> None:
        """Leave; the others are not told."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a rank has no part, or the leader no answer, on its way to the others.

    kind: the error's class. text: its message.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Take an error down."""
        return cls(type(error).__name__, str(error) if isinstance(error, ZephonError) else "")

    @classmethod
    def from_bytes(cls, data: bytes) -> Failure:
        """Read what ``to_bytes`` wrote."""
        kind, _, text = data.decode(errors="replace").partition("\n")
        return cls(kind, text)

    def to_bytes(self) -> bytes:
        """Write it down."""
        return f"{self.kind}\n{self.text}".encode()

    def error(self) -> ZephonError:
        """Make the error again: of its class, if that is one of ours with a message alone."""
        found = getattr(errors, self.kind, None)
        if isinstance(found, type) and issubclass(found, ZephonError):
            try:
                return found(self.text)
            except TypeError:
                pass
        return CoordinationError(f"{self.kind}: {self.text}" if self.text else self.kind)


def other_rank_failed(name: str, who: str, failure: Failure) -> CoordinationError:
    """Say that a rank could not take part."""
    return CoordinationError(
        f"{name}: {who} failed with {told(failure.error())}; it says more where it runs"
    )


def different_calls(name: str, who: str, other: str) -> CoordinationError:
    """Say that ranks are not at the same place of the program."""
    return CoordinationError(
        f"{name}: {who} is at {other!r} meanwhile; all ranks make the same calls after the same "
        "batches: checkpoint() on each of them, and as many batches on one as on any other"
    )
