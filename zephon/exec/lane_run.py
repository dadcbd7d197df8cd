"""One lane while it runs: draws go in, blocks come back in order, policies make rows of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.block import Block, Known
from zephon.exec.finished_rows import FinishedRows, Placed
from zephon.exec.history import TICK, Arrivals, Counts, LaneHistory, LaneState, Tick
from zephon.exec.intake import Intake
from zephon.exec.policies import AT_END, NO_UNITS, Chain, Held, Units
from zephon.exec.policies.chain import States
from zephon.exec.rows import HeldRows
from zephon.exec.strands import Strands
from zephon.work.refs import Refs
from zephon.work.source import LaneStream
from zephon.work.token_lane import TokenLane

_MOST_DEAD = 1 << 22
"""Tokens that may be dead before they are let go of, while no row is finished."""


class LaneRun:
    """A lane's intakes, held documents, states of policies, and finished rows.

    rows_placed: rows finished. rows_taken: rows handed to the assembler. ended: every draw has been
    pushed. rows_drawn, tokens_made: per component, shape [components], int64. The history is
    guarded by ``lock``: the caller's thread reads it while the pump's thread writes.

    Args:
        lane: which.
        draws: the lane's draws, or the strands that are merged by tokens.
        chain: makes rows.
        components: how many the work source has.
        measures: names of what functions of the user make of each row.
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
    ) -> None:
        self.lane = lane
        streams = draws.strands if isinstance(draws, TokenLane) else (draws,)
        self.intakes = [Intake(stream) for stream in streams]
        strands = len(streams) if isinstance(draws, TokenLane) else 0
        self.held = HeldRows(lane, strands, measures, self.weights_at)
        self.strands = Strands(draws, self.held, state) if isinstance(draws, TokenLane) else None
        self.rows_placed = 0
        self.rows_taken = 0
        self.ended = False
        self.failure: Exception | None = None
        self.lock = threading.Lock()
        self._chain = chain
        self._states = chain.make_state(lane)
        self._finished = FinishedRows()
        self._last_mark = np.zeros((1, 2), np.int64)
        self._staying = 0  # tokens that policies held at the last release
        self._moved = 0  # tokens of rows taken since then, and of documents pushed
        self._idle = 0  # documents pushed since a row was finished
        self.tokens_made = np.zeros(components, np.int64)
        self.rows_drawn = np.zeros(components, np.int64)
        if state is None:
            self.history = LaneHistory(self._tick(0))
        else:
            self._restore(state)
        if self.strands is not None:
            self._merge(self.strands)

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
        if self.strands is not None:
            return self.strands.endless
        return self.intakes[0].stream.length is None

    def push(self, block: Block, intake: int = 0, draws: int | None = None) -> None:
        """Let policies place a block's documents, once they are next in the lane.

        Args:
            block: made of the draws that follow those pushed before to this intake.
            intake: which.
            draws: how many; None: as many as it has rows.
        """
        entry = self.intakes[intake]
        entry.read += int(block.refs.last_child.sum()) if draws is None else draws
        if self.strands is not None:
            if self.strands.add(intake, block, entry.read):
                entry.tokens += block.tokens
                if self.wants == intake:
                    self._merge(self.strands)
            return
        first_seq = self.held.append(block)
        self._push(self.held.known_from(first_seq), first_seq)
        if block.failure is not None:
            self.failure = block.failure

    def end(self) -> None:
        """Tell the policies that no draw follows."""
        self.ended = True
        rows = self._chain.finish(self._states, self.held)
        with self.lock:
            self.history.end(len(rows))
        self._place(rows)

    def take(self, count: int) -> list[Placed]:
        """Hand out the next ``count`` finished rows, in order."""
        before = self._finished.tokens
        taken = self._finished.take(count)
        self.rows_taken += count
        self._moved += before - self._finished.tokens
        return taken

    def release(self) -> None:
        """Let go of documents that no untaken row and no policy needs.

        Not each time where policies hold much: to look at all of that costs more than it frees.
        """
        if 4 * self._moved < self._staying:
            return
        leaving = [units.seq for units in self._finished.units()]
        self._staying, self._moved = self.held.release(leaving, self._held_seqs()), 0

    def is_barren(self, rows: int) -> bool:
        """Say whether documents go into this lane and no row will ever come out.

        Args:
            rows: of all datasets. The lane has seen each of its own twice since a row was
                finished, and policies keep hardly any of them.
        """
        return self._idle > 2 * rows and 4 * len(self._held_seqs()) < self._idle

    def tokens_of(self, first: int, stop: int) -> int:
        """Count tokens of finished rows [first, stop), none of which was taken yet."""
        return self._finished.tokens_of(first - self.rows_taken, stop - self.rows_taken)

    def placed_tokens(self) -> NDArray[np.int64]:
        """Count tokens of finished rows that were not taken, per component."""
        return self._tokens(self._finished.units())

    def held_tokens(self) -> NDArray[np.int64]:
        """Count tokens that are in no finished row, per component."""
        return self._tokens([held.units for held in self._chain.held(self._states)])

    def dropped_tokens(self) -> Mapping[str, NDArray[np.int64]]:
        """Count tokens that policies threw away, by reason and component."""
        return self._chain.dropped(self._states)

    def dropped_documents(self) -> int:
        """Count documents that policies threw away."""
        return self._chain.dropped_documents(self._states)

    def _tokens(self, parts: Sequence[Units]) -> NDArray[np.int64]:
        units = Units.concat(parts)
        return self._by_component(self.held.components(units.seq), units.length)

    def _by_component(
        self, component: NDArray[np.integer], lengths: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        width = len(self.rows_drawn)
        return np.bincount(component, weights=lengths, minlength=width).astype(np.int64)

    def _held_seqs(self) -> NDArray[np.int64]:
        held = [part.units.seq for part in self._chain.held(self._states)]
        return np.concatenate([*held, NO_UNITS.seq])

    def weights_at(self, draw: int, time: int) -> NDArray[np.float64] | None:
        """Give the weights in force when a document came, shape [components]; None: unknown."""
        if self.strands is not None:
            return self.strands.weights_at(draw, time)
        return self.intakes[0].stream.weights_at(draw)

    def state_at(self, rows: int) -> LaneState:
        """Return the lane's state when ``rows`` rows of it are delivered."""
        state = self.history.state_at(rows)
        if self.strands is not None:
            return state
        return replace(state, source=self.intakes[0].stream.state_at(state.tick.ordinal))

    def forget_before(self, rows: int) -> None:
        """Drop what no state at ``rows`` or later needs."""
        self.history.forget_before(rows)
        if self.strands is None:
            self.intakes[0].stream.forget_before(self.history.oldest)

    def _merge(self, strands: Strands) -> None:
        """Give the policy what the merge can decide now."""
        while True:
            if strands.ordinal >= self._next_tick:
                self._add_tick(self._next_tick)
            first_seq = strands.take(self._next_tick - strands.ordinal)
            if first_seq is not None:
                self._push(self.held.known_from(first_seq), first_seq)
            if strands.missed:  # a log, which holds documents alone, must not go across this
                self._add_tick(strands.ordinal)
            elif first_seq is None:
                break
        self.failure = strands.failure

    def _push(self, known: Known, first_seq: int) -> None:
        """Push documents in groups that end at ticks, and remember both."""
        ordinals = known.refs.ordinal
        at = 0
        while at < len(ordinals):
            boundary = (int(ordinals[at]) // TICK + 1) * TICK
            stop = at + int(np.searchsorted(ordinals[at:], boundary))
            if int(ordinals[at]) >= self._next_tick:
                self._add_tick(boundary - TICK)
            seqs = np.arange(first_seq + at, first_seq + stop)
            lengths, component = known.length[at:stop], known.refs.component[at:stop]
            rows = self._chain.push(self._states, Units.whole(seqs, lengths, seqs), self.held)
            last = known.refs.last_child[at:stop]
            self.rows_drawn += np.bincount(component[last], minlength=len(self.rows_drawn))
            self.tokens_made += self._by_component(component, lengths)
            arrivals = Arrivals(
                ordinal=ordinals[at:stop],
                component=component,
                length=lengths,
                position=known.position[at:stop],
                measures=known.measures[:, at:stop],
            )
            with self.lock:
                self.history.add(arrivals, ordinals[rows.trigger - first_seq])
            self._last_mark = self.held.marks(seqs[-1:])
            self._place(rows)
            self._idle = 0 if len(rows) else self._idle + len(seqs)
            self._moved += int(lengths.sum()) + len(seqs)
            at = stop
        if self._idle and self._moved > _MOST_DEAD:  # nobody takes rows, and so nobody releases
            self.release()

    def _place(self, rows: Units) -> None:
        if not len(rows):
            return
        by_end = rows.trigger == AT_END
        if by_end.any():
            marks = np.repeat(self._last_mark, len(rows), axis=0)
        else:
            marks = self.held.marks(rows.trigger)
        self._finished.add(Placed(rows, marks))
        self.rows_placed += len(rows)

    def _add_tick(self, ordinal: int) -> None:
        tick = self._tick(ordinal)
        with self.lock:
            self.history.add_tick(tick)

    def _tick(self, ordinal: int) -> Tick:
        stages = self._chain.held(self._states)
        seqs = np.concatenate([*(held.units.seq for held in stages), NO_UNITS.seq])
        # As many draws as pieces are held: so a tick costs a draw one copy at most, ticks are
        # never much more than what is held, and a log is not longer than a tick is large.
        self._next_tick = (ordinal // TICK + max(1, -(-len(seqs) // TICK))) * TICK
        return Tick(
            ordinal=ordinal,
            rows=self.rows_placed,
            stages=stages,
            known=self.held.known(seqs),
            counts=Counts(self.rows_drawn.copy(), self.tokens_made.copy()),
            merge=None if self.strands is None else self.strands.point(),
        )

    def _restore(self, state: LaneState) -> None:
        """Roll the policy from the tick to the last delivered row; reads no data."""
        tick, log = state.tick, state.log
        seqs = np.concatenate([*(held.units.seq for held in tick.stages), NO_UNITS.seq])
        _, firsts, where = np.unique(seqs, return_index=True, return_inverse=True)
        self.held.append_unread(tick.known.take(firsts))
        self._states = self._resumed(tick.stages, where.astype(np.int64))
        self.rows_drawn = tick.counts.rows.copy()
        self.tokens_made = tick.counts.tokens.copy()
        self.rows_placed = tick.rows
        if (tick.merge is None) != (self.strands is None):
            raise CheckpointError(
                f"restore: lane {self.lane} of the checkpoint must say where its components are "
                "exactly where they are merged by tokens; it is damaged, restore an earlier one"
            )
        self.history = LaneHistory(self._tick(tick.ordinal))
        if len(log.ordinal):
            drawn = self._drawn_again(state)
            began = int(tick.counts.tokens.sum())
            times = began + np.cumsum(log.length) - log.length
            known = Known(drawn, log.length, log.position, log.measures)
            self._push(known, self.held.append_unread(known, times))
        self._set_intakes(state)
        self.rows_taken = tick.rows
        if state.ended:
            self.end()
        if self.rows_placed < state.rows:
            raise CheckpointError(
                f"restore: lane {self.lane} has {self.rows_placed} rows at draw "
                f"{state.last_draw}, the checkpoint says {state.rows}; it is damaged"
            )
        self.take(state.rows - tick.rows)

    def _resumed(self, stages: Sequence[Held], seqs: NDArray[np.int64]) -> States:
        """Rebuild the states of policies whose documents have these arrival numbers now."""
        found, at = [], 0
        for held in stages:
            units, stop = held.units, at + len(held.units.seq)
            units = Units(units.splits, seqs[at:stop], units.start, units.length, units.trigger)
            found.append(Held(units, held.numbers))
            at = stop
        try:
            return self._chain.resume(self.lane, found, self.held)
        except (KeyError, IndexError, ValueError) as exc:
            raise CheckpointError(
                f"restore: lane {self.lane} of the checkpoint does not fit the steps of this "
                f"pipeline: {exc}; it is damaged, restore an earlier one"
            ) from exc

    def _drawn_again(self, state: LaneState) -> Refs:
        """Return the references of the log's documents; splits of one draw are its children."""
        ordinals = state.log.ordinal
        if self.strands is not None:
            refs = self.strands.drawn_again(state)
            self.strands.roll(state.log, refs)
        else:
            refs = self._same_draws(state)
        starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
        sizes = np.diff(starts, append=len(ordinals))
        child = np.arange(len(ordinals)) - np.repeat(starts, sizes)
        last = np.zeros(len(ordinals), bool)
        last[starts + sizes - 1] = True
        return replace(refs, child=child.astype(np.int32), last_child=last)

    def _same_draws(self, state: LaneState) -> Refs:
        """Return the draws of the log's documents; refuses a source that draws others now."""
        first, ordinals = state.tick.ordinal, state.log.ordinal
        stream, count = self.intakes[0].stream, int(ordinals[-1]) - first + 1
        draws = stream.draw(first, count)
        if len(draws) < count and stream.failure is not None:
            raise stream.failure
        if len(draws) == count:
            refs = draws.take(ordinals - first)
            if np.array_equal(refs.component, state.log.component):
                return refs
        raise CheckpointError(
            f"restore: lane {self.lane} draws other rows than when the checkpoint was taken, from "
            f"draw {first} on; a work source must repeat itself, or restore all of its state"
        )

    def _set_intakes(self, state: LaneState) -> None:
        """Let intakes go on after what is drawn; what was read beyond is read again."""
        if self.strands is None:
            (intake,) = self.intakes
            intake.next_draw = state.last_draw + 1 if state.rows else state.tick.ordinal
            intake.read = intake.next_draw
            return
        drawn = self.strands.point().position.tolist()
        for intake, position, tokens in zip(
            self.intakes, drawn, self.tokens_made.tolist(), strict=True
        ):
            intake.next_draw = intake.read = position
            intake.tokens = tokens
