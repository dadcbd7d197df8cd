"""One lane while it runs: draws go in, blocks come back in order, policies make rows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.exec import restoring
from zephon.exec.arrivals import Arrivals, Counts
from zephon.exec.bad_rows import BadRows
from zephon.exec.block import Block
from zephon.exec.carried import added
from zephon.exec.feed import Feed
from zephon.exec.finished_rows import FinishedRows, Placed
from zephon.exec.half_used import NO_HALVES, HalfUsed
from zephon.exec.history import TICK, LaneHistory, LaneState, Tick, next_tick
from zephon.exec.history_lock import HistoryLock
from zephon.exec.intake import Intake
from zephon.exec.policies import AT_END, NO_UNITS, Chain, Held, Units
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.rows import HeldRows
from zephon.exec.strands import Strands
from zephon.planner.logical.custom import GROUP
from zephon.work.source import LaneStream
from zephon.work.token_lane import TokenLane

Draws = NDArray[np.int64]
_MOST_DEAD = 1 << 22
"""Tokens that may be dead before they are let go of, while no row is finished."""


class LaneRun:
    """A lane's intakes, held documents, states of policies, and finished rows.

    rows_placed: rows finished. rows_taken: rows handed to the assembler. ended: every draw has been
    pushed. counts: what was drawn. idle: documents pushed since a row was finished. lost: draws
    since the last that gave a document. The history is guarded by ``lock``: the caller's thread
    reads it while the pump's thread writes.

    Args:
        lane: which.
        draws: the lane's draws, or the strands that are merged by tokens.
        chain: makes rows.
        components: how many the work source has.
        measures: names of what functions of the user make of each row.
        below: the operator of the user that feeds the lane; each of its groups is a draw.
        state: where to begin; None: at the beginning of the data.
    """

    def __init__(
        self,
        lane: int,
        draws: LaneStream | TokenLane,
        chain: Chain,
        components: int,
        state: LaneState | None = None,
        measures: Sequence[str] = (),
        below: Feed | None = None,
    ) -> None:
        self.lane = lane
        self.below = below
        streams = draws.strands if isinstance(draws, TokenLane) else (draws,)
        self.intakes = [Intake(stream) for stream in streams]
        strands = len(streams) if isinstance(draws, TokenLane) else 0
        self.held = HeldRows(lane, strands, measures, self.weights_at)
        self.strands = Strands(draws, self.held, state) if isinstance(draws, TokenLane) else None
        self.rows_placed = self.rows_taken = 0
        self.ended = False
        self.failure: Exception | None = None
        self.bad = BadRows() if self.strands is None else self.strands.bad
        self.lock = HistoryLock()
        self._chain = chain
        self._states = chain.make_state(lane)
        self._finished = FinishedRows()
        self._last_mark = np.zeros((1, 2), np.int64)
        # Tokens that policies held at the last release; of rows taken since, and documents pushed.
        self._staying = self._moved = 0
        self.idle = self.lost = 0
        self.counts = Counts.none(components)
        self.carried = None if state is None else state.carried
        self._halves = HalfUsed({}, {}) if chain.cuts else None
        if state is None:
            self.history = LaneHistory(self._tick(0))
        else:
            self._restore(state)
        if self.strands is not None and not self.ended:
            self._merge(self.strands)

    @property
    def bottom(self) -> LaneRun:
        """The lane that draws from the work source: this one, or what it stands on."""
        return self if self.below is None else self.below.lower.bottom

    def floors(self) -> Iterator[LaneRun]:
        """Yield this lane and those under it, down to the bottom."""
        yield self
        if self.below is not None:
            yield from self.below.lower.floors()

    def advance(self) -> bool:
        """Let an operator of the user have a group of rows that is there; false: none is."""
        return self.below is not None and self.below.advance(self)

    @property
    def wants(self) -> int | None:
        """The intake whose next document the lane needs; None if no document follows."""
        if self.ended:
            return None
        if self.strands is not None:
            return self.strands.wants
        intake = self.intakes[0]
        length = intake.stream.length
        if length is None or intake.read < length:
            return 0
        if self.failure is None:
            self.failure = intake.stream.failure
        return None

    @property
    def tokens_placed(self) -> int:
        """Tokens of finished rows that were not taken."""
        return self._finished.tokens

    @property
    def endless(self) -> bool:
        """Whether the lane never ends."""
        run = self.bottom
        if run.strands is not None:
            return run.strands.endless
        return run.intakes[0].stream.length is None

    def push(self, block: Block, intake: int = 0, draws: int | None = None) -> None:
        """Let policies place a block's documents, once they are next in the lane.

        Args:
            block: made of the draws that follow those pushed before to this intake.
            intake, draws: which; how many, None: as many as it tells of.
        """
        entry = self.intakes[intake]
        entry.read += block.draws if draws is None else draws
        if self.strands is not None:
            if self.strands.add(intake, block, entry.read):
                entry.tokens += block.tokens
                if self.wants == intake:
                    self._merge(self.strands)
            return
        if block.failure is not None and self.below is not None and len(block.refs):
            with self.lock:
                self.history.stop_at(int(block.refs.ordinal[-1]))
        if block.lost.why:
            self.bad.add(block.lost.bad())
        first_seq = self.held.append(block)
        known, with_refs = self.held.known_from(first_seq), self.below is not None
        arrivals = Arrivals.in_order(known, block.lost, with_refs=with_refs)
        self._push(arrivals, first_seq)
        if block.failure is not None:
            self.failure = block.failure

    def end(self) -> None:
        """Tell the policies that no draw follows."""
        self.ended = True
        rows = self._chain.finish(self._states, self.held)
        with self.lock:
            self.history.end(len(rows), None if self.strands is None else self.counts)
        self._place(rows)

    def take(self, count: int) -> list[Placed]:
        """Hand out the next ``count`` finished rows, in order."""
        before = self._finished.tokens
        taken = self._finished.take(count)
        self.rows_taken += count
        self._moved += before - self._finished.tokens
        return taken

    def pass_row(self, rows: int, field: str | None, read: Callable[[Draws], None]) -> None:
        """Let a state stand behind so many rows; see ``HalfUsed.pass_row``."""
        if self._halves and field is not None:
            self._halves.pass_row(rows, self.held, self.lock, field, read)

    def release(self) -> None:
        """Let go of documents that no untaken row and no policy needs.

        Not each time where policies hold much: to look at all of that costs more than it frees.
        """
        if 4 * self._moved < self._staying:
            return
        leaving = [units.seq for units in self._finished.units()]
        self._staying, self._moved = self.held.release(leaving, self._held_seqs()), 0

    def held_documents(self) -> int:
        """Count the documents, or pieces of them, that policies hold."""
        return len(self._held_seqs())

    def tokens_of(self, first: int, stop: int) -> int:
        """Count tokens of finished rows [first, stop), none of which was taken yet."""
        return self._finished.tokens_of(first - self.rows_taken, stop - self.rows_taken)

    def placed_tokens(self, *, noted: bool = False) -> NDArray[np.int64]:
        """Count tokens of finished rows that were not taken, per component; or those noted."""
        return self._tokens(self._finished.units(), noted)

    def held_tokens(self, *, noted: bool = False) -> NDArray[np.int64]:
        """Count tokens that are in no finished row, per component; or those noted of documents."""
        return self._tokens([held.units for held in self._chain.held(self._states)], noted)

    def dropped_tokens(self) -> Mapping[str, NDArray[np.int64]]:
        """Count tokens that this floor threw away, by reason and component."""
        dropped = self._chain.dropped(self._states)
        return dropped if self.carried is None else added(self.carried.dropped, dropped)

    def dropped_documents(self) -> int:
        """Count documents that this floor threw away."""
        before = 0 if self.carried is None else self.carried.documents
        return before + self._chain.dropped_documents(self._states)

    def undelivered(self) -> list[Units]:
        """List what was not taken: what each policy holds, and last the finished rows."""
        held = [held.units for held in self._chain.held(self._states)]
        return [*held, Units.concat(self._finished.units())]

    def _tokens(self, parts: Sequence[Units], noted: bool) -> NDArray[np.int64]:
        units, width = Units.concat(parts), len(self.counts.rows)
        if noted:
            return self.held.known(np.unique(units.seq)).measures[-width:].sum(axis=1)
        component = self.held.components(units.seq)
        return np.bincount(component, weights=units.length, minlength=width).astype(np.int64)

    def _held_seqs(self) -> NDArray[np.int64]:
        held = [part.units.seq for part in self._chain.held(self._states)]
        return np.concatenate([*held, NO_UNITS.seq])

    def weights_at(self, draw: int, time: int) -> NDArray[np.float64] | None:
        """Give the weights in force when a document came, shape [components]; None: unknown."""
        if self.strands is not None:
            return self.strands.weights_at(draw, time)
        return self.intakes[0].stream.weights_at(draw)

    def weights_now(self) -> NDArray[np.float64] | None:
        """Give the weights in force at the last document that came, shape [components]."""
        return self.weights_at(*self._last_mark[-1].tolist())

    def state_at(self, rows: int, also: Draws = NO_INTS, *, at_end: bool = False) -> LaneState:
        """Return the lane's state when ``rows`` rows of it are delivered.

        Args:
            rows: how many; whoever asks from another thread holds ``lock``.
            also: draws whose documents will be wanted besides.
            at_end: as in ``LaneHistory.state_at``; the lane has ended.
        """
        state = self._told(self.history.state_at(rows, at_end=at_end))
        if self.below is not None:
            return replace(state, below=self.below.state_at(state, also, at_end=at_end))
        if self.strands is not None:
            return state
        return replace(state, source=self.intakes[0].stream.state_at(state.tick.ordinal))

    def standing(self) -> LaneState:
        """Return the state of a lane that was restored and has drawn nothing since, all in a tick.

        Rows that are finished and not taken are in it, too; its log is empty.
        """
        ready = Units.concat(self._finished.units())
        return self._told(self._tick(self.history.next_draw, ready).alone(self.rows_taken))

    def _told(self, state: LaneState) -> LaneState:
        halves = NO_HALVES if self._halves is None else self._halves.at(state.rows)
        return replace(state, halves=halves, carried=self.carried)

    def forget_before(self, rows: int, also: Draws = NO_INTS) -> None:
        """Drop what no state at ``rows`` or later needs; ``also`` as in ``state_at``."""
        self.history.forget_before(rows)
        if self._halves is not None:
            self._halves.forget_before(rows)
        if self.below is not None:
            self.below.forget_before(self.history, rows, also)
        if self.strands is None:
            self.intakes[0].stream.forget_before(self.history.oldest)

    def _merge(self, strands: Strands) -> None:
        """Give the policy what the merge can decide now."""
        while True:
            if strands.ordinal >= self._next_tick:
                self._add_tick(self._next_tick)
            first_seq = strands.take(self._next_tick - strands.ordinal)
            if first_seq is not None:
                known = self.held.known_from(first_seq)
                self._push(Arrivals.merged(known, strands.skipped(known)), first_seq)
                self.bad.add(strands.bad_before(known))
            self.counts = self.counts.with_lost(strands.settled())
            self.bad.add(strands.bad_settled())
            if strands.missed:  # a log, which holds documents alone, must not go across this
                self._add_tick(strands.ordinal)
            elif first_seq is None:
                break
        self.failure = strands.failure

    def _push(self, arrivals: Arrivals, first_seq: int) -> None:
        """Push documents in groups that end at ticks, and remember all that came.

        Args:
            arrivals: entries of consecutive draws.
            first_seq: arrival number of the first document among them.
        """
        ordinals, tick = arrivals.ordinal, self._tick_draws
        at = 0
        while at < len(ordinals):
            boundary = (int(ordinals[at]) // tick + 1) * tick
            stop = at + int(np.searchsorted(ordinals[at:], boundary))
            if int(ordinals[at]) >= self._next_tick:
                self._add_tick(boundary - tick)
            group = arrivals.some(slice(at, stop))
            self.counts = self.counts.after(group)
            first_seq = self._push_group(group, first_seq)
            at = stop
        if self.idle and self._moved > _MOST_DEAD:  # nobody takes rows, and so nobody releases
            self.release()

    def _push_group(self, group: Arrivals, first_seq: int) -> int:
        """Push the documents of a group; return the arrival number behind them."""
        documents = group.documents()
        lengths, count = documents.length, len(documents)
        seqs = np.arange(first_seq, first_seq + count)
        rows = self._chain.push(self._states, Units.whole(seqs, lengths, seqs), self.held)
        with self.lock:
            self.history.add(group, documents.ordinal[rows.trigger - first_seq])
        if self.strands is None:
            self._last_mark = np.full((1, 2), group.ordinal[-1])
        else:
            self._last_mark = self.held.marks(seqs[-1:])
        self._place(rows)
        self.idle = 0 if len(rows) else self.idle + count
        self.lost = len(group) - count if count else self.lost + len(group)
        self._moved += int(lengths.sum()) + count
        return first_seq + count

    def _place(self, rows: Units) -> None:
        if not len(rows):
            return
        by_end = rows.trigger == AT_END
        if by_end.any():
            marks = np.repeat(self._last_mark, len(rows), axis=0)
        else:
            marks = self.held.marks(rows.trigger)
        self._finished.add(Placed(rows, marks))
        if self._halves is not None:
            self._halves.place(self.rows_placed, rows, self.held)
        self.rows_placed += len(rows)

    @property
    def _tick_draws(self) -> int:
        """Draws from one tick to the next: a group of rows is as much as its rows."""
        return TICK if self.below is None else max(1, TICK // GROUP)

    def _add_tick(self, ordinal: int) -> None:
        tick = self._tick(ordinal)
        with self.lock:
            self.history.add_tick(tick)

    def _tick(self, ordinal: int, ready: Units = NO_UNITS) -> Tick:
        stages = self._chain.held(self._states)
        if len(ready):
            stages = (*stages, Held(ready))
        seqs = np.concatenate([*(held.units.seq for held in stages), NO_UNITS.seq])
        self._next_tick = next_tick(ordinal, len(seqs), self._tick_draws)
        return Tick(
            ordinal=ordinal,
            rows=self.rows_placed,
            stages=stages,
            known=self.held.known(seqs),
            counts=self.counts,
            merge=None if self.strands is None else self.strands.point(),
        )

    def _restore(self, state: LaneState) -> None:
        """Roll the policy from the tick to the last delivered row; reads no data."""
        tick, log = state.tick, state.log
        self._states, ready = restoring.resumed(self._chain, tick, self.held)
        self.counts, self.rows_placed, self.rows_taken = tick.counts, tick.rows, tick.rows
        merges = self.strands is not None
        restoring.refuse_other_kind(self.lane, state, fed=self.below is not None, merges=merges)
        self.history = LaneHistory(self._tick(tick.ordinal, ready), state.rows, len(ready))
        draw = tick.ordinal if merges else max(tick.ordinal - 1, 0)
        self._last_mark = np.array([[draw, int(tick.counts.tokens.sum()) if merges else draw]])
        self._place(ready.let_go(np.full(len(ready), AT_END)))
        if len(log):
            draws = self.intakes[0].stream if self.strands is None else self.strands
            known, times = restoring.documents_again(self.lane, state, draws)
            with restoring.fitting(self.lane):
                self._push(log, self.held.append_unread(known, times))
        restoring.set_intakes(self.intakes, self.strands, self.counts.tokens, state)
        if state.ended:
            self.counts = state.counts()
            with restoring.fitting(self.lane):
                self.end()
        restoring.refuse_missing_rows(self.lane, state, self.rows_placed)
        self.take(min(state.rows, self.rows_placed) - tick.rows)
        self._halves = restoring.halves_again(self._chain, state, self.undelivered(), self.held)
