"""What went into a lane: documents, draws that gave none, and what is counted of both.

In a lane whose draws come in order, a draw that gave no document is an entry of its own, with minus
the reason as its length. In a lane that merges strands such a draw has no place of its own: it
counts with the next document of its strand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import (
    DROPPED,
    FILTERED,
    MERGED,
    NULL,
    QUARANTINED,
    SKIPPED,
    Known,
    Lost,
)
from zephon.exec.renumbering import Renumbering
from zephon.io.offsets import is_ascending
from zephon.work.refs import Refs

REASONS = (FILTERED, DROPPED, MERGED, SKIPPED, QUARANTINED, NULL)

_COUNTED = {
    "filtered": FILTERED,
    "dropped": DROPPED,
    "skipped": SKIPPED,
    "quarantined": QUARANTINED,
    "null": NULL,
}
"""Reasons that are counted, by the name of the count."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What was pushed at once; arrays of shape [entries].

    ordinal: the draw of the lane. length: tokens of a document; minus the reason of a draw that
    gave none. position: the draw of the strand; in a lane that merges none, the same as
    ``ordinal``. measures: what functions of the user made of documents, 0 of other entries, shape
    [measures, entries]. skipped: in a lane that merges strands, the draws of the strand right
    before that gave no document, by ``REASONS``, at the first document of each draw, shape
    [reasons, entries]; in another, shape [0, entries]. refs: who they are, where nothing can draw
    them again.
    """

    ordinal: NDArray[np.int64]
    component: NDArray[np.int32]
    length: NDArray[np.int64]
    position: NDArray[np.int64]
    measures: NDArray[np.int64]
    skipped: NDArray[np.int64]
    refs: Refs | None = None

    def __len__(self) -> int:
        return len(self.ordinal)

    @classmethod
    def none(cls, *, measures: int = 0, merged: bool = False, with_refs: bool = False) -> Arrivals:
        """Return no entries."""
        nothing = np.empty(0, np.int64)
        tables = (np.empty((rows, 0), np.int64) for rows in (measures, len(REASONS) * merged))
        refs = Refs.empty() if with_refs else None
        return cls(nothing, np.empty(0, np.int32), nothing, nothing, *tables, refs=refs)

    @classmethod
    def in_order(cls, known: Known, lost: Lost, *, with_refs: bool = False) -> Arrivals:
        """Put the draws of a block that gave no document among its documents.

        Args:
            known: the documents, in the order of their draws.
            lost: the other draws, in any order.
            with_refs: keep references.
        """
        refs, length, measures = known.refs, known.length, known.measures
        if len(lost):
            none = -lost.reason.astype(np.int64)
            measures = np.pad(measures, ((0, 0), (0, len(lost))))
            if not len(refs) and is_ascending(lost.refs.ordinal):
                refs, length = lost.refs, none
            else:
                refs = Refs.concat([refs, lost.refs])
                order = np.argsort(refs.ordinal, kind="stable")
                refs, length = refs.take(order), np.concatenate([length, none])[order]
                measures = measures[:, order]
        ordinal, skipped = refs.ordinal, np.empty((0, len(length)), np.int64)
        kept = refs if with_refs else None
        return cls(ordinal, refs.component, length, ordinal, measures, skipped, kept)

    @classmethod
    def merged(cls, known: Known, skipped: NDArray[np.int64]) -> Arrivals:
        """Make entries of the documents that a merge let arrive."""
        refs = known.refs
        return cls(
            refs.ordinal, refs.component, known.length, known.position, known.measures, skipped
        )

    @classmethod
    def concat(cls, parts: Sequence[Arrivals]) -> Arrivals:
        """Put entries one after another; there is at least one part."""
        refs = [part.refs for part in parts if part.refs is not None]
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts], axis=-1)
                for name in ("ordinal", "component", "length", "position", "measures", "skipped")
            ),
            refs=None if len(refs) < len(parts) else Refs.concat(refs),
        )

    @property
    def is_document(self) -> NDArray[np.bool_]:
        """Say which entries are documents, shape [entries]."""
        return self.length >= 0

    def some(self, keep: NDArray[np.bool_] | slice) -> Arrivals:
        """Return some entries, in order."""
        return Arrivals(
            self.ordinal[keep],
            self.component[keep],
            self.length[keep],
            self.position[keep],
            self.measures[:, keep],
            self.skipped[:, keep],
            None if self.refs is None else _some(self.refs, keep),
        )

    def documents(self) -> Arrivals:
        """Return the entries that are documents."""
        keep = self.is_document
        return self if keep.all() else self.some(keep)


def _some(refs: Refs, keep: NDArray[np.bool_] | slice) -> Refs:
    return refs.slice(keep.start, keep.stop) if isinstance(keep, slice) else refs.take(keep)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a lane has drawn of each component; arrays of shape [components], int64.

    rows: all draws. tokens: of the documents. The others: draws that gave no document, by why.
    """

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]
    filtered: NDArray[np.int64]
    dropped: NDArray[np.int64]
    skipped: NDArray[np.int64]
    quarantined: NDArray[np.int64]
    null: NDArray[np.int64]

    @classmethod
    def none(cls, components: int) -> Counts:
        """Return the counts of a lane that has drawn nothing."""
        return cls(*(np.zeros(components, np.int64) for _ in fields(cls)))

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return iter([getattr(self, field.name) for field in fields(self)])

    def lost(self) -> NDArray[np.int64]:
        """Count the draws that gave no document and are in none, shape [components]."""
        return np.sum([getattr(self, name) for name in _COUNTED], axis=0)

    def bad(self) -> NDArray[np.int64]:
        """Count bad rows that were left out, shape [components]."""
        return self.skipped + self.quarantined

    def renumbered(self, numbers: Renumbering) -> Counts:
        """Return the counts among other components."""
        return Counts(*(numbers.amounts(each) for each in self))

    def plus(self, other: Counts) -> Counts:
        """Add up the counts of two lanes."""
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def after(self, arrivals: Arrivals) -> Counts:
        """Return the counts when these have been drawn, too; all splits of a draw are among them.

        New arrays where they differ.
        """
        component, length, ordinal = arrivals.component, arrivals.length, arrivals.ordinal
        first = np.ones(len(ordinal), np.bool_)
        np.not_equal(ordinal[1:], ordinal[:-1], out=first[1:])
        lost: dict[str, NDArray[np.int64]] = {}
        if not len(arrivals.skipped) and len(length) and (least := int(length.min())) < 0:
            lost = {
                name: getattr(self, name) + self._sums(component[length == -reason])
                for name, reason in _COUNTED.items()
                if reason <= -least
            }
            length = np.maximum(length, 0)
        rows = self.rows + self._sums(component[first])
        tokens = self.tokens + self._sums(component, length)
        counts = replace(self, rows=rows, tokens=tokens, **lost)
        if arrivals.skipped.any():
            before = [self._sums(component, each) for each in arrivals.skipped]
            counts = counts.with_lost(np.array(before))
        return counts

    def with_lost(self, lost: NDArray[np.int64]) -> Counts:
        """Return the counts with more draws that gave no document.

        Args:
            lost: so many by ``REASONS``, shape [reasons, components].
        """
        if not lost.any():
            return self
        more = {
            name: getattr(self, name) + lost[REASONS.index(reason)]
            for name, reason in _COUNTED.items()
        }
        return replace(self, rows=self.rows + lost.sum(axis=0), **more)

    def _sums(
        self, component: NDArray[np.integer], amounts: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Add up amounts, or ones, of each component."""
        width = len(self.rows)
        return np.bincount(component, weights=amounts, minlength=width).astype(np.int64)
