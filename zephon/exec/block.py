"""What a segment makes of draws, and what a lane keeps of it: blocks, their buffers, parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zephon.exec.renumbering import Renumbering
from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.payload import Payload


FILTERED, DROPPED, MERGED, SKIPPED, QUARANTINED, NULL = 1, 2, 3, 4, 5, 6
"""Why a draw gives no document: a filter that needs no function; a function, or what came later; or
it is in a document that stands at another draw; or its row is bad, and its dataset says to skip or
to quarantine it; or its text is null, and its dataset says to drop it."""


class Why(NamedTuple):
    """What is wrong with a bad row. step: the call that raised; None: it was read so."""

    text: str
    step: str | None


class Bad(NamedTuple):
    """A bad row that is left out: where it lies, whether it is to be written down, and why."""

    component: int
    shard: int
    row: int
    quarantined: bool
    why: Why


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """Draws that gave no row.

    refs: one each, in the order of the draws of their lane or strand; reason: shape [draws], int8.
    why: of those whose rows are bad, by position.
    """

    refs: Refs
    reason: NDArray[np.int8]
    why: Mapping[int, Why] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.reason)

    @classmethod
    def none(cls) -> Lost:
        """Return no draws."""
        return cls(Refs.empty(), np.empty(0, np.int8))

    def joined(self, other: Lost) -> Lost:
        """Return the draws of both; who needs their order sorts them."""
        if not len(self):
            return other
        if not len(other):
            return self
        refs = Refs.concat([self.refs, other.refs])
        why = self.why
        if other.why:
            why = {**why, **{len(self) + draw: each for draw, each in other.why.items()}}
        return Lost(refs, np.concatenate([self.reason, other.reason]), why)

    def take(self, draws: NDArray[np.int64]) -> Lost:
        """Return some draws, in any order."""
        why = self.why
        if why:
            why = {at: why[draw] for at, draw in enumerate(draws.tolist()) if draw in why}
        return Lost(self.refs.take(draws), self.reason[draws], why)

    def bad(self) -> list[tuple[int, Bad]]:
        """List bad rows, each with its draw, in order of the draws."""
        refs, found = self.refs, []
        for place, why in self.why.items():
            component, shard = int(refs.component[place]), int(refs.shard[place])
            row, reason = int(refs.row[place]), int(self.reason[place])
            bad = Bad(component, shard, row, reason == QUARANTINED, why)
            found.append((int(refs.ordinal[place]), bad))
        return sorted(found, key=lambda each: each[0])


@dataclass(slots=True, eq=False)
class Buffer:
    """Tokens that one task made, for one lane or for several.

    columns: the token column and those aligned with it, by name, each of shape [tokens];
    read-only. size: tokens of all its blocks. live: tokens of those that a lane still holds.
    """

    columns: dict[str, NDArray]
    size: int
    live: int


@dataclass(frozen=True, slots=True)
class Block:
    """What a segment made of consecutive draws of one lane.

    refs: one a document. buffer: holds the tokens, maybe other lanes' too. offsets: document d is
    tokens [offsets[d], offsets[d + 1]) of the buffer, shape [docs + 1], int64. payload: whole
    rows, where they are kept. failure: what the first bad row raises, if one follows. measures:
    what functions of the user made of each row, by name, each of shape [docs], int64. lost: draws
    among these that gave no document.
    """

    refs: Refs
    buffer: Buffer
    offsets: NDArray[np.int64]
    payload: Payload | None
    failure: Exception | None = None
    measures: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    lost: Lost = field(default_factory=Lost.none)

    @property
    def draws(self) -> int:
        """Draws that it tells of."""
        return int(self.refs.last_child.sum()) + len(self.lost)

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is written down of documents: all but their tokens.

    refs: of each document. length: tokens of each. position: the draw of each in its own strand.
    measures: shape [measures, docs]; the others [docs]; all int64.
    """

    refs: Refs
    length: NDArray[np.int64]
    position: NDArray[np.int64]
    measures: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.length)

    @classmethod
    def none(cls) -> Known:
        """Return no documents."""
        nothing = np.empty(0, np.int64)
        return cls(Refs.empty(), nothing, nothing, np.empty((0, 0), np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Known]) -> Known:
        """Put documents one after another; there is at least one part."""
        return cls(
            Refs.concat([part.refs for part in parts]),
            np.concatenate([part.length for part in parts]),
            np.concatenate([part.position for part in parts]),
            np.concatenate([part.measures for part in parts], axis=1),
        )

    def take(self, indices: NDArray[np.int64]) -> Known:
        """Return some documents, in any order."""
        return Known(
            self.refs.take(indices),
            self.length[indices],
            self.position[indices],
            self.measures[:, indices],
        )

    def renumbered(self, numbers: Renumbering) -> Known:
        """Return the same documents, of components by other numbers."""
        component = numbers.components(self.refs.component).astype(np.int32)
        return replace(self, refs=replace(self.refs, component=component))


@dataclass(slots=True, eq=False)
class Part:
    """A block while some document of it is held.

    tokens, documents: of all of it, or what was held when it was last copied. strand, waiting: the
    strand in which so many of its documents wait.
    """

    buffer: Buffer
    payload: Payload | None
    tokens: int
    documents: int
    strand: int = 0
    waiting: int = 0
