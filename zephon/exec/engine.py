"""Runs a plan: draws → segments on workers → a policy a lane → assembler → bounded queue.

``Engine._groups`` is the whole machine in one loop. Everything a caller can see depends on lanes
and rows; threads, task sizes and queue depths only change when it comes.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from zephon.errors import ExecutionError, ZephonError
from zephon.exec import endings
from zephon.exec.ahead import Ahead
from zephon.exec.assemble import ASSEMBLED_BYTES, Assembler
from zephon.exec.closing import close_all
from zephon.exec.delivery import Group, Position, Together, few_at_first, steps, turns
from zephon.exec.ends import Ends, ending_together
from zephon.exec.entries import token_floor
from zephon.exec.entry import Entry
from zephon.exec.gathering import Gathering
from zephon.exec.handed_out import HandedOut
from zephon.exec.history import LaneState
from zephon.exec.known_ends import can_end, known_steps, length_of
from zephon.exec.lane_run import LaneRun
from zephon.exec.lanes import WHOLE, Topology
from zephon.exec.limit import all_out, at_most
from zephon.exec.morsel import TOKENS
from zephon.exec.run_settings import Identity, Settings
from zephon.exec.runners import Runner
from zephon.exec.shares import shared_out
from zephon.exec.supply import Supply, task_bytes_for
from zephon.exec.towers import Ground, build_lane
from zephon.exec.weights import WeightsInForce
from zephon.types import BatchRows
from zephon.work.lane_stream import LaneStream
from zephon.work.token_lane import TokenLane

LOOKAHEAD_BYTES = 32 << 20


class Engine:
    """One run of one plan on one rank, from a position to the end of its data.

    Args:
        identity: what this run is; a checkpoint carries it.
        topology: which rows of which lanes this rank delivers.
        streams: gives a lane's draws, or its strands, given the lane and what a checkpoint says of
            the work source there.
        ground: makes documents of draws, and rows of documents.
        entries: what stands on that, where operators of the user see rows in order; lowest first.
        assembler: makes batches of rows.
        make_runner: makes what runs tasks; called when the run begins.
        release: lets go of what the segment keeps between tasks; called when the run ends.
        settings: sizes and switches.
        handed_out: does what there is to do about bad rows.
        components: the names of the work source's components, then of those that are gone.
        gone: how many of these there are.
        start: what was handed out before.
        states: each lane's state there; None at the beginning of the data.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        topology: Topology,
        streams: Callable[[int, Any], LaneStream | TokenLane],
        ground: Ground,
        entries: Sequence[Entry] = (),
        assembler: Assembler,
        make_runner: Callable[[], Runner],
        release: Callable[[], None],
        settings: Settings,
        handed_out: HandedOut,
        components: Sequence[str],
        gone: int = 0,
        start: Position,
        states: Mapping[int, LaneState] | None,
    ) -> None:
        self.identity = identity
        self.topology = topology
        self._streams = streams
        self._ground = ground
        self._entries = tuple(entries)
        self._assembler = assembler
        self._make_runner = make_runner
        self._release = release
        self._settings = settings
        self._handed_out = handed_out
        self.components = tuple(components)
        self.start = self._delivered = start
        self._lock = threading.RLock()  # a handler of signals may ask in the middle of asking
        self.lanes = {
            lane: self.lane_at(lane, (states or {}).get(lane)) for lane in topology.own_lanes()
        }
        for run in self.lanes.values():
            run.bottom.bad.early = handed_out.write
        # Ranks that have ended need not have ended together.
        self._at_end = {n: each.rows for n, each in (states or {}).items()} if start.ended else {}
        self.last_step = None
        if settings.keeps_rows:
            self.last_step = known_steps(topology, self._draws_of)
        self.finished = start.ended or self.cut_short
        self.token_floor = token_floor(assembler, self._entries)
        self._gathering = Gathering(
            ground,
            assembler,
            WeightsInForce(self.components[: len(self.components) - gone]),
            topology,
            self.lanes,
            apart=settings.gather_apart,
        )
        self._stopped = False
        self._process = os.getpid()
        self._runner: Runner | None = None
        self._ahead: Ahead[Together] | None = None

    def items(self, ends: Ends | None = None) -> Generator[BatchRows, None, None]:
        """Yield batches, each marked as handed out; closing the iterator ends every thread.

        Args:
            ends: lets ranks end together; None: this one ends where its own lanes do.

        Raises:
            ExecutionError: the run was stopped from outside, or goes on in a forked process.
        """
        self._handed_out.open()
        ended, produced = False, self.produced()
        batches = chain.from_iterable(produced)
        if ends is not None:
            batches = ending_together(batches, ends, self.start, self.sure_steps)
        try:
            for handed, after in batches:
                self._handed_out.take(handed.bad)
                self.mark(after)
                yield handed.batch
                self._check()
            ended = True
        finally:
            produced.close()
            self.leave(ended=ended, together=ends is not None)

    def produced(self) -> Generator[Together, None, None]:
        """Yield what can be handed out, ahead of what is; closing the iterator ends every thread.

        A state stands where ``mark`` was called, maybe on another thread, whatever came since.

        Raises:
            ExecutionError: as ``items``.
        """
        if self.start.ended and not self._stopped:
            return
        try:
            self._check()
            self._runner = self._make_runner()
            source = self._groups(self._supply(self._runner))
            if self._runner.lookahead and self._settings.queue > 0:
                source = self._ahead = Ahead(source, self._settings.queue, len)
            for together in source:
                self._check()
                yield together
            self._check()
        except Exception:
            self._check()  # once it is stopped, parts of it are gone wherever it was
            raise
        finally:
            self.close()

    def mark(self, position: Position) -> None:
        """Say that the caller has all batches up to there."""
        with self._lock:
            self._delivered = position

    def leave(self, *, ended: bool, together: bool = False) -> None:
        """Say that the caller asks for nothing more, and warn of what was dropped; once closed.

        Args:
            ended: the caller has all batches, and asked for another.
            together: so has that of each other rank.
        """
        if self.start.ended:
            return
        with suppress(ZephonError):  # of a source that does not repeat itself: count nothing
            endings.warn_of_dropped(self._counted(ended), self._settings.longest)
        if ended:
            self._end(together=together)
        if self._process == os.getpid():
            endings.warn_of_bad(self.lanes.values(), self.state, self._handed_out.lines)

    def _end(self, *, together: bool) -> None:
        """Count what counts at the end of the data."""
        self.finished = True
        if self.cut_short:  # whoever goes on may take more
            return
        if self.topology.global_batch_size is None:
            rows = {lane: self._delivered.rows_of(lane, self.topology) for lane in self.lanes}
            self._handed_out.take(self._gathering.left_over(rows))
        self.mark(replace(self._delivered, ended=True))
        if self.may_part and not together:
            endings.warn_of_uneven(self.topology, self.lanes.values(), self.sure_steps())

    def _check(self) -> None:
        if self._stopped:
            raise ExecutionError(
                "the pipeline was changed or restored while it was being iterated; iterate it anew"
            )
        if os.getpid() != self._process:
            raise ExecutionError(
                "this iterator is of another process, whose threads a fork does not copy; iterate "
                "in the child from the start, or start it with spawn"
            )

    def _supply(self, runner: Runner) -> Supply:
        return Supply(
            runner,
            self._ground.segment,
            list(self.lanes.values()),
            row_bytes=self._settings.row_bytes,
            component_bytes=self._settings.component_bytes,
            task_bytes=task_bytes_for(self._settings.group_bytes),
            lane_bytes=max(LOOKAHEAD_BYTES // len(self.lanes), 2 * self._step_bytes()),
            budget=max(self._settings.budget, 2 * len(self.lanes) * self._step_bytes()),
            limit=self._settings.ahead,
        )

    def sure_steps(self) -> int:
        """Count the steps, from the beginning, that all lanes of this rank hold by now."""
        first, before = self.topology.since
        least = min(run.rows_placed for run in self.lanes.values())
        return first + (least - before) // self.topology.rows_per_lane

    @property
    def may_part(self) -> bool:
        """Whether ranks may come to the ends of their lanes at different steps; all say the same.

        Not where steps can be counted beforehand, nor where they never end.
        """
        if self.topology.global_batch_size is None or self.last_step is not None:
            return False
        return can_end(self.topology, self._draws_of)

    @property
    def cut_short(self) -> bool:
        """Whether all rows were handed out that this run is to deliver, whatever follows them."""
        with self._lock:
            position = self._delivered
        return all_out(position, self.topology, self._settings.limit)

    def stop(self) -> None:
        """End the run from outside: its iterator raises when it is asked for the next batch."""
        self._stopped = True
        self.close()

    def close(self) -> None:
        """End the run; positions and histories stay, so that a checkpoint can still be taken."""
        if self._process != os.getpid():
            return  # a fork copies locks as they were, and none of the threads that hold them
        if self._ahead is not None:
            self._ahead.close()
        if self._runner is not None:
            self._runner.close()
        if self._ahead is not None:
            self._ahead.join()
        for floor in (floor for run in self.lanes.values() for floor in run.floors()):
            floor.held.parts.clear()
        parts = [part for entry in self._entries for part in (entry.step, entry.segment)]
        close_all([*(part.close for part in (*parts, self._ground.segment)), self._release])

    def state(self) -> tuple[Position, dict[int, LaneState]]:
        """Return what was handed to the caller, and each lane's state there."""
        with self._lock:
            position = self._delivered
        # What ranks that share steps drew after the last one depends on how far ahead they ran.
        at_end = position.ended and self.topology.global_batch_size is None
        states = {}
        for lane, run in self.lanes.items():
            with run.lock.read():
                states[lane] = run.state_at(self._rows_out(position, lane), at_end=at_end)
        return position, states

    def lane_at(self, lane: int, state: LaneState | None) -> LaneRun:
        """Return a lane that stands at ``state``, or at its beginning."""
        draws = self._streams(lane, None if state is None else state.bottom().source)
        return self._run(lane, draws, state)

    def lane_again(self, lane: int, state: LaneState) -> LaneRun:
        """Return one of this engine's lanes as it was at a state that its history still has."""
        run = self.lanes[lane].bottom
        # Its own stream still has the draws since; another would have to find them anew.
        draws = self._streams(lane, None) if run.strands is not None else run.intakes[0].stream
        return self._run(lane, draws, state)

    def _counted(self, ended: bool) -> list[LaneRun]:
        """Return the lanes as ``account`` counts them when a run ends, or is left.

        A lane drops documents while it runs ahead, too: what the caller hears of must not depend
        on how far. Nothing of lanes that dropped none, and of those of another process.
        """
        dropping = [
            run
            for run in self.lanes.values()
            if any(floor.dropped_documents() for floor in run.floors())
        ]
        if not dropping or self._process != os.getpid():
            return []
        if ended and self.topology.global_batch_size is None and not self.cut_short:
            return dropping
        _, states = self.state()
        return [self.lane_again(run.lane, states[run.lane]) for run in dropping]

    def _run(self, lane: int, draws: LaneStream | TokenLane, state: LaneState | None) -> LaneRun:
        components = len(self.components)
        return build_lane(self._ground, self._entries, lane, draws, components, state)

    def _rows_out(self, position: Position, lane: int) -> int:
        """Count rows of a lane that a state at ``position`` stands behind."""
        rows = position.rows_of(lane, self.topology)
        return rows if self.topology.global_batch_size is None else self._at_end.get(lane, rows)

    def _step_bytes(self) -> int:
        """Return bytes of tokens that a lane gives to a step, whose rows must all be there."""
        token_bytes = TOKENS.value_type.bit_width // 8
        return self.topology.rows_per_lane * (self._settings.max_length or 0) * token_bytes

    def _draws_of(self, lane: int) -> LaneStream | TokenLane:
        return self._streams(lane, None)

    def _known_length(self, lane: int) -> int | None:
        """Count a lane's rows beforehand, where the plan keeps row counts."""
        return None if self.last_step is None else length_of(self._draws_of(lane)) or 0

    def _groups(self, supply: Supply) -> Iterator[Together]:
        settings = self._settings
        ensure = partial(supply.ensure, settings.rows)
        if self.topology.global_batch_size is not None:
            groups = steps(
                self.topology,
                self.lanes,
                self.start,
                size=settings.microbatch_size,
                last_step=self.last_step,
                ensure=ensure,
            )
        else:
            groups = turns(
                self.lanes,
                self.start,
                size=settings.microbatch_size,
                drop_last=settings.drop_last,
                ensure=ensure,
            )
        if settings.limit is not None:
            groups = at_most(groups, self.start, self.topology, settings.limit)
        if self.topology.handed != WHOLE:
            groups = shared_out(groups, self.topology.handed)
        yielded = False
        for together in few_at_first(groups, self._tokens, ASSEMBLED_BYTES // 8):
            yielded = True
            made = self._gathering.together(together)
            supply.refill()
            if made is not None:
                yield made
            self._forget(together)
        if not yielded and self.start == Position():
            if self.topology.global_batch_size:
                raise endings.short_data(self.topology, self.lanes.values(), self._known_length)
            warnings.warn(
                endings.nothing_whole(self.lanes.values(), settings.microbatch_size),
                RuntimeWarning,
                stacklevel=2,
            )

    def _tokens(self, group: Group) -> int:
        """Count tokens of a group; a row without tokens counts as the bytes of a source row."""
        if group.elsewhere:  # it is never assembled
            return 0
        rows = group.size
        if self._settings.max_length is not None:
            return rows * self._settings.max_length
        tokens = 0
        if self._settings.has_tokens:
            tokens = sum(self.lanes[r.lane].tokens_of(r.first, r.stop) for r in group.rows)
        return tokens or int(rows * self._settings.row_bytes) // 8

    def _forget(self, groups: Sequence[Group]) -> None:
        """Let lanes of these groups drop what no state that may still be asked for needs."""
        with self._lock:
            delivered = self._delivered
        for lane in {rows.lane for group in groups for rows in group.rows}:
            run = self.lanes[lane]
            with run.lock:
                run.forget_before(delivered.rows_of(lane, self.topology))
