"""What stands between two floors of a lane: an operator of the user that sees its rows in order.

The lane below finishes rows; the operator gets them as records, 64 at a time; what it gives runs
through the segment of the floor above and is pushed into the lane above. There a group is a draw.
The operator's memory is begun anew every few groups, or written down: so that each interval between
can be run again from the references of its rows, whenever a document that came of it is wanted.

The file is long because what is replayed must be what ran: both stand here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError, DataError
from zephon.exec.block import Block, Lost
from zephon.exec.entry import Entry, StoppedAt
from zephon.exec.finished_rows import Placed
from zephon.exec.group_stream import GroupStream
from zephon.exec.history import Below, LaneHistory, LaneState
from zephon.exec.kept_rows import Interval, KeptRows
from zephon.exec.lane_run import LaneRun
from zephon.exec.ledger import Account, Ledger
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.relay_rows import records_of_rows
from zephon.exec.reread import places_in, unread_of
from zephon.exec.rows import HeldRows
from zephon.planner.logical.custom import GROUP
from zephon.types import SampleRecord

_FEWEST = 8  # intervals that are kept before anybody looks whether they are needed

ReadAgain = Callable[[HeldRows, NDArray[np.int64]], None]
"""Gives unread documents of a lane their tokens."""


@dataclass(slots=True)
class _Lane:
    """Documents that are read for a replay."""

    lane: int
    held: HeldRows


class Relay:
    """An operator of the user in one lane, between the lane ``lower`` and the one above.

    groups: what the lane above draws from. ledger: what became of the rows of the lane below.

    Args:
        entry: the operator, and what surrounds it.
        lower: the lane below, where ``state`` says.
        read_lower: reads documents of that lane again.
        state: of the lane above; None: at the beginning of the data.
    """

    def __init__(
        self, entry: Entry, lower: LaneRun, read_lower: ReadAgain, state: LaneState | None
    ) -> None:
        self.lower = lower
        self.groups = GroupStream()
        self._entry = entry
        self._read_lower = read_lower
        self._span = entry.span
        self._next = 0  # the group that the operator gets next
        self._memory: Any = None  # of the operator; None: it is to be begun, or made again
        self._final: int | None = None  # the last group of the lane, once the operator has had it
        self._rows = 0  # of the lane below, once that is so
        self._intervals: dict[int, Interval] = {}
        self._most = _FEWEST  # intervals kept before they are looked through
        rows = entry.rows
        below = None if state is None else state.below
        account = Account.none(len(rows.component_id)) if below is None else below.account
        carried = entry.carries_tokens
        self.ledger = Ledger(rows.component_of, rows.component_id, account, counts_tokens=carried)
        if state is not None and state.below is not None:
            self._restore(state, state.below)

    def advance(self, upper: LaneRun) -> bool:
        """Let the operator have the next group, or the end; false if the lane below has neither."""
        lower = self.lower
        if upper.ended or upper.failure is not None:
            return False
        ready = lower.rows_placed - lower.rows_taken
        last = ready < GROUP
        failure = None
        if last and not lower.ended:
            if lower.advance():
                return True
            failure = lower.failure
            if failure is None or not ready or not self._entry.step.row_by_row:
                return False
            last = False
        if last and (self._final is not None or not (ready or self._entry.remembers(self._next))):
            upper.end()
            upper.release()
            return True
        try:
            block = self._relayed(upper.lane, min(ready, GROUP), last)
        except Exception as exc:  # raised when the lane above needs more than it has
            upper.failure = exc
            return True
        failure = failure if block.failure is None else block.failure
        if failure is None:
            upper.push(block, draws=1)
        elif len(block.refs):
            upper.push(replace(block, failure=failure, lost=Lost.none()), draws=1)
        else:
            upper.failure = failure
        return True

    def read_again(self, held: HeldRows, seqs: NDArray[np.int64]) -> None:
        """Give the unread among these documents of the lane above their tokens.

        All of an interval that are unread are read with them, since all of it is run again.

        Args:
            held: holds the documents.
            seqs: arrival numbers, in any order, any number of times.

        Raises:
            CheckpointError: the operator gives other records than when the checkpoint was taken.
        """
        wanted = unread_of(held, seqs)
        if not len(wanted):
            return
        spans = np.unique(held.known(wanted).refs.ordinal // self._span)
        unread = held.unread_seqs()
        unread = unread[np.isin(held.known(unread).refs.ordinal // self._span, spans)]
        refs, lengths = held.known(unread).refs, held.lengths(unread)
        for span in spans.tolist():
            last = int(refs.ordinal[refs.ordinal // self._span == span].max())
            for group, records in self._replayed(self._kept(span), last):
                mine = np.flatnonzero(refs.ordinal == group)
                if not len(mine):
                    continue
                block = self._entry.block(held.lane, group, records)
                if block.failure is not None:
                    raise block.failure
                found = places_in(block, refs.take(mine), lengths[mine])
                if found is None:
                    raise CheckpointError(
                        f"restore: {self._entry.step.label} gives other records in lane "
                        f"{held.lane} than when the checkpoint was taken; the data changed under "
                        "it, or it gives another result each time: restore it with the data and "
                        "the functions it was taken with"
                    )
                held.fill(unread[mine], block, found)

    def state_at(self, state: LaneState, also: NDArray[np.int64], *, at_end: bool = False) -> Below:
        """Say what lies under the lane above.

        Args:
            state: of that lane.
            also: groups whose documents will be wanted besides those that ``state`` names.
            at_end: both lanes have ended, whether or not a last group came of it.
        """
        following = state.last_draw + 1
        rows, final = self.rows_until(state.last_draw)
        if state.tick.stages:
            drawn = [state.tick.known.refs.ordinal, state.log.documents().ordinal]
        else:  # every document is a row, and those of draws before are delivered
            drawn = [np.array([state.last_draw] if following else [], np.int64)]
        lasts: dict[int, int] = {}
        for group in np.unique(np.concatenate([*drawn, also])).tolist():
            lasts[group // self._span] = group
        if not final and self._entry.remembers(following):
            lasts[following // self._span] = state.last_draw
        found = [self._intervals[span].until(lasts[span] + 1) for span in sorted(lasts)]
        with self.lower.lock.read():
            lower = self.lower.state_at(rows, _documents(found), at_end=final or at_end)
        weights = self.groups.weights(state.tick.ordinal, following)
        account = self.ledger.at(state.last_draw)
        return Below(lower, tuple(found), final, weights, account)

    def rows_until(self, last_draw: int) -> tuple[int, bool]:
        """Count the rows below up to a draw of the lane above, and say whether none follows."""
        final = self._final is not None and self._final == last_draw
        return self._rows if final else (last_draw + 1) * GROUP, final

    def forget_before(self, history: LaneHistory, rows: int, also: NDArray[np.int64]) -> None:
        """Drop what no state of the lane above at ``rows`` rows or later needs.

        Args:
            history: of that lane, from which the same was dropped.
            rows: of that lane.
            also: groups whose documents are needed besides.
        """
        following = history.finished_by(rows) + 1
        self.ledger.forget_before(following - 1)
        if len(self._intervals) > self._most:
            spans = np.concatenate([history.documents(), also, [following]]) // self._span
            needed, first = set(spans.tolist()), following // self._span
            for span in [s for s in self._intervals if s < first and s not in needed]:
                del self._intervals[span]
            self._most = 2 * len(self._intervals) + _FEWEST
        below = self.lower
        final = self._final is not None and following > self._final
        kept = list(self._intervals.values()) if below.below is not None else []
        with below.lock:
            below.forget_before(self._rows if final else following * GROUP, _documents(kept))

    def _relayed(self, lane: int, count: int, last: bool) -> Block:
        """Push the next rows of the lane below into the operator; return what comes of them."""
        entry, lower, group = self._entry, self.lower, self._next
        memory = self._made_again() if self._memory is None else self._memory
        placed = lower.take(count)
        for part in placed:
            self._read_lower(lower.held, part.rows.seq)
        records, failure = self._records(placed)
        kept = [KeptRows.of(part.rows, lower.held.known(part.rows.seq)) for part in placed]
        interval = self._intervals.setdefault(group // self._span, Interval(group))
        interval.add(KeptRows.concat(kept))
        if placed:
            self.groups.add(group, lower.weights_at(*placed[-1].marks[-1].tolist()))
        else:
            self.groups.add_like_last(group)
        lower.pass_row(lower.rows_taken, entry.assembler.tokens_field, self._read_lower_now)
        lower.release()
        try:
            self._memory, made = entry.take(memory, group, records, last=last)
        except StoppedAt as exc:
            made, failure = exc.made, exc.error
        if failure is not None:
            block = entry.block(lane, group, made)
            return block if block.failure is not None else replace(block, failure=failure)
        self._next = group + 1
        if last:
            self._final, self._rows = group, lower.rows_taken
        elif not entry.every and self._next % self._span == 0:
            saved = entry.step.snapshot(self._memory)
            self._intervals[self._next // self._span] = Interval(self._next, saved)
        block, left = entry.through(lane, group, made)
        if block.failure is None:
            flushed = last or entry.flushes(group + 1)
            came, metas = ([r.meta for r in each] for each in (records, made))
            lost = self.ledger.add(group, came, metas, left, flushed=flushed)
            if lost and not entry.step.gives_all_back:
                entry.step.warn_of_kept(lost)
        return block

    def _read_lower_now(self, seqs: NDArray[np.int64]) -> None:
        self._read_lower(self.lower.held, seqs)

    def _records(self, placed: Sequence[Placed]) -> tuple[list[SampleRecord], Exception | None]:
        """Make records of rows; of those before the first that cannot be decoded, and its error."""
        assembler, lower = self._entry.assembler, self.lower
        try:
            return records_of_rows(assembler, lower, placed), None
        except DataError:
            if not self._entry.step.row_by_row:
                raise
        records: list[SampleRecord] = []
        try:
            for part in placed:
                for at in range(len(part)):
                    records += records_of_rows(assembler, lower, [part.some(at, at + 1)])
        except DataError as exc:
            return records, exc
        return records, None

    def _taken(
        self, memory: Any, group: int, records: list[SampleRecord], *, last: bool
    ) -> tuple[Any, list[SampleRecord]]:
        """Let the operator have a group that it had before."""
        try:
            return self._entry.take(memory, group, records, last=last)
        except StoppedAt as exc:
            raise exc.error from exc.error.__cause__

    def _made_again(self) -> Any:
        """Give the operator's memory before the next group."""
        entry, lane = self._entry, self.lower.lane
        if not entry.remembers(self._next):
            return entry.begin(lane, None)
        interval = self._kept(self._next // self._span)
        memory = entry.begin(lane, interval.snapshot)
        for group, records in enumerate(self._records_again(interval.groups()), interval.first):
            memory, _ = self._taken(memory, group, records, last=False)
        return memory

    def _replayed(self, interval: Interval, last: int) -> Iterator[tuple[int, list[SampleRecord]]]:
        """Run the operator again; yield the number of each group and what came of it."""
        memory = self._entry.begin(self.lower.lane, interval.snapshot)
        groups = interval.until(last + 1).groups()
        try:
            for group, records in enumerate(self._records_again(groups), interval.first):
                final = group == self._final
                memory, made = self._taken(memory, group, records, last=final)
                yield group, made
        finally:
            if memory is not None:
                self._entry.step.discard(memory)

    def _records_again(self, groups: Sequence[KeptRows]) -> Iterator[list[SampleRecord]]:
        """Read the rows of groups again; yield the records of each."""
        if not groups:
            return
        rows = KeptRows.concat(groups).distinct()
        merged = self.lower.strands is not None
        lane = _Lane(self.lower.lane, HeldRows(self.lower.lane, strands=int(merged)))
        lane.held.append_unread(rows.known)
        self._read_lower(lane.held, np.arange(len(rows.known)))
        at = 0
        for group in groups:
            units = rows.units.rows(at, at + len(group))
            at += len(group)
            placed = [Placed(units, np.zeros((len(units), 2), np.int64))]
            yield records_of_rows(self._entry.assembler, lane, placed)

    def _kept(self, span: int) -> Interval:
        if span not in self._intervals:
            raise CheckpointError(
                f"restore: lane {self.lower.lane} of the checkpoint does not say which rows "
                f"{self._entry.step.label} had; it is damaged, restore an earlier one"
            )
        return self._intervals[span]

    def _restore(self, state: LaneState, below: Below) -> None:
        self._next = state.last_draw + 1
        self._intervals = {each.first // self._span: each for each in below.intervals}
        if below.final:
            self._final, self._rows = state.last_draw, below.lane.rows
        elif self._entry.remembers(self._next):
            under_way = self._kept(self._next // self._span)
            if under_way.first + len(under_way) != self._next:
                raise CheckpointError(
                    f"restore: lane {self.lower.lane} of the checkpoint does not say all that "
                    f"{self._entry.step.label} had; it is damaged, restore an earlier one"
                )
        if below.weights is not None:
            for number, weights in enumerate(below.weights, state.tick.ordinal):
                self.groups.add(number, weights)


def _documents(intervals: Sequence[Interval]) -> NDArray[np.int64]:
    return np.concatenate([NO_INTS, *(interval.documents() for interval in intervals)])
