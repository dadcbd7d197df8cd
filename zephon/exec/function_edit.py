"""The state of a lane whose functions changed: what it holds is derived again, policies begin anew.

An edit begins behind the draw that finished the last delivered row. What comes of it is a tick
there: so what follows needs nothing of how things were before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import NotYetError
from zephon.exec.arrivals import Arrivals
from zephon.exec.block import Known
from zephon.exec.carried import EDIT, Carried, added
from zephon.exec.deriving import Reader
from zephon.exec.half_used import half_used
from zephon.exec.history import LaneState, Tick
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain, Units
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.rebuilding import Fates, Undelivered, parts_now, pushed
from zephon.exec.rows import HeldRows
from zephon.exec.segment import Segment
from zephon.work.lane_stream import LaneStream
from zephon.work.token_lane import TokenLane


@dataclass(frozen=True, slots=True)
class Dropped:
    """What an edit dropped of what was held: documents, or rests of such, and their tokens."""

    documents: int
    tokens: int


@dataclass(frozen=True, slots=True)
class FunctionEdit:
    """Makes the states of lanes anew for the steps of now.

    segment, chain, measures: of the first floor. field: the name of the tokens of its rows.
    components: how many the work source has. draws: gives the draws of a lane, or its strands,
    given what its state says of the work source. has_floors: operators of the user that see rows
    in order stand on the first floor.
    """

    segment: Segment
    chain: Chain
    measures: Sequence[str]
    field: str | None
    components: int
    draws: Callable[[int, Any], LaneStream | TokenLane]
    has_floors: bool

    def state(self, lane: int, state: LaneState) -> tuple[LaneState, Dropped]:
        """Make the state of a lane anew."""
        self._refuse(state)
        run = LaneRun(
            lane, self.draws(lane, state.source), self.chain, self.components, state, self.measures
        )
        held = self._undelivered(run, state)
        fates = held.fates()
        merged, new = run.strands is not None, held.derived.known
        used, parts = _numbered(parts_now(self.chain, held, fates), new)
        # The weights of now, whenever a document came: it comes once more.
        documents = HeldRows(lane, int(merged), self.measures, lambda *_: run.weights_now())
        documents.append_unread(new.take(used))
        stages = pushed(self.chain, lane, parts, documents, len(used) - 1)
        tick = Tick(
            ordinal=state.last_draw + 1,
            rows=state.rows,
            stages=stages,
            known=documents.known(_pieces([each.units for each in stages])),
            counts=state.tick.counts.after(state.log) if state.ended else run.counts,
            merge=None if run.strands is None else run.strands.point(),
        )
        now = LaneState(
            rows=state.rows,
            last_draw=state.last_draw,
            tick=tick,
            log=Arrivals.none(measures=len(self.measures), merged=merged),
            source=state.source if merged else run.intakes[0].stream.state_at(tick.ordinal),
            halves=fates.halves,
            carried=self._carried(run, held.known.refs.component, fates),
        )
        gone = int(np.count_nonzero(fates.place < 0))
        return now, Dropped(gone, int(fates.dropped.sum()))

    def _undelivered(self, run: LaneRun, state: LaneState) -> Undelivered:
        """Gather what a lane holds, and make it again."""
        parts = run.undelivered()
        seqs, place = np.unique(_pieces(parts), return_inverse=True)
        known, at, places = run.held.known(seqs), 0, place.reshape(-1)
        numbered = []
        for units in parts:
            numbered.append(replace(units, seq=places[at : at + len(units.seq)]))
            at += len(units.seq)
        _, half = half_used(Units.concat(numbered), known)
        streams = [intake.stream for intake in run.intakes]
        merged = run.strands is not None
        reader = Reader(self.segment, streams, merged, self.field, self.measures)
        derived = reader.derive(known, np.isin(np.arange(len(known)), half))
        return Undelivered(numbered, known, state.halves.by_name(), derived)

    def _refuse(self, state: LaneState) -> None:
        if self.has_floors or state.below is not None:
            raise NotYetError(
                "restore: functions cannot change yet where an operator sees rows in order "
                "(add_op, stateful_transform, or a map behind packing): what it remembers came of "
                "the functions before; restore it with these"
            )
        if len(state.tick.stages) - len(self.chain) not in (0, 1):
            raise NotYetError(
                "restore: functions cannot change yet such that rows are split behind a shuffle "
                "where they were not, or the other way round; leave the splitting as it was"
            )

    def _carried(self, run: LaneRun, component: NDArray[np.int32], fates: Fates) -> Carried:
        """Count what the lane has dropped so far, and what the edit changes."""
        made, gone = (
            np.bincount(component, weights=each, minlength=self.components).astype(np.int64)
            for each in (fates.more, fates.dropped)
        )
        if run.carried is not None:
            made += run.carried.made
        return Carried(made, added(run.dropped_tokens(), {EDIT: gone}), run.dropped_documents())


def made_anew(before: Mapping[int, LaneState], edit: FunctionEdit) -> dict[int, LaneState]:
    """Make the states of lanes anew, and warn of what that drops; this reads what they hold.

    Raises:
        NotYetError: an operator of the user sees rows in order, or the policies are others.
        ZephonError: a held row is bad now, or cannot be read.
    """
    states, documents, tokens = {}, 0, 0
    for lane, state in before.items():
        states[lane], dropped = edit.state(lane, state)
        documents, tokens = documents + dropped.documents, tokens + dropped.tokens
    if documents:
        count = "1 held document" if documents == 1 else f"{documents:,} held documents"
        warnings.warn(
            f"restore: functions changed: {count} of {tokens:,} tokens "
            f"{'is' if documents == 1 else 'are'} gone, or different though delivered in part, and "
            f"{'was' if documents == 1 else 'were'} dropped; accounting() counts them as 'edit'",
            RuntimeWarning,
            stacklevel=2,
        )
    return states


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
