"""What a segment makes of draws, and what a lane keeps of it: blocks, their buffers, parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zephon.work.refs import Refs

if TYPE_CHECKING:
    from zephon.io.payload import Payload


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
    what functions of the user made of each row, by name, each of shape [docs], int64.
    """

    refs: Refs
    buffer: Buffer
    offsets: NDArray[np.int64]
    payload: Payload | None
    failure: Exception | None = None
    measures: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

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

    def take(self, indices: NDArray[np.int64]) -> Known:
        """Return some documents, in any order."""
        return Known(
            self.refs.take(indices),
            self.length[indices],
            self.position[indices],
            self.measures[:, indices],
        )


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
