"""What a policy promises: one lane's units in order, integers only, all memory in its state.

A unit is what policies pass on: a document at first, a row in the end, each a list of pieces of
documents. A lane's policies form a chain: what one gives is what the next one takes. A document is
known by the number of its arrival in the lane; whatever else a policy wants to know of it (its
component, whether it ends its row) it looks up in ``Documents``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zephon.exec.renumbering import Renumbering

State = TypeVar("State")

AT_END = -1
"""The trigger of a unit that no arrival let go, but the end of the lane."""

NO_INTS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Units as lists of pieces; unit u is pieces [splits[u], splits[u + 1]), one at least.

    splits: shape [units + 1], int64, from 0.
    seq: shape [pieces], int64, the arrival number of the document a piece comes from.
    start: shape [pieces], int64, the piece's first token in its document.
    length: shape [pieces], int64, tokens of the piece.
    trigger: shape [units], int64, the arrival whose push let the unit go, or ``AT_END``; never
        falls, but to ``AT_END``.
    """

    splits: NDArray[np.int64]
    seq: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    trigger: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.trigger)

    @classmethod
    def whole(
        cls, seq: NDArray[np.int64], length: NDArray[np.int64], trigger: NDArray[np.int64]
    ) -> Units:
        """Make a unit of each of some whole documents; the arrays are kept, not copied."""
        return cls.single(seq, np.zeros(len(seq), np.int64), length, trigger)

    @classmethod
    def single(
        cls,
        seq: NDArray[np.int64],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        trigger: NDArray[np.int64],
    ) -> Units:
        """Make a unit of each of some pieces; the arrays are kept, not copied."""
        return cls(np.arange(len(seq) + 1, dtype=np.int64), seq, start, length, trigger)

    @classmethod
    def concat(cls, parts: Sequence[Units]) -> Units:
        """Put units one after another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return NO_UNITS
        bases = np.cumsum([0, *(len(part.seq) for part in parts)])
        return cls(
            splits=np.concatenate(
                [[0], *(part.splits[1:] + base for part, base in zip(parts, bases, strict=False))]
            ).astype(np.int64),
            seq=np.concatenate([part.seq for part in parts]),
            start=np.concatenate([part.start for part in parts]),
            length=np.concatenate([part.length for part in parts]),
            trigger=np.concatenate([part.trigger for part in parts]),
        )

    def rows(self, first: int, stop: int) -> Units:
        """Return units [first, stop); all arrays but ``splits`` share this object's memory."""
        a, b = self.splits[first], self.splits[stop]
        return Units(
            splits=self.splits[first : stop + 1] - a,
            seq=self.seq[a:b],
            start=self.start[a:b],
            length=self.length[a:b],
            trigger=self.trigger[first:stop],
        )

    def take(self, units: NDArray[np.int64]) -> Units:
        """Return some units, in any order, each with its own trigger; copies."""
        if len(self.seq) == len(self):  # one piece each, as documents have
            pieces, splits = units, np.arange(len(units) + 1, dtype=np.int64)
        else:
            sizes = np.diff(self.splits)[units]
            splits = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            pieces = np.repeat(self.splits[units] - splits[:-1], sizes) + np.arange(splits[-1])
        return Units(
            splits=splits,
            seq=self.seq[pieces],
            start=self.start[pieces],
            length=self.length[pieces],
            trigger=self.trigger[units],
        )

    def let_go(self, trigger: NDArray[np.int64]) -> Units:
        """Return the same units with other triggers."""
        return Units(self.splits, self.seq, self.start, self.length, trigger)

    def tokens(self) -> NDArray[np.int64]:
        """Count the tokens of each unit, shape [units]."""
        if len(self.seq) == len(self):
            return self.length
        total = np.concatenate([[0], np.cumsum(self.length)])
        return total[self.splits[1:]] - total[self.splits[:-1]]


NO_UNITS = Units(np.zeros(1, np.int64), NO_INTS, NO_INTS, NO_INTS, NO_INTS)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """All that a policy remembers of one lane, as it is written into a checkpoint.

    units: what it still holds, in an order of its own; triggers mean nothing.
    numbers: everything else, each an int64 array of one axis, by name; floats as their bits.
    """

    units: Units = NO_UNITS
    numbers: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


class Documents(Protocol):
    """What is known of a lane's documents, by arrival number. Any document may be asked for that
    the policy holds or is being pushed.
    """  # noqa: D205

    def components(self, seqs: NDArray[np.int64], /) -> NDArray[np.int64]:
        """Return the component of each document, shape [docs]."""
        ...

    def lengths(self, seqs: NDArray[np.int64], /) -> NDArray[np.int64]:
        """Return the tokens of each document, all of it, shape [docs]."""
        ...

    def last_parts(self, seqs: NDArray[np.int64], /) -> NDArray[np.bool_]:
        """Say which documents are the last part of their source row, shape [docs]."""
        ...

    def measures(self, name: str, seqs: NDArray[np.int64], /) -> NDArray[np.int64]:
        """Return what a function of the user made of each document's row, shape [docs].

        Args:
            name: "length", a whole number; or "weight", the bits of a float64.
        """
        ...

    def weights(self, seq: int, /) -> NDArray[np.float64] | None:
        """Return the mixture's weights in force when a document came, shape [components]."""
        ...


class Policy(ABC, Generic[State]):
    """Decides where one lane's documents go; all that it remembers is in ``state``.

    Packers take units of one piece, whole documents; what reorders takes any.
    What comes out depends on the sequence of units alone, never on how many are pushed at once.
    A policy is built once a plan and shared by all lanes.

    packs: makes rows of documents. cuts: of some of them only a part. joins: makes one unit of the
    splits of a row, or, if false, takes them apart.
    """

    packs: bool = False
    cuts: bool = False
    joins: bool | None = None

    @abstractmethod
    def make_state(self, lane: int) -> State:
        """Return the state before the first unit of a lane."""

    @abstractmethod
    def push(self, state: State, units: Units, documents: Documents) -> Units:
        """Take units; return those that are let go, in order.

        Args:
            state: changed in place.
            units: what the policy below gives; only read.
            documents: what is known of the documents in them.

        Returns:
            units whose trigger is that of the pushed unit which let them go.
        """

    def finish(self, state: State, documents: Documents) -> Units:
        """Let go what is still to be let go at the true end of the lane; called once.

        Returns:
            units with the trigger ``AT_END``. What ``held`` returns afterwards is lost, and is
            counted as such.
        """
        return NO_UNITS

    @abstractmethod
    def held(self, state: State) -> Held:
        """Return all of the state; arrays are not written to afterwards.

        The same after the same units, however they were pushed, and after a ``resume``.
        """

    @abstractmethod
    def resume(self, lane: int, held: Held, documents: Documents) -> State:
        """Rebuild the state that ``held`` came from; documents may have other arrival numbers."""

    def renumbered(self, held: Held, before: Policy[State], numbers: Renumbering) -> Held:
        """Return what another policy held as it is among the components of now.

        Args:
            held: what it held.
            before: that policy: the same, for the components of then.
            numbers: of components then, and now; of none that is gone is anything held.
        """
        return held

    def dropped(self, state: State) -> Mapping[str, NDArray[np.int64]]:
        """Count tokens that were thrown away since the lane began, by reason.

        Returns:
            By reason ("oversized"), tokens of each component, shape [components].
        """
        return {}

    def dropped_documents(self, state: State) -> int:
        """Count documents that were thrown away since the lane began."""
        return 0
