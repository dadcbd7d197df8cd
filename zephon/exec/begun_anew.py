"""The state of a lane whose policies begin anew with what is left of what it held.

It comes of an edit behind the draw that finished the last delivered row. What comes of that is a
tick there: so what follows needs nothing of how things were before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Arrivals
from zephon.exec.block import Known
from zephon.exec.carried import EDIT, Carried, added
from zephon.exec.history import LaneState, Tick
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain, Units
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.rebuilding import Fates, Undelivered, parts_now, pushed
from zephon.exec.renumbering import Renumbering
from zephon.exec.rows import HeldRows


@dataclass(frozen=True, slots=True)
class Dropped:
    """What an edit dropped of what was held: documents, or rests of such, and their tokens."""

    documents: int = 0
    tokens: int = 0

    def __add__(self, other: Dropped) -> Dropped:
        return Dropped(self.documents + other.documents, self.tokens + other.tokens)

    def told(self, what: str) -> str:
        """Write a warning for people, of held documents of which ``what`` happened."""
        one = self.documents == 1
        count = "1 held document" if one else f"{self.documents:,} held documents"
        are, were = ("is", "was") if one else ("are", "were")
        return (
            f"{count} of {self.tokens:,} tokens {are} {what}, and {were} dropped; accounting() "
            "counts them as 'edit'"
        )


def undelivered_of(run: LaneRun) -> tuple[list[Units], Known]:
    """Give what a lane holds: what each policy does, and last the finished rows; and of what."""
    parts = run.undelivered()
    seqs, place = np.unique(_pieces(parts), return_inverse=True)
    places = np.split(place.reshape(-1), np.cumsum([len(units.seq) for units in parts])[:-1])
    numbered = [replace(u, seq=seq) for u, seq in zip(parts, places, strict=True)]
    return numbered, run.held.known(seqs)


@dataclass(frozen=True, slots=True)
class Anew:
    """Makes the states of lanes.

    chain: the policies of now. measures: what functions of the user make of each row. numbers: of
    components then, and now.
    """

    chain: Chain
    measures: Sequence[str]
    numbers: Renumbering

    def state(
        self,
        run: LaneRun,
        state: LaneState,
        held: Undelivered,
        weights: NDArray[np.float64] | None,
    ) -> tuple[LaneState, Dropped]:
        """Make the state of a lane anew.

        Args:
            run: the lane where the edit stands, among the components of then.
            state: its state there.
            held: what it holds; what that is now, among the components of now.
            weights: in force now, shape [components of now]; None: unknown.
        """
        fates, merged, new = held.fates(), run.strands is not None, held.derived.known
        used, parts = _numbered(parts_now(self.chain, held, fates), new)
        # The weights of now, whenever a document came: it comes once more.
        documents = HeldRows(run.lane, int(merged), self.measures, lambda *_: weights)
        documents.append_unread(new.take(used))
        stages = pushed(self.chain, run.lane, parts, documents, len(used) - 1)
        counts = state.tick.counts.after(state.log) if state.ended else run.counts
        tick = Tick(
            ordinal=state.last_draw + 1,
            rows=state.rows,
            stages=stages,
            known=documents.known(_pieces([each.units for each in stages])),
            counts=counts.renumbered(self.numbers),
            merge=None if run.strands is None else run.strands.point().renumbered(self.numbers),
        )
        now = LaneState(
            rows=state.rows,
            last_draw=state.last_draw,
            tick=tick,
            log=Arrivals.none(measures=len(self.measures), merged=merged),
            source=state.source if merged else run.intakes[0].stream.state_at(tick.ordinal),
            halves=fates.halves,
            carried=_carried(run, held.known, fates).renumbered(self.numbers),
        )
        gone = int(np.count_nonzero(fates.place < 0))
        return now, Dropped(gone, int(fates.dropped.sum()))


def _carried(run: LaneRun, known: Known, fates: Fates) -> Carried:
    """Count what a lane has dropped so far, and what the edit changes."""
    made, gone = (
        np.bincount(known.refs.component, weights=each, minlength=len(run.counts.rows)).astype(
            np.int64
        )
        for each in (fates.more, fates.dropped)
    )
    if run.carried is not None:
        made += run.carried.made
    return Carried(made, added(run.dropped_tokens(), {EDIT: gone}), run.dropped_documents())


def _pieces(parts: Sequence[Units]) -> NDArray[np.int64]:
    """List the document of each piece, part after part."""
    return np.concatenate([NO_INTS, *(units.seq for units in parts)])


def _numbered(parts: Sequence[Units], known: Known) -> tuple[NDArray[np.int64], list[Units]]:
    """Number the documents of some units anew, in the order of the lane; list them."""
    used, refs = np.unique(_pieces(parts)), known.refs
    used = used[np.lexsort((refs.child[used], refs.ordinal[used]))]
    number = np.zeros(len(known), np.int64)
    number[used] = np.arange(len(used))
    return used, [replace(units, seq=number[units.seq]) for units in parts]
