"""The child that hosts an engine: makes batches ahead of the parent, and answers what it asks.

Batches are made on the main thread. Another one listens: it marks what the parent handed out,
answers for states while a batch is made, however long that takes, and ends the process as soon as
the parent hangs up or is gone.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from zephon.errors import ExecutionError, told
from zephon.exec.accounting import account
from zephon.exec.delivery import Position, Together
from zephon.exec.engine import Engine
from zephon.exec.hosting.batch_bodies import Sender
from zephon.exec.hosting.records import Kind, Receiver, Record, Room
from zephon.exec.hosting.segments import Segments
from zephon.exec.runners.bodies import laid_out, unpack
from zephon.exec.runners.crossing import SentError, SentWarning, take_warnings
from zephon.exec.runners.interpreter import begin
from zephon.exec.runners.transport import collect
from zephon.exec.runners.worker import Setup
from zephon.exec.session import state_of


class Post:
    """The way back to the parent, for any thread of this process."""

    def __init__(self, way: socket.socket, segments: Segments) -> None:
        self._way = way
        self._segments = segments
        self._lock = threading.Lock()

    def send(self, record: Record, pieces: Sequence[Any] = (), size: int = 0) -> None:
        """Send a record, and the body that it is about.

        Raises:
            OSError: the parent is gone; or there is no memory.
        """
        with self._lock:
            if not size:
                self._way.sendall(record.packed())
                return
            number, descriptor = self._segments.write(pieces, size)
            packed = record._replace(segment=number, size=size).packed()
            if descriptor is None:
                self._way.sendall(packed)
            else:
                socket.send_fds(self._way, [packed], [descriptor])

    def value(self, record: Record, value: object) -> None:
        """Send a record about a value."""
        self.send(record, *laid_out(value))

    def warn(self, warning: SentWarning) -> None:
        """Send a warning."""
        try:
            found = laid_out(warning)
        except Exception:  # a class that cannot be pickled; the text can
            found = laid_out(warning._replace(category=UserWarning))
        self.send(Record(Kind.WARNED), *found)

    def let_go(self, segment: int, *, again: bool) -> None:
        """Take back a segment that the parent does not read any more."""
        for number in self._segments.free(segment, again=again):
            self.send(Record(Kind.DROPPED, segment=number))


class Left(Exception):
    """The parent asks for no further batch."""


class Host:
    """An engine, what was sent of its batches, and what the parent said."""

    def __init__(self, engine: Engine, room: Room, post: Post) -> None:
        self._engine = engine
        self._room = room
        self._post = post
        self._sender = Sender()
        self._changed = threading.Condition()
        self._started = False
        self._left: bool | None = None  # True: the caller came to the end
        self._sent = 0
        self._after: deque[Position] = deque()  # of each batch that was not handed out
        self._staged: deque[tuple[int, int]] = deque()  # batches sent until then, bytes of some
        self._staged_bytes = 0
        self._done = self._all_ended = False
        self._parts = engine.may_part

    def run(self) -> None:
        """Make batches until the end, an error, or until the parent asks for no more."""
        failure = None
        try:
            self._wait(lambda: self._started)
            produced = self._engine.produced()
            try:
                for together in produced:
                    self._send(together)
            finally:
                produced.close()
            with self._changed:
                self._done = True
            self._post.send(Record(Kind.END, number=self._sent))
        except Left:
            pass
        except BaseException as exc:
            if self._left is None:
                self._done = True
                self._post.value(Record(Kind.RAISED, number=self._sent), SentError.of(exc))
            elif not isinstance(exc, ExecutionError):  # not that the run was stopped
                failure = exc
        with self._changed:
            self._changed.wait_for(lambda: self._left is not None)
        try:
            if self._started:
                self._engine.leave(ended=bool(self._left), together=self._all_ended)
        except BaseException as exc:
            failure = failure or exc
        error = None if failure is None else SentError.of(failure)
        self._post.value(Record(Kind.LEFT), error)

    def hear(self, record: Record) -> None:
        """Do what the parent says; on the thread that listens."""
        match record.kind:
            case Kind.START:
                with self._changed:
                    self._started = True
                    self._changed.notify_all()
            case Kind.TAKEN:
                self._taken(record.number)
            case Kind.FREE | Kind.RETIRED:
                self._post.let_go(record.segment, again=record.kind == Kind.FREE)
            case Kind.STATE:
                self._answer(record, lambda: state_of(self._engine))
            case Kind.ACCOUNT:
                self._answer(record, lambda: account(self._engine))
            case Kind.RECIPE:
                self._answer(record, lambda: dict(self._engine.identity.recipe))
            case Kind.LEAVE:
                with self._changed:
                    self._left, self._all_ended = bool(record.many), bool(record.behind)
                    self._changed.notify_all()
                    done = self._done
                if not done:
                    # Apart: it waits for functions that run, and states are asked for meanwhile.
                    threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        try:
            self._engine.stop()
        except Exception as exc:
            self._post.warn(SentWarning(f"closing: {told(exc)}", RuntimeWarning, __file__, 1))

    def _taken(self, number: int) -> None:
        position = None
        with self._changed:
            while self._sent - len(self._after) < number:
                position = self._after.popleft()
            while self._staged and self._staged[0][0] <= number:
                self._staged_bytes -= self._staged.popleft()[1]
            if position is not None:
                self._engine.mark(position)
            self._changed.notify_all()

    def _send(self, together: Together) -> None:
        """Send batches, as many at once as there is room for."""
        most = max(1, self._room.batches // 2)
        first = 0
        while first < len(together):
            with self._changed:
                self._wait_here(self._has_room)
                free = self._room.batches - len(self._after)
            count = min(free, most, len(together) - first)
            some = together.some(first, first + count)
            pieces, size = self._sender.laid_out(some)
            with self._changed:
                self._sent += count
                self._after.extend(some.after)
                self._staged.append((self._sent, size))
                self._staged_bytes += size
            first += count
            record = Record(
                Kind.BATCHES,
                many=count,
                behind=len(together) - first,
                number=self._sent - count,
                sure=self._engine.sure_steps() if self._parts else 0,
            )
            self._post.send(record, pieces, size)

    def _has_room(self) -> bool:
        return len(self._after) < self._room.batches and (
            self._staged_bytes < self._room.bytes or not self._staged
        )

    def _wait(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            self._wait_here(ready)

    def _wait_here(self, ready: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._left is not None or ready())
        if self._left is not None:
            raise Left

    def _answer(self, record: Record, make: Callable[[], object]) -> None:
        try:
            found = laid_out(make())
        except BaseException as exc:  # told to whoever asked
            kind, found = Kind.REFUSED, laid_out(SentError.of(exc))
        else:
            kind = Kind.ANSWER
        self._post.send(record._replace(kind=kind, many=0), *found)


def main() -> None:
    """Host the engine that the first messages describe, until the parent is gone."""
    way, parent = begin()
    try:
        (_, setup), (_, factory) = collect(way), collect(way)
        said: tuple[Setup, Room] = unpack(setup)
        first, room = said
        sys.argv[:] = first.arguments
        post = Post(way, Segments(2 * room.bytes))
        box: list[Host] = []
        receiver = Receiver(way, lambda: os.getppid() == parent)
        threading.Thread(target=_listen, args=(receiver, box), daemon=True).start()
        take_warnings(first.filters, post.warn)
        _host(factory, room, post, box)
        threading.Event().wait()  # questions are still answered; the listener ends the process
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)


def _host(factory: memoryview, room: Room, post: Post, box: list[Host]) -> None:
    try:
        engine: Engine = unpack(factory)()
        box.append(Host(engine, room, post))
    except BaseException as exc:  # the parent raises it
        post.value(Record(Kind.RAISED), SentError.of(exc))
        return
    post.value(Record(Kind.OPENED), (engine.topology, engine.may_part, engine.start))
    box[0].run()


def _listen(receiver: Receiver, box: list[Host]) -> None:
    """Pass on what the parent says; end the process when it says no more."""
    code = 1
    try:
        while True:
            record, _ = receiver.next()
            box[0].hear(record)
    except (EOFError, ConnectionError):
        code = 0
    except BaseException:  # without a listener, nobody would end this
        traceback.print_exc()
    finally:
        os._exit(code)
