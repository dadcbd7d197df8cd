"""Reading object stores on behalf of a forked process, in one that was not forked.

The threads of obstore are lost in a fork: a worker of a data loader, forked from a process that has
listed a bucket, cannot use it. So the first thing that it reads starts a process, which costs about
a second once, and goes on for as long as it lives. Requests go there one by one, each with all of
its ranges; secrets go through the pipe, never on a command line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import astuple
from typing import IO, Any

import msgspec

import zephon.errors
from zephon.errors import StorageError, ZephonError
from zephon.io.storage.patience import Patience
from zephon.io.storage.place import Listed, StoredFile

_HEAD = 8  # bytes of a length

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from zephon.io.storage.object_reader import serve; serve()"
)


class Request(msgspec.Struct, array_like=True):
    """What to do with a place: "listed", "look" (at ``folder``), "read" or "head"."""

    act: str
    url: str
    options: dict[str, Any]
    patience: tuple[int, float, float, float, float]
    folder: str = ""
    deep: bool = False
    file: tuple[str, int, str, int] | None = None
    ranges: list[tuple[int, int]] = []


class Response(msgspec.Struct, array_like=True):
    """What came of it; ``error`` is the name of a class of ours and a text."""

    error: tuple[str, str] | None = None
    files: list[tuple[str, int, str, int]] = []
    folders: list[str] = []
    parts: list[bytes] = []


class ObjectReader:
    """A process that reads, as long as this one lives."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def is_ours(self) -> bool:
        """Say whether it runs, and was not started by a process that this one is forked from."""
        return self._owner == os.getpid() and self._process.poll() is None

    def ask(self, request: Request) -> Response:
        """Have something done.

        Raises:
            ZephonError: as doing it here would.
            StorageError: the process has ended.
        """
        into, out = self._process.stdin, self._process.stdout
        assert into is not None and out is not None
        with self._lock:
            try:
                _write(into, request)
                response = _read(out, Response)
            except OSError:
                response = None
        if response is None:
            raise StorageError(
                f"{request.url}: the process that reads object stores for this forked one has "
                f"ended (exit code {self._process.wait()}); look whether memory ran out"
            )
        if response.error is not None:
            kind, text = response.error
            raise getattr(zephon.errors, kind)(text)
        return response


_reader: ObjectReader | None = None
_starting = threading.Lock()


def ask_elsewhere(request: Request) -> Response:
    """Have something done by the process that reads for this one; see ``ObjectReader.ask``."""
    global _reader
    with _starting:
        if _reader is None or not _reader.is_ours():
            _reader = ObjectReader()
    return _reader.ask(request)


def request_of(
    act: str, url: str, options: Mapping[str, Any], patience: Patience, **more: Any
) -> Request:
    """Describe what to do with a place."""
    return Request(act, url, dict(options), astuple(patience), **more)


def listed_of(response: Response) -> Listed:
    """Give a listing that came."""
    return Listed(tuple(StoredFile(*each) for each in response.files), tuple(response.folders))


def serve() -> None:
    """Do what comes by the standard input, until it ends."""
    # Here, since this module is what places use in forked processes.
    from zephon.io.storage.objects import ObjectPlace

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when its owner does
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not disturb
    places: dict[bytes, ObjectPlace] = {}
    while (request := _read(sys.stdin.buffer, Request)) is not None:
        named = msgspec.msgpack.encode([request.url, request.options, request.patience])
        if named not in places:
            places[named] = ObjectPlace(request.url, request.options, Patience(*request.patience))
        try:
            response = _done(places[named], request)
        except ZephonError as error:
            response = Response((type(error).__name__, str(error)))
        _write(out, response)


def _done(place: Any, request: Request) -> Response:
    if request.act == "listed":
        found = place.listed(request.folder, deep=request.deep)
        return Response(files=[astuple(file) for file in found.files], folders=list(found.folders))
    if request.act == "look":
        seen = place.look(request.folder)
        return Response(files=[] if seen is None else [astuple(seen)])
    assert request.file is not None
    file = StoredFile(*request.file)
    if request.act == "head":
        place.head(file)
        return Response()
    return Response(parts=place.read(file, request.ranges))


def _write(into: IO[bytes], message: msgspec.Struct) -> None:
    body = msgspec.msgpack.encode(message)
    into.write(len(body).to_bytes(_HEAD, "little"))
    into.write(body)
    into.flush()


def _read(out: IO[bytes], kind: type[Any]) -> Any:
    head = out.read(_HEAD)
    if len(head) < _HEAD:
        return None
    length = int.from_bytes(head, "little")
    body = out.read(length)
    return msgspec.msgpack.decode(body, type=kind) if len(body) == length else None
