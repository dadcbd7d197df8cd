"""The files of a split on the Hugging Face hub at a commit: ranges and whole files of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from zephon.errors import DatasetNotFoundError, ShardError, StorageError
from zephon.io.storage.hub_client import HubClient, NoEntryError
from zephon.io.storage.hub_grammar import HubUrl
from zephon.io.storage.hub_requests import Answer, origin
from zephon.io.storage.patience import PassingFault, Patience, patiently
from zephon.io.storage.place import Listed, Place, StoredFile
from zephon.io.storage.ranges import read_ranges

_LITTLE = 64 << 10
"""Bytes that a stream has to bring before it breaks, to be taken up as if it were the first."""

_SIGNED = 4096
"""Signed addresses of files that are remembered: a request less for each range."""


class HubPlace(Place):
    """The files of a split at a commit: the same bytes for ever, or an error.

    kind: the format of the files.
    """

    is_split = True

    def __init__(
        self,
        pinned: HubUrl,
        kind: str,
        files: Sequence[StoredFile],
        *,
        token: str | bool | None = None,
        patience: Patience = Patience(),  # noqa: B008 it is frozen
    ) -> None:
        """Take what was found; makes no request."""
        self.kind = kind
        self._pinned = pinned
        self._files = tuple(files)
        self._patience = patience
        self._token = token
        self._begin()

    def _begin(self) -> None:
        self._client: HubClient | None = None
        self._signed: dict[str, str] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the token, and what belongs to this process."""
        return {
            "kind": self.kind,
            "pinned": self._pinned,
            "files": self._files,
            "patience": self._patience,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pinned"], state["kind"], state["files"], patience=state["patience"])

    def __repr__(self) -> str:
        return f"HubPlace({self.url!r}, {len(self._files)} files)"

    @property
    def url(self) -> str:
        """The url with commit, source and config."""
        return str(self._pinned)

    def listed(self, folder: str = "", *, deep: bool = False) -> Listed:
        """Give the files of the split; no request is made. See ``Place``."""
        del deep  # it is a list of files
        above = f"{folder.strip('/')}/" if folder.strip("/") else ""
        files = tuple(file for file in self._files if file.name.startswith(above))
        if not files:
            raise DatasetNotFoundError(f"{self.url}: no file of the split lies in {folder!r}")
        return Listed(files)

    def read(self, file: StoredFile, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read ranges; see ``Place``."""
        what = f"{self.url}: {file.name}"
        return read_ranges(
            ranges, file.size, what, lambda start, stop: self._part(file, start, stop)
        )

    def fetch(
        self, file: StoredFile, target: BinaryIO, told: Callable[[int], None] | None = None
    ) -> None:
        """Write a file in one stream, taken up where it broke; see ``Place``."""
        what = f"{self.url}: {file.name}"
        begin = target.tell()
        for last in (False, True):
            if self._stream(what, file, target, told):
                return
            target.seek(begin)
            target.truncate()
            if told is not None and not last:
                told(-file.size)
        raise ShardError(
            f"{what}: what came is not what the hub lists: its hash is another, twice; something "
            "between here and the hub changes it: ask who runs that, or try without a proxy"
        )

    def _stream(
        self, what: str, file: StoredFile, target: BinaryIO, told: Callable[[int], None] | None
    ) -> bool:
        """Write a file, no byte asked for twice; say whether it is the right one."""
        hashed = _hash_for(file)
        came = 0

        def go_on() -> None:
            nonlocal came
            if came == file.size:
                return
            answer = self._opened(what, file, came, file.size)
            for chunk in answer.chunks():
                if came + len(chunk) > file.size:
                    answer.close()
                    raise ShardError(f"{what}: more came than the {file.size} bytes of the file")
                target.write(chunk)
                hashed.update(chunk)
                came += len(chunk)
                if told is not None:
                    told(len(chunk))
            if came < file.size:
                raise PassingFault(f"{came} bytes of {file.size}")

        # What comes is a new beginning: only a line that brings next to nothing is given up.
        before = -_LITTLE
        while came - before >= _LITTLE:
            before = came
            try:
                go_on()
            except PassingFault:
                continue
            break
        else:
            patiently(what, self._patience, go_on)
        return hashed.hexdigest() == file.version

    def _part(self, file: StoredFile, start: int, stop: int) -> bytes:
        what = f"{self.url}: {file.name}"

        def ask() -> bytes:
            answer = self._opened(what, file, start, stop)
            content = bytearray()
            for chunk in answer.chunks():
                content += chunk
                if len(content) > stop - start:
                    answer.close()
                    break
            if len(content) != stop - start:
                raise PassingFault(f"{len(content)} bytes of the {stop - start} asked for")
            return bytes(content)

        return patiently(what, self._patience, ask)

    def _opened(self, what: str, file: StoredFile, start: int, stop: int) -> Answer:
        """Ask for a stretch; give the answer if it is that one, of a file of that size."""
        client = self._hub()
        with self._lock:
            signed = self._signed.get(file.name)
        url = signed or client.file_url(self._pinned.revision, file.name)
        whole = (start, stop) == (0, file.size)
        headers = {} if whole else {"Range": f"bytes={start}-{stop - 1}"}
        try:
            answer = client.ask(url, what, headers)
        except NoEntryError:
            if signed is None:
                raise ShardError(
                    f"{what}: the file is gone from its commit; the repository was rewritten: name "
                    "another revision"
                ) from None
            raise self._forget(file) from None
        except (DatasetNotFoundError, StorageError):
            if signed is None:
                raise
            raise self._forget(file) from None
        if origin(answer.url) != origin(client.endpoint):
            with self._lock:
                if len(self._signed) >= _SIGNED:
                    self._signed.clear()
                self._signed[file.name] = answer.url
        _check(what, file, answer, (start, stop), whole=whole)
        return answer

    def _forget(self, file: StoredFile) -> PassingFault:
        """Drop an address whose signature has ended, so that the hub is asked for a new one."""
        with self._lock:
            self._signed.pop(file.name, None)
        return PassingFault("the address of the file is no longer good")

    def _hub(self) -> HubClient:
        with self._lock:
            if self._client is None:
                self._client = HubClient(
                    self._pinned.repo, token=self._token, patience=self._patience
                )
            return self._client


def _check(
    what: str, file: StoredFile, answer: Answer, stretch: tuple[int, int], *, whole: bool
) -> None:
    start, stop = stretch
    if whole and answer.status == 200:
        told = answer.headers.get("content-length")
        if told is None or int(told) == file.size:
            return
        answer.close()
        raise ShardError(
            f"{what}: the file must have {file.size} bytes at that commit, got {told}; something "
            "between here and the hub changes it: ask who runs that"
        )
    if answer.status != 206:
        answer.close()
        raise StorageError(
            f"{what}: the hub must answer with the range that was asked for, got status "
            f"{answer.status}; a mirror that has no ranges needs cache.enabled=True"
        )
    told = answer.headers.get("content-range", "")
    if told != f"bytes {start}-{stop - 1}/{file.size}":
        answer.close()
        raise ShardError(
            f"{what}: the answer must be bytes {start}-{stop - 1} of {file.size}, got {told!r}; "
            "something between here and the hub changes it: ask who runs that"
        )


def _hash_for(file: StoredFile) -> Any:
    """Begin the hash that a version is: SHA-256 of large files, that of Git of others."""
    if len(file.version) == 64:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
