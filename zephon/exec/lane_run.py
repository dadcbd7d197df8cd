"""One lane while it runs: draws go in, blocks come back in order, the policy makes rows of them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.history import TICK, Arrivals, Counts, LaneHistory, LaneState, Tick
from zephon.exec.policies.policy import Pieces, Placements, Policy
from zephon.exec.rows import Block, HeldRows
from zephon.exec.strands import Strands
from zephon.work.refs import Refs
from zephon.work.source import LaneStream
from zephon.work.token_lane import TokenLane


@dataclass(slots=True)
class Intake:
    """The way into a lane: of all its draws, or of those of one strand.

    next_draw: the next draw to hand to a task. read, tokens: draws that have come back, and tokens
    of their documents.
    """

    stream: LaneStream
    next_draw: int = 0
    read: int = 0
    tokens: int = 0

    @property
    def left(self) -> int | None:
        """Draws to hand to tasks; None: nobody knows how many."""
        length = self.stream.length
        return None if length is None else max(length - self.next_draw, 0)


class LaneRun:
    """A lane's intakes, held documents, policy state, and finished rows.

    rows_placed: rows finished. rows_taken: rows handed to the assembler. tokens_waiting: tokens of
    documents in the lane's order that no row has taken. ended: every draw has been pushed.
    rows_drawn, tokens_made: per component, shape [components], int64. The history is guarded by
    ``lock``: the caller's thread reads it while the pump's thread writes.

    Args:
        lane: which.
        draws: the lane's draws, or the strands that are merged by tokens.
        policy: makes rows.
        components: how many the work source has.
        state: where to begin; None: at the beginning of the data.
    """

    def __init__(
        self,
        lane: int,
        draws: LaneStream | TokenLane,
        policy: Policy,
        components: int,
        state: LaneState | None = None,
    ) -> None:
        self.lane = lane
        streams = draws.strands if isinstance(draws, TokenLane) else (draws,)
        self.intakes = [Intake(stream) for stream in streams]
        self.held = HeldRows(lane, len(streams) if isinstance(draws, TokenLane) else 0)
        self.strands = Strands(draws, self.held, state) if isinstance(draws, TokenLane) else None
        self.rows_placed = 0
        self.rows_taken = 0
        self.tokens_waiting = 0
        self.ended = False
        self.failure: Exception | None = None
        self.lock = threading.Lock()
        self._policy = policy
        self._state = policy.make_state()
        self._placed: deque[Placements] = deque()
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
    def endless(self) -> bool:
        """Whether the lane never ends."""
        if self.strands is not None:
            return self.strands.endless
        return self.intakes[0].stream.length is None

    def push(self, block: Block, intake: int = 0, draws: int | None = None) -> None:
        """Let the policy place a block's documents, once they are next in the lane.

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
        lengths = block.offsets[1:] - block.offsets[:-1]
        self.tokens_waiting += block.tokens
        self._push(block.refs, lengths, block.refs.ordinal, first_seq)
        if block.failure is not None:
            self.failure = block.failure

    def end(self) -> None:
        """Tell the policy that no draw follows."""
        self.ended = True
        placed = self._policy.finish(self._state)
        if len(placed):
            self._placed.append(placed)
            self.rows_placed += len(placed)

    def take(self, count: int) -> list[Placements]:
        """Hand out the next ``count`` finished rows, in order."""
        taken = []
        self.rows_taken += count
        while count:
            rows = self._placed.popleft()
            if len(rows) > count:
                self._placed.appendleft(rows.rows(count, len(rows)))
                rows = rows.rows(0, count)
            count -= len(rows)
            self.tokens_waiting -= int(rows.length.sum())
            taken.append(rows)
        return taken

    def release(self) -> None:
        """Let go of documents that no untaken row and no policy needs."""
        waiting = [rows.seq for rows in self._placed]
        needed = [s for s in (*waiting, self._policy.held(self._state).seq) if len(s)]
        first = min((int(s.min()) for s in needed), default=self.held.next_seq)
        self.held.release_before(first)

    def tokens_of(self, first: int, stop: int) -> int:
        """Count tokens of finished rows [first, stop), none of which was taken yet."""
        tokens, at = 0, self.rows_taken
        for placed in self._placed:
            a, b = max(first - at, 0), min(stop - at, len(placed))
            if a < b:
                tokens += int(placed.length[placed.row_splits[a] : placed.row_splits[b]].sum())
            at += len(placed)
            if at >= stop:
                break
        return tokens

    def tokens_placed(self) -> NDArray[np.int64]:
        """Count tokens of finished rows that were not taken, per component."""
        return sum(map(self._tokens, self._placed), np.zeros_like(self.tokens_made))

    def tokens_held(self) -> NDArray[np.int64]:
        """Count tokens that are in no finished row, per component."""
        return self._tokens(self._policy.held(self._state))

    def _tokens(self, pieces: Placements | Pieces) -> NDArray[np.int64]:
        component = self.held.refs(pieces.seq).component
        width = len(self.tokens_made)
        return np.bincount(component, weights=pieces.length, minlength=width).astype(np.int64)

    def marks(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Say when documents came, for ``weights_at``; shape [docs, 2], int64."""
        return self.held.marks(seqs)

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
                with self.lock:
                    self.history.add_tick(self._tick(self._next_tick))
            first_seq = strands.take(self._next_tick - strands.ordinal)
            if first_seq is not None:
                seqs = np.arange(first_seq, self.held.next_seq)
                lengths = self.held.lengths(seqs)
                self.tokens_waiting += int(lengths.sum())
                self._push(self.held.refs(seqs), lengths, self.held.positions(seqs), first_seq)
            if strands.missed:  # a log, which holds documents alone, must not go across this
                with self.lock:
                    self.history.add_tick(self._tick(strands.ordinal))
            elif first_seq is None:
                break
        self.failure = strands.failure

    def _push(
        self,
        refs: Refs,
        lengths: NDArray[np.int64],
        positions: NDArray[np.int64],
        first_seq: int,
    ) -> None:
        """Push documents in groups that end at ticks, and remember both."""
        ordinals = refs.ordinal
        at = 0
        while at < len(ordinals):
            boundary = (int(ordinals[at]) // TICK + 1) * TICK
            stop = at + int(np.searchsorted(ordinals[at:], boundary))
            if int(ordinals[at]) >= self._next_tick:
                with self.lock:
                    self.history.add_tick(self._tick(boundary - TICK))
            group = lengths[at:stop]
            placed = self._policy.push(self._state, first_seq + at, group)
            component = refs.component[at:stop]
            self._count(component, group, refs.last_child[at:stop])
            arrivals = Arrivals(ordinals[at:stop], component, group, positions[at:stop])
            with self.lock:
                self.history.add(arrivals, first_seq + at, placed)
            if len(placed):
                self._placed.append(placed)
                self.rows_placed += len(placed)
            at = stop

    def _tick(self, ordinal: int) -> Tick:
        self._next_tick = (ordinal // TICK + 1) * TICK
        held = self._policy.held(self._state)
        return Tick(
            ordinal=ordinal,
            rows=self.rows_placed,
            held=held,
            held_refs=self.held.refs(held.seq),
            held_lengths=self.held.lengths(held.seq),
            held_positions=self.held.positions(held.seq),
            counts=Counts(self.rows_drawn.copy(), self.tokens_made.copy()),
            merge=None if self.strands is None else self.strands.point(),
        )

    def _count(
        self, component: NDArray[np.int32], lengths: NDArray[np.int64], last: NDArray[np.bool_]
    ) -> None:
        width = len(self.rows_drawn)
        self.rows_drawn += np.bincount(component[last], minlength=width)
        self.tokens_made += np.bincount(component, weights=lengths, minlength=width).astype(
            np.int64
        )

    def _restore(self, state: LaneState) -> None:
        """Roll the policy from the tick to the last delivered row; reads no data."""
        tick, log = state.tick, state.log
        _, firsts, where = np.unique(tick.held.seq, return_index=True, return_inverse=True)
        self.held.append_unread(
            tick.held_refs.take(firsts), tick.held_lengths[firsts], tick.held_positions[firsts]
        )
        self._state = self._policy.resume(
            Pieces(seq=where.astype(np.int64), start=tick.held.start, length=tick.held.length)
        )
        self.rows_drawn = tick.counts.rows.copy()
        self.tokens_made = tick.counts.tokens.copy()
        self.rows_placed = tick.rows
        if (tick.merge is None) != (self.strands is None):
            raise CheckpointError(
                f"restore: lane {self.lane} of the checkpoint must say where its components are "
                "exactly where they are merged by tokens; it is damaged, restore an earlier one"
            )
        self.history = LaneHistory(self._tick(tick.ordinal))
        self.tokens_waiting = int(tick.held.length.sum())
        if len(log.ordinal):
            drawn = self._drawn_again(state)
            began = int(tick.counts.tokens.sum())
            times = began + np.cumsum(log.length) - log.length
            first_seq = self.held.append_unread(drawn, log.length, log.position, times)
            self.tokens_waiting += int(log.length.sum())
            self._push(drawn, log.length, log.position, first_seq)
        self._set_intakes(state)
        self.rows_taken = tick.rows
        if self.rows_placed < state.rows:
            raise CheckpointError(
                f"restore: lane {self.lane} has {self.rows_placed} rows at draw "
                f"{state.last_draw}, the checkpoint says {state.rows}; it is damaged"
            )
        self.take(state.rows - tick.rows)

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
