"""The child that hosts an engine, as its parent sees it: told, asked, waited for, ended.

Any thread of the parent may wait. One of them reads for all: it takes records off the socket, and
the others look whether theirs has come. A handler of signals may ask while its thread reads.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from zephon.errors import ExecutionError, told
from zephon.exec.hosting.records import Kind, Receiver, Record, Room
from zephon.exec.hosting.segments import Mapped
from zephon.exec.runners.bodies import unpack
from zephon.exec.runners.crossing import SentError, SentWarning
from zephon.exec.runners.interpreter import ended, start
from zephon.exec.runners.transport import Kind as Message
from zephon.exec.runners.transport import pack
from zephon.exec.runners.worker import Setup

T = TypeVar("T")

QUESTION_SECONDS = 300.0
_LOOK_SECONDS = 1.0
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


class Child:
    """A fresh interpreter that opens an engine and hosts it.

    Args:
        factory: opens the engine there; cloudpickle must take it.
        room: how far the child may be ahead.

    Raises:
        ExecutionError: the factory cannot be pickled, or the child died.
        BaseException: what opening raised.
    """

    def __init__(self, factory: Callable[[], Any], room: Room) -> None:
        try:
            sent = pack(factory)
        except Exception as exc:  # what is in it is the user's, and so is what that raises
            raise ExecutionError(
                "options: mtp_mode=True needs functions, operators, work sources and rows in "
                f"memory that cloudpickle takes, got {told(exc)}; keep such objects out of them, "
                "or leave mtp_mode out"
            ) from exc
        self._changed = threading.Condition(threading.RLock())
        self._reader: int | None = None  # the thread that reads
        self._records: dict[tuple[Kind, int], tuple[Record, memoryview | None]] = {}
        self._questions = 0
        self._dead: str | None = None
        self._warned: set[SentWarning] = set()
        self.batches = 0  # that came
        self._sizes: deque[tuple[int, int]] = deque()  # batches until there, bytes of some
        self.sure = 0  # steps that all lanes held then
        self.behind = 0  # that the child had ready when the last of them came
        self._mapped = Mapped()
        self._owner = os.getpid()
        self._way, theirs = socket.socketpair()
        with sent, theirs, pack((Setup.of_this_process(), room)) as setup:
            try:
                module = "zephon.exec.hosting.host"
                self._process = start(module, theirs, {}, "mtp_mode=True", "leave mtp_mode out")
            except BaseException:
                self._way.close()
                raise
            self._end = weakref.finalize(self, _end, self._way, self._process, self._owner)
            process = self._process  # not this object: it ends the child when it is gone
            self._receiver = Receiver(self._way, lambda: process.poll() is None)
            try:
                with contextlib.suppress(OSError):  # a dead child is told of when it is waited for
                    setup.post(self._way, Message.SETUP)
                    sent.post(self._way, Message.FACTORY)
                _, opened = self.wait((Kind.OPENED, 0), (Kind.RAISED, 0))
                self.opened: Any = None if opened is None else unpack(opened)
            except BaseException:
                self._end()
                raise

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_ended(self) -> bool:
        """Whether this process ended it, as it does at its own end."""
        return not self._end.alive

    @property
    def here(self) -> bool:
        """Whether this is the process that started the child, and no fork of it."""
        return os.getpid() == self._owner

    def tell(self, *records: Record) -> None:
        """Send records, and which segments nothing refers to any more."""
        with contextlib.suppress(OSError), self._changed:
            free = [
                Record(Kind.FREE if again else Kind.RETIRED, segment=number)
                for number, again in self._mapped.released()
            ]
            self._way.sendall(b"".join(record.packed() for record in (*records, *free)))

    def ask(self, kind: Kind, *before: Record) -> Any:
        """Ask a question, and wait for the answer.

        Args:
            kind: of the question.
            before: records to send first.

        Raises:
            ExecutionError: the child died, or does not answer in time.
            BaseException: what answering raised.
        """
        with self._changed:
            self._questions += 1
            number = self._questions
        self.tell(*before, Record(kind, number=number))
        try:
            answers = ((Kind.ANSWER, number), (Kind.REFUSED, number))
            body = self.wait(*answers, seconds=QUESTION_SECONDS)[1]
        except TimeoutError:
            raise ExecutionError(
                f"mtp_mode=True: {self._name()} did not answer for {QUESTION_SECONDS:.0f} s when "
                "asked for its state: a function in it may hold the interpreter all this time; "
                "mend it, or leave mtp_mode out"
            ) from None
        return unpack(body) if body is not None else None

    def wait(
        self, *wanted: tuple[Kind, int], seconds: float | None = None
    ) -> tuple[Record, memoryview | None]:
        """Wait for a record of some kind and number, the first that is there; give it and its body.

        Raises:
            TimeoutError: none came in time.
            ExecutionError: the child died.
            BaseException: what RAISED or REFUSED tells of, where one of them was waited for.
        """
        until = None if seconds is None else time.monotonic() + seconds
        found = self._until(lambda: self._come(wanted), until)
        record, body = found
        if record.kind in (Kind.RAISED, Kind.REFUSED) and body is not None:
            self.raise_of(body)
        return found

    def look(self) -> None:
        """Take what has come, and wait for nothing."""
        with self._changed:
            if self._reader is not None:
                return
            self._reader = threading.get_ident()
        try:
            with contextlib.suppress(TimeoutError):
                while self._dead is None and self._receiver.ready():
                    self._read()
        finally:
            self._reader = None

    def staged_bytes(self, taken: int) -> int:
        """Count bytes of what came and is not among so many batches."""
        while self._sizes and self._sizes[0][0] <= taken:
            self._sizes.popleft()
        return sum(size for _, size in self._sizes)

    def raise_of(self, body: memoryview) -> None:
        """Raise the error that a body is of, if it is of one."""
        sent: SentError | None = unpack(body)
        if sent is not None:
            raise sent.error()

    def end(self) -> None:
        """End the process; return when it is gone."""
        self._dead = self._dead or "was ended"
        self._end()

    def _come(
        self, wanted: tuple[tuple[Kind, int], ...]
    ) -> tuple[Record, memoryview | None] | None:
        """Take a record that was read."""
        for key in wanted:
            if key in self._records:
                return self._records.pop(key)
        if self._dead is not None:
            raise ExecutionError(self._dead)
        return None

    def _until(self, come: Callable[[], T | None], until: float | None) -> T:
        me = threading.get_ident()
        while True:
            with self._changed:
                while self._reader not in (None, me):
                    if (found := come()) is not None:
                        return found
                    self._changed.wait(_LOOK_SECONDS)
                    if until is not None and time.monotonic() >= until:
                        raise TimeoutError
                if (found := come()) is not None:
                    return found
                before, self._reader = self._reader, me
            try:
                self._read(_LOOK_SECONDS)
            except TimeoutError:
                if until is not None and time.monotonic() >= until:
                    raise
            finally:
                with self._changed:
                    self._reader = before
                    self._changed.notify_all()

    def _read(self, seconds: float = 0) -> None:
        """Take one record off the socket.

        Raises:
            TimeoutError: none came.
        """
        try:
            record, descriptor = self._receiver.next(int(1000 * seconds))
        except (EOFError, ConnectionError):
            self._dead = self._died()
            return
        if record.kind == Kind.DROPPED:
            self._mapped.drop(record.segment)
            return
        body = None
        if record.size:
            body = self._mapped.body(record.segment, record.size, descriptor)
        if record.kind == Kind.WARNED and body is not None:
            self._warn(_warning(body))
            return
        if record.kind == Kind.BATCHES:
            self.batches, self.behind = record.number + record.many, record.behind
            self.sure = record.sure
            self._sizes.append((self.batches, record.size))
        self._records[record.kind, record.number] = record, body

    def _warn(self, warning: SentWarning) -> None:
        if warning in self._warned:
            return
        self._warned.add(warning)
        if os.path.isabs(warning.filename) and not warning.filename.startswith(_OURS):
            warning.issue()
            return
        # It is about what the caller runs, as where the engine is in this process.
        level, frame = 1, sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith(_OURS):
            level, frame = level + 1, frame.f_back
        warnings.warn(warning.text, warning.category, stacklevel=level)

    def _died(self) -> str:
        how = ended(self._process)
        return (
            f"mtp_mode=True: {self._name()} {how}; look there for what ends the process (exit, "
            "native code; the system kills what takes too much memory), go on from the last "
            "checkpoint, or leave mtp_mode out"
        )

    def _name(self) -> str:
        return f"the process of the engine ({self._process.pid})"


def _warning(body: memoryview) -> SentWarning:
    try:
        return unpack(body)
    except Exception as exc:  # its class is the user's, and so is what making it raises
        text = f"a warning of the process of the engine cannot be made again here: {told(exc)}"
        return SentWarning(text, RuntimeWarning, "", 0)


def _end(way: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    """Hang up, and wait until the child is gone; a fork of the parent leaves it alone."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            way.shutdown(socket.SHUT_RDWR)
        ended(process)
    way.close()
