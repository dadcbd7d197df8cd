"""Which component gives a lane's next document, where weights count tokens exactly.

Lane time is tokens merged. A component that has emitted e tokens since the last re-basing starts
its next document of n tokens at A^-1(e) and finishes it at A^-1(e + n), A being its course. Among
components whose start has come, the one with the least finish is next, ties going to the earlier
component. So every prefix of a lane is within one longest document of the target; "whoever is
furthest behind" is not.

A decision needs the next document of every component whose start has come, and of no other: the
merge says which it waits for. It costs about a microsecond a document, whatever their number.

Source: worst-case fair weighted fair queueing (WF2Q). J. C. R. Bennett and H. Zhang, "WF2Q:
Worst-case Fair Weighted Fair Queueing", IEEE INFOCOM 1996.

The file is long because one decision stands here, which must not be cut: what is known of each
strand, the heaps that order them, and when both begin anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.due_documents import NEVER, Queue, StrandDocuments, due_times, first_never
from zephon.exec.policies.merge_point import MergePoint, Merging
from zephon.work.course import Courses

LEAST_BARREN = 1024
"""An endless strand is given up after a whole pass, and at least so many rows, without a token; and
one that has drawn what it must after at least so many rows without a document."""


class TokenMerge:
    """The rule and the ends of one lane; what happens is in ``Merging``.

    Args:
        courses: targets over the lane's tokens.
        lengths: draws of each strand; None: it never ends.
        stops: whether the lane ends when the share of a strand that has ended is due; otherwise
            the component is finished with its last document.
        must_draw: rows that a component has drawn before the lane ends of itself; None: any.
        budgets: tokens with which a component is finished; None: no bound.
    """

    def __init__(
        self,
        courses: Courses,
        *,
        lengths: Sequence[int | None],
        stops: Sequence[bool],
        must_draw: Sequence[int | None],
        budgets: Sequence[float | None],
    ) -> None:
        self._courses = courses
        self._lengths = [NEVER if length is None else length for length in lengths]
        self._stops = list(stops)
        self._must = list(must_draw)
        self._ends_itself = any(must is not None for must in must_draw)
        self._budgets = [math.inf if budget is None else budget for budget in budgets]

    @property
    def endless(self) -> bool:
        """Whether the lane never ends, whatever its documents are."""
        ends = [
            n < NEVER or b < math.inf for n, b in zip(self._lengths, self._budgets, strict=True)
        ]
        stops = any(
            stop and length < NEVER for stop, length in zip(self._stops, self._lengths, strict=True)
        )
        return not (self._ends_itself or stops or all(ends))

    def make_state(self) -> Merging:
        """Return the state before the first document."""
        live = [n > 0 and b > 0 for n, b in zip(self._lengths, self._budgets, strict=True)]
        nothing = np.zeros(len(live), np.int64)
        return self.resume(MergePoint(nothing, nothing, np.array(live, bool)), nothing)

    def resume(self, point: MergePoint, tokens: NDArray[np.int64]) -> Merging:
        """Rebuild the state at a point, given the tokens that each component has emitted."""
        state = Merging(
            queues=[
                Queue(read=drawn, drawn=drawn, before=before)
                for drawn, before in zip(point.position.tolist(), tokens.tolist(), strict=True)
            ],
            live=point.live.copy(),
            base=point.base.copy(),
            began=int(point.base.sum()),
            courses=self._courses,
            time=int(tokens.sum()) - int(point.base.sum()),
        )
        self._start_stretch(state)
        return state

    def point(self, state: Merging) -> MergePoint:
        """Say where a merge stands."""
        drawn = np.array([queue.next_draw for queue in state.queues], np.int64)
        return MergePoint(drawn, state.base, state.live)

    def add(self, state: Merging, strand: int, known: StrandDocuments, read: int) -> None:
        """Learn the next documents of a strand.

        Args:
            state: changed in place.
            strand: whose.
            known: the documents, in order.
            read: draws of the strand that are known with these.
        """
        queue = state.queues[strand]
        queue.drop_merged()
        queue.read = read
        if not len(known.length):
            return
        first = len(queue.lengths)
        emitted = int(queue.ends[-1]) if first else queue.before
        ends = emitted + np.cumsum(known.length)
        queue.position = np.concatenate([queue.position, known.position])
        queue.ends = np.concatenate([queue.ends, ends])
        queue.lengths += known.length.tolist()
        amounts = np.concatenate([[emitted], ends]) - int(state.base[strand])
        starts, finishes = due_times(state.courses, strand, amounts)
        queue.starts[first:] = starts.tolist()
        queue.finishes += finishes[1:].tolist()
        if queue.finish == NEVER:
            found = self._finished_with(strand, emitted, ends, known)
            queue.finish = found if found == NEVER else found + first
        must = self._must[strand]
        open_ = queue.must == queue.beyond == NEVER
        # The first document is asked for even where nothing must be drawn: it may come too late.
        if must is not None and open_ and queue.next_draw < max(must, 1):
            place = int(np.searchsorted(queue.position, must - 1))
            if place < len(queue.lengths):
                exact = int(queue.position[place]) == must - 1
                queue.must, queue.beyond = (place, NEVER) if exact else (NEVER, place)
        queue.flat = first_never(queue.starts)
        queue.look_up()

    def decide(self, state: Merging, most: int) -> list[int]:
        """Choose the components of the next documents.

        Args:
            state: moved on behind these documents.
            most: as many as are wanted.

        Returns:
            One component a document; fewer than wanted where ``wants``, ``ended`` or ``missed``
            says why.
        """
        order: list[int] = []
        state.wants, state.missed = None, False
        while len(order) < most and not (state.ended or state.missed) and state.wants is None:
            live = state.waiting or state.eligible
            if len(state.waiting) + len(state.eligible) == 1:
                self._give_alone(state, live[0][1], most, order)
            else:
                self._give(state, most, order)
        return order

    def roll(self, state: Merging, order: Sequence[int]) -> None:
        """Go along documents that were decided before, and are known, without deciding again."""
        for strand in order:
            queue = state.queues[strand]
            if queue.at == queue.beyond:
                queue.beyond = NEVER
                queue.look_up()
                state.holding.discard(strand)
            state.time += queue.lengths[queue.at]
            queue.at += 1
            if queue.at == queue.stop:
                self._look_up(state, strand)
        if not state.ended:
            self._fill_heaps(state)

    def _give(self, state: Merging, most: int, order: list[int]) -> None:
        """Choose documents until one is missing or something ends."""
        waiting, eligible, queues = state.waiting, state.eligible, state.queues
        time = state.time
        room = most - len(order)
        while room:
            while waiting and (waiting[0][0] <= time or not eligible):
                # Rounding may leave no start that has come: then the least is next.
                start, strand = waiting[0]
                queue = queues[strand]
                if queue.at == queue.beyond and self._passes_made(state, strand):
                    state.time = time
                    return
                if queue.at == len(queue.lengths) or start == math.inf:
                    state.time = time
                    self._miss(state, start, strand)
                    return
                heappop(waiting)
                heappush(eligible, (queue.finishes[queue.at], strand))
            if not eligible:
                state.ended = True
                return
            strand = eligible[0][1]
            queue = queues[strand]
            at = queue.at
            time += queue.lengths[at]
            order.append(strand)
            room -= 1
            at += 1
            queue.at = at
            start = queue.starts[at]
            if at == queue.stop:
                heappop(eligible)
                heappush(waiting, (start, strand))
                state.time = time
                if self._look_up(state, strand):
                    return
            elif start <= time:
                heapreplace(eligible, (queue.finishes[at], strand))
            else:
                heappop(eligible)
                heappush(waiting, (start, strand))
        state.time = time

    def _give_alone(self, state: Merging, strand: int, most: int, order: list[int]) -> None:
        """Choose the only component that is left, as often as it goes."""
        queue = state.queues[strand]
        if queue.at == queue.beyond and self._passes_made(state, strand):
            return
        count = min(queue.stop - queue.at, most - len(order))
        if queue.starts and queue.starts[queue.at] == math.inf:
            state.ended = True
        elif count == 0:
            self._miss(state, 0.0, strand)
        else:
            state.time += sum(queue.lengths[queue.at : queue.at + count])
            queue.at += count
            order += [strand] * count
            if queue.at == queue.stop and self._look_up(state, strand):
                return
            self._fill_heaps(state)

    def _miss(self, state: Merging, start: float, strand: int) -> None:
        """A component is next and its document is not known: wait for it, or it has ended."""
        if start == math.inf:
            state.ended = True
        elif self._passes_made(state, strand):
            pass
        elif state.queues[strand].read < self._lengths[strand]:
            state.wants = strand
        elif self._stops[strand]:
            state.decided[strand] = self._lengths[strand]
            state.ended = True
        else:  # its last rows gave no document
            self._finish_after(state, strand, self._lengths[strand])

    def _passes_made(self, state: Merging, strand: int) -> bool:
        """See whether a strand that is next has drawn what it must; true if that changes things."""
        must, queue = self._must[strand], state.queues[strand]
        if must is None:
            return False
        known = len(queue.lengths) > queue.at
        following = int(queue.position[queue.at]) if known else queue.read
        if following < must:
            return False
        if strand in state.holding:
            state.holding.discard(strand)
            state.decided[strand] = must
            state.ended = self._ends_itself and not state.holding
            if state.ended:
                return True
        if queue.next_draw == 0 and following >= max(LEAST_BARREN, must):
            self._finish_after(state, strand, must)
            return True
        if known:
            queue.beyond = NEVER
            queue.look_up()
        return False

    def _finish_after(self, state: Merging, strand: int, draws: int) -> None:
        """Finish a component whose last draws gave no document."""
        queue = state.queues[strand]
        queue.drop_merged()
        queue.drawn = state.decided[strand] = draws
        state.missed = True
        self._finish(state, strand)

    def _look_up(self, state: Merging, strand: int) -> bool:
        """See what the last document of a strand brought; true if heaps are no longer these."""
        queue = state.queues[strand]
        if queue.at == queue.finish + 1:
            self._finish(state, strand)
            return True
        if queue.at == queue.must + 1:
            queue.must = NEVER
            state.holding.discard(strand)
        if queue.at == queue.flat:
            state.holding.discard(strand)
        queue.look_up()
        state.ended = self._ends_itself and not state.holding
        return state.ended

    def _finish(self, state: Merging, strand: int) -> None:
        """Begin a stretch without a component; its weight goes to the others."""
        state.live = state.live.copy()
        state.live[strand] = False
        state.base = np.array([queue.tokens for queue in state.queues], np.int64)
        state.began, state.time = int(state.base.sum()), 0
        self._start_stretch(state)

    def _start_stretch(self, state: Merging) -> None:
        """Work out due times anew, and what ends the lane from here on."""
        state.courses = self._courses
        if state.began or not state.live.all():
            state.courses = self._courses.rebased(float(state.began), state.live)
        merged = sum(queue.merged + queue.at for queue in state.queues)
        state.stretches.append((merged, state.began, state.courses))
        strands = np.flatnonzero(state.live).tolist()
        for strand in strands:
            state.queues[strand].drop_merged()
        self._work_out(state, strands)
        state.holding = {
            strand
            for strand in strands
            if state.queues[strand].next_draw < (self._must[strand] or 0)
            and state.queues[strand].starts[0] < math.inf
        }
        state.ended = not strands or (self._ends_itself and not state.holding)
        self._fill_heaps(state)

    def _work_out(self, state: Merging, strands: Sequence[int]) -> None:
        """Find the due times of all that is known, at once."""
        if not strands:
            return
        queues = [state.queues[strand] for strand in strands]
        sizes = np.array([len(queue.lengths) + 1 for queue in queues])
        component = np.repeat(np.array(strands), sizes)
        emitted = [part for queue in queues for part in ([queue.before], queue.ends)]
        amounts = np.concatenate(emitted) - state.base[component]
        starts, finishes = due_times(state.courses, component, amounts)
        first = 0
        for queue, size in zip(queues, sizes.tolist(), strict=True):
            queue.starts = starts[first : first + size].tolist()
            queue.finishes = finishes[first + 1 : first + size].tolist()
            queue.flat = first_never(queue.starts)
            queue.look_up()
            first += size

    def _fill_heaps(self, state: Merging) -> None:
        state.eligible = []
        state.waiting = [
            (queue.starts[queue.at], strand)
            for strand, queue in enumerate(state.queues)
            if state.live[strand]
        ]
        heapify(state.waiting)

    def _finished_with(
        self, strand: int, emitted: int, ends: NDArray[np.int64], known: StrandDocuments
    ) -> int:
        """Find the first of some documents with which the component is finished."""
        found = NEVER
        if int(known.position[-1]) == self._lengths[strand] - 1 and not self._stops[strand]:
            found = len(ends) - 1
        if ends[-1] >= self._budgets[strand]:
            found = min(found, int(np.searchsorted(ends, self._budgets[strand])))
        if emitted == 0 and int(ends[0]) == 0 and self._lengths[strand] == NEVER:
            # A strand of empty documents would be next for ever: no token of it ever counts.
            least = max(LEAST_BARREN, self._must[strand] or 0)
            barren = (ends == 0) & (known.pass_index > 0) & (known.position + 1 >= least)
            if barren.any():
                found = min(found, int(barren.argmax()))
        return found
