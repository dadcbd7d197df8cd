"""One lane while it runs: draws go in, blocks come back in order, the policy makes rows of them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.history import TICK, Arrivals, Counts, LaneHistory, LaneState, Tick
from zephon.exec.policies.policy import Pieces, Placements, Policy
from zephon.exec.rows import Block, HeldRows
from zephon.work.refs import Refs
from zephon.work.source import LaneStream


class LaneRun:
    """A lane's cursor, held documents, policy state, and finished rows.

    next_draw: the next draw to hand to a task. rows_placed: rows finished. rows_taken: rows handed
    to the assembler. tokens_waiting: tokens of documents that no row has taken. ended: every draw
    has been pushed. rows_drawn, tokens_made: per component, shape [components], int64. The history
    is guarded by ``lock``: the caller's thread reads it while the pump's thread writes.
    """

    def __init__(
        self,
        lane: int,
        stream: LaneStream,
        policy: Policy,
        components: int,
        state: LaneState | None = None,
    ) -> None:
        self.lane = lane
        self.stream = stream
        self.held = HeldRows(lane)
        self.next_draw = 0
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

    def push(self, block: Block) -> None:
        """Let the policy place a block's documents; later draws than these are not touched."""
        first_seq = self.held.append(block)
        lengths = block.offsets[1:] - block.offsets[:-1]
        self.tokens_waiting += block.tokens
        self._push(block.refs, lengths, first_seq)
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

    def _push(self, refs: Refs, lengths: NDArray[np.int64], first_seq: int) -> None:
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
            with self.lock:
                self.history.add(
                    Arrivals(ordinals[at:stop], component, group), first_seq + at, placed
                )
            if len(placed):
                self._placed.append(placed)
                self.rows_placed += len(placed)
            at = stop

    def _tick(self, ordinal: int) -> Tick:
        self._next_tick = ordinal + TICK
        held = self._policy.held(self._state)
        return Tick(
            ordinal=ordinal,
            rows=self.rows_placed,
            held=held,
            held_refs=self.held.refs(held.seq),
            held_lengths=self.held.lengths(held.seq),
            counts=Counts(self.rows_drawn.copy(), self.tokens_made.copy()),
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
        tick = state.tick
        _, firsts, where = np.unique(tick.held.seq, return_index=True, return_inverse=True)
        self.held.append_unread(tick.held_refs.take(firsts), tick.held_lengths[firsts])
        self._state = self._policy.resume(
            Pieces(seq=where.astype(np.int64), start=tick.held.start, length=tick.held.length)
        )
        self.rows_drawn = tick.counts.rows.copy()
        self.tokens_made = tick.counts.tokens.copy()
        self.rows_placed = tick.rows
        self.history = LaneHistory(self._tick(tick.ordinal))
        self.tokens_waiting = int(tick.held.length.sum())
        drawn = self._drawn_again(state)
        first_seq = self.held.append_unread(drawn, state.log.length)
        self.tokens_waiting += int(state.log.length.sum())
        self._push(drawn, state.log.length, first_seq)
        self.next_draw = state.last_draw + 1 if state.rows else tick.ordinal
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
        if not len(ordinals):
            return Refs.empty()
        first = state.tick.ordinal
        draws = self.stream.draw(first, int(ordinals[-1]) - first + 1)
        refs = draws.take(ordinals - first)
        starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
        sizes = np.diff(starts, append=len(ordinals))
        child = np.arange(len(ordinals)) - np.repeat(starts, sizes)
        last = np.zeros(len(ordinals), bool)
        last[starts + sizes - 1] = True
        return replace(refs, child=child.astype(np.int32), last_child=last)
