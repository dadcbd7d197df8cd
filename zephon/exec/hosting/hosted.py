"""An engine in a child process, as a pipeline uses it: what ``Engine`` is, as far as it goes.

The child makes batches ahead; they come through memory that both processes map. A state describes
what was handed out here: the child is told of that, and keeps what it needs to write the state down
until then. When the caller leaves before the end, the child lets go of its threads, workers and
data, and stays to be asked for the state, until this object is gone.
"""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from typing import Any

from zephon.errors import ExecutionError, told
from zephon.exec.delivery import Handed, Position, Together
from zephon.exec.ends import Ends, ending_together
from zephon.exec.handed_out import HandedOut
from zephon.exec.hosting.batch_bodies import Taker
from zephon.exec.hosting.child import Child
from zephon.exec.hosting.records import Kind, Record, Room
from zephon.exec.run_settings import Identity
from zephon.observability import MTPQueueStats
from zephon.options import RuntimeOptions
from zephon.types import BatchRows
from zephon.work.source import WorkSource

_LEAVING_SECONDS = 5.0
"""How long who leaves before the end waits for functions that run, as for their warnings."""


class HostedEngine:
    """One run of one plan on one rank, whose engine is in a child process.

    Args:
        factory: opens the engine there; cloudpickle must take it.
        room: how far the child may be ahead.
        keep_state: when the end was reached, ask for the state and let the child go.
        handed_out: does what there is to do about bad rows.

    Raises:
        ExecutionError: what opens the engine cannot be sent, or the child died.
        BaseException: what opening raised.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        room: Room,
        handed_out: HandedOut,
        *,
        keep_state: bool,
    ) -> None:
        self._handed_out = handed_out
        self._child = Child(factory, room)
        self.topology, self.may_part, self._start = self._child.opened
        self._room = room
        self._keep_state = keep_state
        self._taker = Taker()
        self._taken = 0
        self._begun = self._left = self._stopped = False
        self._kept: tuple[Any, Any] | None = None  # state and account at the end

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._child.process_id

    @cached_property
    def identity(self) -> Identity:
        """What the run is, without what only its states tell."""
        return Identity(self._child.ask(Kind.RECIPE), ())

    def items(self, ends: Ends | None = None) -> Generator[BatchRows, None, None]:
        """Yield batches, each counted as handed out; closing the iterator ends the run.

        Their memory is given back once no array refers to it.

        Args:
            ends: lets ranks end together; None: this one ends where its own lanes do.

        Raises:
            ExecutionError: the run was stopped from outside, goes on in a forked process, or the
                child died.
            BaseException: what the engine raised.
        """
        self._check()
        self._handed_out.open()
        self._begun = True
        ended, batches = False, self._arriving()
        if ends is not None:
            batches = ending_together(batches, ends, self._start, lambda: self._child.sure)
        try:
            self._child.tell(Record(Kind.START))
            for handed, _ in batches:
                self._handed_out.take(handed.bad)
                self._taken += 1
                yield handed.batch
                self._check()
            ended = True
        finally:
            self._leave(ended=ended, together=ends is not None)

    def checkpoint(self) -> dict[str, Any]:
        """Return the state after the last batch that was handed out, the caller's own.

        Raises:
            ExecutionError: the child died, or does not answer.
        """
        return self._asked(Kind.STATE)

    def accounting(self) -> dict[str, Any]:
        """Count rows and tokens up to there; see ``accounting.account``.

        Raises:
            ExecutionError: as ``checkpoint``.
        """
        return self._asked(Kind.ACCOUNT)

    def stats(self) -> MTPQueueStats | None:
        """Say how full the queue is; None while nothing is iterated."""
        if not self._begun or self._left or self._stopped:
            return None
        self._child.look()
        return MTPQueueStats(
            depth=self._child.batches - self._taken,
            capacity=self._room.batches,
            staged_bytes=self._child.staged_bytes(self._taken),
            prefetch_depth=self._child.behind,
        )

    def stop(self) -> None:
        """End the run from outside: its iterator raises when it is asked for the next batch."""
        self._stopped = True
        if not self._child.here:
            return
        if self._begun:
            with contextlib.suppress(ExecutionError):
                self._leave(ended=False)
        self._child.end()

    def _arriving(self) -> Iterator[tuple[Handed, Position]]:
        while True:
            # What was handed out before is not referred to here, else its memory were not free.
            self._child.tell(Record(Kind.TAKEN, number=self._taken))
            kinds = (Kind.BATCHES, Kind.END, Kind.RAISED)
            try:
                record, body = self._child.wait(*((kind, self._taken) for kind in kinds))
            except ExecutionError:
                self._check()
                raise
            if record.kind == Kind.END or body is None:
                return
            together, body = self._made(body), None
            yield from together
            del together

    def _made(self, body: memoryview) -> Together:
        try:
            return self._taker.together(body)
        except Exception as exc:  # rows are the user's, and so is what making them raises
            raise ExecutionError(
                "options: mtp_mode=True needs rows that this process can make again of what the "
                f"engine's sends, got {told(exc)}; keep objects out of rows whose classes take "
                "more to make, or leave mtp_mode out"
            ) from exc

    def _asked(self, kind: Kind) -> Any:
        if self._kept is not None:
            return copy.deepcopy(self._kept[kind == Kind.ACCOUNT])
        self._check_process()
        return self._child.ask(kind, Record(Kind.TAKEN, number=self._taken))

    def _leave(self, *, ended: bool, together: bool = False) -> None:
        """Let the child close the engine, and say what there is to say then."""
        if self._left or not self._child.here or self._child.is_ended:
            return
        self._left = True
        self._child.tell(
            Record(Kind.TAKEN, number=self._taken),
            Record(Kind.LEAVE, many=int(ended), behind=int(together)),
        )
        try:
            seconds = None if ended else _LEAVING_SECONDS
            _, body = self._child.wait((Kind.LEFT, 0), seconds=seconds)
        except TimeoutError:  # functions that run; it goes on to close, and answers meanwhile
            return
        except ExecutionError:  # it is dead, as whoever asks it hears
            if ended:
                raise
            return
        if body is not None:
            self._child.raise_of(body)
        if ended and self._keep_state:
            self._keep()

    def _keep(self) -> None:
        """Take what may be asked for later, and let the child go."""
        try:
            self._kept = self._asked(Kind.STATE), self._asked(Kind.ACCOUNT)
        except Exception:  # whoever asks for it hears of it
            return
        self._child.end()

    def _check(self) -> None:
        if self._stopped:
            raise ExecutionError(
                "the pipeline was changed or restored while it was being iterated; iterate it anew"
            )
        self._check_process()

    def _check_process(self) -> None:
        if not self._child.here:
            raise ExecutionError(
                "this iterator began in another process, whose engine a fork does not share; "
                "iterate in the child from the start, or start it with spawn"
            )


def open_hosted(
    factory: Callable[[], Any], source: WorkSource, options: RuntimeOptions
) -> HostedEngine | None:
    """Open an engine in a child process; None, and a warning, where this one may have none.

    Args:
        factory: opens the engine there; cloudpickle must take it.
        source: of its rows.
        options: say how far it may be ahead.

    Raises:
        BaseException: as ``HostedEngine``.
    """
    if multiprocessing.current_process().daemon:
        warnings.warn(
            "options: mtp_mode=True has no effect in a daemonic process, such as a worker of a "
            "DataLoader, which is ended without being asked; the engine runs in it",
            RuntimeWarning,
            stacklevel=4,
        )
        return None
    room = Room(options.hosted_room(), options.mtp_buffer_bytes)
    handed_out = HandedOut.of(source, options)
    return HostedEngine(factory, room, handed_out, keep_state=options.mtp_auto_checkpoint)
