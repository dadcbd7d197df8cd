"""The strands of a lane whose weights count tokens: what waits in each, and how they are merged.

The decision is ``policies/token_merge.py``; this is what carries it out on documents. All splits of
a row are one document to it, and stay together.

The file is long because what waits, what was lost and what is merged change together, in one class.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.arrivals import REASONS, Arrivals
from zephon.exec.bad_rows import BadRows
from zephon.exec.block import Bad, Block, Known, Lost
from zephon.exec.history import LaneState
from zephon.exec.policies.due_documents import StrandDocuments
from zephon.exec.policies.merge_point import MergePoint
from zephon.exec.policies.token_merge import TokenMerge
from zephon.exec.rows import HeldRows
from zephon.work.course import Courses
from zephon.work.refs import Refs
from zephon.work.token_lane import TokenLane

HORIZON = 1 << 20
"""Tokens ahead for which the share of each strand is asked, to read as much of it."""


def rule_of(lane: TokenLane) -> TokenMerge:
    """Return the rule by which a lane's strands are merged."""
    return TokenMerge(
        lane.courses,
        lengths=[strand.length for strand in lane.strands],
        stops=[at_end == "stop" for at_end in lane.at_end],
        must_draw=lane.must_draw,
        budgets=lane.budgets,
    )


class Strands:
    """The strands of one lane.

    Args:
        lane: its parts.
        held: where merged documents go; those that wait are there too.
        state: where to begin; None: at the beginning of the data.
    """

    def __init__(self, lane: TokenLane, held: HeldRows, state: LaneState | None) -> None:
        self._lane = lane
        self._held = held
        self._rule = rule_of(lane)
        self.endless = self._rule.endless
        if state is None or state.tick.merge is None:
            self.ordinal = 0
            self._state = self._rule.make_state()
        else:
            self.ordinal = state.tick.ordinal
            self._state = self._rule.resume(state.tick.merge, state.tick.counts.tokens)
        self._first_draw = self.ordinal
        self._live = self._state.live
        self._sizes: dict[int, NDArray[np.int64]] = {}  # documents of each waiting draw
        self._lost: dict[int, _LostDraws] = {}  # of each strand that has any
        self._bad: dict[int, BadRows] = {}  # of each strand that has any
        self.bad = BadRows()  # of the lane
        self._failures: dict[int, Exception] = {}
        self._weights: tuple[Courses, NDArray[np.float64]] | None = None

    @property
    def wants(self) -> int | None:
        """The strand whose next document is needed; None where the lane has ended."""
        return self._state.wants

    @property
    def ended(self) -> bool:
        """Whether no document follows."""
        return self._state.ended

    @property
    def missed(self) -> bool:
        """Whether a strand was found to have ended, which no document before tells."""
        return self._state.missed

    @property
    def failure(self) -> Exception | None:
        """What the bad row that is next raises."""
        return None if self.wants is None else self._failures.get(self.wants)

    def live(self) -> list[int]:
        """List the strands that may still give documents."""
        return np.flatnonzero(self._live).tolist()

    def drawn(self, strand: int) -> int:
        """Count the draws of a strand up to its last document that was merged."""
        return self._state.queues[strand].next_draw

    def read_in_vain(self, strand: int) -> int:
        """Count the draws of a strand that were read since its last document, and need not be.

        The merge itself gives up a strand that has made its passes and had no document at all.
        """
        queue, must = self._state.queues[strand], self._lane.must_draw[strand]
        if must is None:
            return queue.read - queue.next_draw
        return queue.read - max(queue.next_draw, must) if queue.next_draw else 0

    def settled(self) -> NDArray[np.int64]:
        """Count the draws without a document that count now, though none of their strand follows.

        So it is where a component is finished, and where the lane ends.

        Returns:
            so many by ``REASONS``, shape [reasons, components]; they are drawn from now on.
        """
        counts = np.zeros((len(REASONS), len(self._live)), np.int64)
        for strand, draws in self._state.decided.items():
            finished = self.ended or not self._state.live[strand]
            if finished and strand in self._lost:
                counts[:, strand] = self._lost[strand].before(np.array([draws]))[:, 0]
        return counts

    def waiting(self, strand: int) -> int:
        """Count the documents of a strand that wait to be merged."""
        queue = self._state.queues[strand]
        return len(queue.lengths) - queue.at

    def point(self) -> MergePoint:
        """Say where the merge stands."""
        return self._rule.point(self._state)

    def shares(self) -> list[float]:
        """Give the share of each strand in what comes next; 0 for a finished component."""
        courses, time = self._state.courses, self._state.time
        if not courses.bends:
            return courses.weights_at(0.0).tolist()
        return ((courses.at(time + HORIZON) - courses.at(time)) / HORIZON).tolist()

    def weights_at(self, draw: int, time: int) -> NDArray[np.float64]:
        """Give the weights in force at a draw, shape [components].

        Args:
            draw: of the lane.
            time: tokens that the lane had merged before it.
        """
        stretches, past = self._state.stretches, draw - self._first_draw
        _, began, courses = stretches[bisect_right(stretches, past, key=lambda s: s[0]) - 1]
        if courses.bends:
            return courses.weights_at(time - began)
        if self._weights is None or self._weights[0] is not courses:
            self._weights = courses, courses.weights_at(0.0)
        return self._weights[1]

    def add(self, strand: int, block: Block, read: int) -> bool:
        """Let the next documents of a strand wait; false where they are not wanted any more.

        Args:
            strand: whose.
            block: the documents.
            read: draws of the strand that are known with these.
        """
        if self.ended or strand in self._failures or not self._live[strand]:
            block.buffer.live -= block.tokens
            return False
        refs = block.refs
        if block.failure is not None:
            self._failures[strand] = block.failure
            read = int(refs.ordinal[-1]) + 1 if len(refs) else self._state.queues[strand].read
        if len(block.lost):
            self._lost.setdefault(strand, _LostDraws()).add(block.lost)
            if block.lost.why:
                if strand not in self._bad:
                    self._bad[strand] = self.bad.of_strand()
                self._bad[strand].add(block.lost.bad())
        known = self._known(strand, refs, np.diff(block.offsets))
        self._held.wait(strand, block)
        self._rule.add(self._state, strand, known, read)
        return True

    def take(self, most: int) -> int | None:
        """Merge up to so many draws; return the arrival number of the first document, or None."""
        began = self._state.began + self._state.time
        order = np.array(self._rule.decide(self._state, most), np.int64)
        first = None
        if len(order):
            ordinals = np.arange(self.ordinal, self.ordinal + len(order))
            self.ordinal += len(order)
            place = np.empty_like(order)
            place[np.argsort(order, kind="stable")] = np.arange(len(order))
            sizes = np.bincount(order)
            strands = np.flatnonzero(sizes)
            counts = list(zip(strands.tolist(), sizes[strands].tolist(), strict=True))
            if self._sizes:
                counts, place, ordinals = self._with_splits(counts, place, ordinals)
            first = self._held.append_merged(counts, place, ordinals, began)
        self._drop_finished()
        return first

    def skipped(self, known: Known) -> NDArray[np.int64]:
        """Count the draws that gave no document before each of some documents; they are drawn now.

        Args:
            known: documents that were merged, in order.

        Returns:
            so many by ``REASONS``, at the first document of each draw, shape [reasons, docs].
        """
        counts = np.zeros((len(REASONS), len(known)), np.int64)
        if self._lost:
            component = known.refs.component
            first = np.diff(known.refs.ordinal, prepend=-1) != 0
            for strand, lost in self._lost.items():
                mine = np.flatnonzero(first & (component == strand))
                if len(mine):
                    counts[:, mine] = lost.before(known.position[mine])
        return counts

    def bad_before(self, known: Known) -> list[tuple[int, Bad]]:
        """Take bad rows before some documents, each with the draw of the lane at which it counts.

        Args:
            known: documents that were merged, in order.
        """
        found: list[tuple[int, Bad]] = []
        for strand, waiting in self._bad.items():
            mine = np.flatnonzero(known.refs.component == strand)
            places = known.position[mine].tolist()
            for draw, place in zip(known.refs.ordinal[mine].tolist(), places, strict=True):
                found += [(draw, bad) for bad in waiting.until(place - 1)]
        return sorted(found, key=lambda each: each[0])

    def bad_settled(self) -> list[tuple[int, Bad]]:
        """Take those that count now, though none of their strand follows; see ``settled``."""
        found = []
        for strand, draws in self._state.decided.items() if self._bad else ():
            finished = self.ended or not self._state.live[strand]
            if finished and strand in self._bad:
                found += [(self.ordinal, bad) for bad in self._bad[strand].until(draws - 1)]
        return found

    def drawn_again(self, state: LaneState) -> Refs:
        """Give the references of a log's documents; splits are not told apart.

        Raises:
            CheckpointError: a strand draws fewer rows now.
        """
        log, firsts = state.log, self.point().position.tolist()
        parts, places = [], []
        for strand in np.unique(log.component).tolist():
            mine = np.flatnonzero(log.component == strand)
            position, first = log.position[mine], firsts[strand]
            draws = self._lane.strands[strand].draw(first, int(position[-1]) - first + 1)
            places_of = position - first
            if int(places_of.min()) < 0 or int(places_of.max()) >= len(draws):
                raise CheckpointError(
                    f"restore: lane {self._held.lane} draws other rows of component {strand} than "
                    f"when the checkpoint was taken, from its draw {first} on; a work source must "
                    "repeat itself, or restore all of its state"
                )
            parts.append(draws.take(places_of))
            places.append(mine)
        back = np.empty(len(log.ordinal), np.int64)
        back[np.concatenate(places)] = np.arange(len(back))
        return replace(Refs.concat(parts).take(back), ordinal=log.ordinal)

    def roll(self, log: Arrivals, refs: Refs) -> None:
        """Go along the documents of a log."""
        begins = np.flatnonzero(np.diff(log.ordinal, prepend=-1))
        length = np.add.reduceat(log.length, begins)
        component, position = log.component[begins], log.position[begins]
        for strand in np.unique(component).tolist():
            mine = component == strand
            known = StrandDocuments(position[mine], length[mine], refs.pass_index[begins[mine]])
            self._rule.add(self._state, strand, known, int(position[mine][-1]) + 1)
        self._rule.roll(self._state, component.tolist())
        self.ordinal += len(begins)
        self._live = self._state.live

    def _known(self, strand: int, refs: Refs, lengths: NDArray[np.int64]) -> StrandDocuments:
        """Join the splits of each row into one document."""
        if refs.last_child.all():
            if strand in self._sizes:
                self._add_sizes(strand, np.ones(len(refs), np.int64))
            return StrandDocuments(refs.ordinal, lengths, refs.pass_index)
        stops = np.flatnonzero(refs.last_child) + 1
        sizes = np.diff(stops, prepend=0)
        if strand not in self._sizes:
            queue = self._state.queues[strand]
            self._sizes[strand] = np.ones(len(queue.lengths) - queue.at, np.int64)
        self._add_sizes(strand, sizes)
        begins = stops - sizes
        return StrandDocuments(
            refs.ordinal[begins], np.add.reduceat(lengths, begins), refs.pass_index[begins]
        )

    def _add_sizes(self, strand: int, sizes: NDArray[np.int64]) -> None:
        self._sizes[strand] = np.concatenate([self._sizes[strand], sizes])

    def _with_splits(
        self, counts: list[tuple[int, int]], place: NDArray[np.int64], ordinals: NDArray[np.int64]
    ) -> tuple[list[tuple[int, int]], NDArray[np.int64], NDArray[np.int64]]:
        """Turn numbers and places of draws into those of documents."""
        found, documents = [], []
        for strand, draws in counts:
            sizes = self._sizes.get(strand)
            if sizes is None:
                taken = np.ones(draws, np.int64)
            else:
                taken, self._sizes[strand] = sizes[:draws], sizes[draws:]
            found.append(taken)
            documents.append((strand, int(taken.sum())))
        sizes = np.concatenate(found)
        begins, wide = (np.cumsum(sizes) - sizes)[place], sizes[place]
        shift = begins - (np.cumsum(wide) - wide)
        order = np.repeat(shift, wide) + np.arange(int(wide.sum()))
        return documents, order, np.repeat(ordinals, wide)

    def _drop_finished(self) -> None:
        """Let go of what was read of components that are finished, and at the end of the rest."""
        live = self._state.live
        if self.ended:
            live = np.zeros_like(live)
        if live is not self._live:
            for strand in np.flatnonzero(self._live & ~live).tolist():
                self._held.drop_waiting(strand)
            self._live = live


class _LostDraws:
    """The draws of a strand that gave no document and do not count as drawn yet, in order."""

    def __init__(self) -> None:
        self._position = np.empty(0, np.int64)
        self._reason = np.empty(0, np.int8)

    def add(self, lost: Lost) -> None:
        """Add draws that come after all others; in any order."""
        order = np.argsort(lost.refs.ordinal)
        self._position = np.concatenate([self._position, lost.refs.ordinal[order]])
        self._reason = np.concatenate([self._reason, lost.reason[order]])

    def before(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count those before each of some draws, by reason, and forget them."""
        stops = np.searchsorted(self._position, positions)
        last = int(stops[-1])
        counts = []
        for reason in REASONS:
            total = np.concatenate([[0], np.cumsum(self._reason[:last] == reason)])
            counts.append(np.diff(total[stops], prepend=0))
        self._position, self._reason = self._position[last:], self._reason[last:]
        return np.array(counts, np.int64)
