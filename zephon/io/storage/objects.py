"""A prefix in an object store: S3, Google's, Azure's, and whatever speaks as they do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple
from itertools import accumulate
from typing import Any, BinaryIO, TypeVar

from zephon.errors import DatasetNotFoundError, ShardError, ZephonError
from zephon.io.storage.forked import obstore_is_lost, obstore_needed
from zephon.io.storage.object_faults import changed, error_of, fault_of, may_pass
from zephon.io.storage.object_reader import Response, ask_elsewhere, listed_of, request_of
from zephon.io.storage.object_stores import OPEN_OPTIONS, OpenedStore, open_store
from zephon.io.storage.object_urls import bare, parse
from zephon.io.storage.patience import PassingFault, Patience, patiently
from zephon.io.storage.place import Listed, Place, StoredFile
from zephon.io.storage.ranges import LONGEST, read_ranges

T = TypeVar("T")

_PARTS_AHEAD = 4
"""Requests of one ``fetch`` that are under way together; each holds ``LONGEST`` bytes at most."""


class ObjectPlace(Place):
    """The files below a prefix; each is pinned by its entity tag when it is listed."""

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        patience: Patience = Patience(),  # noqa: B008 it is frozen
    ) -> None:
        """Name a place; makes no request.

        Args:
            url: such as `s3://bucket/prefix`; see ``object_urls``.
            options: of the store; see ``open_store``. They win over the environment.
            patience: with requests that fail.

        Raises:
            DatasetError: the url names no bucket, or holds a secret.
        """
        self._place = parse(url)
        self._url = bare(url).rstrip("/")
        self._options = dict(options or {})
        self._patience = patience
        self._forget()

    def _forget(self) -> None:
        self._opened: OpenedStore | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is secret and what belongs to this process."""
        kept = {name: self._options[name] for name in self._options.keys() & OPEN_OPTIONS}
        return {"url": self._url, "options": kept, "patience": self._patience}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"], state["options"], state["patience"])

    def __repr__(self) -> str:
        return f"ObjectPlace({self._url!r})"

    @property
    def url(self) -> str:
        """The prefix, without a slash at its end."""
        return self._url

    def listed(self, folder: str = "", *, deep: bool = False) -> Listed:
        """List a folder; see ``Place``."""
        folder = folder.strip("/")
        if self._is_elsewhere():
            return listed_of(self._elsewhere("listed", folder=folder, deep=deep))
        what = f"{self._url}/{folder}".rstrip("/")
        files, folders = self._asked(
            what, lambda: self._deep(folder) if deep else self._flat(folder), listing=True
        )
        parents = {
            above
            for each in files
            for above in accumulate(each["path"].split("/")[:-1], "{}/{}".format)
        }
        # An empty object that is named as a folder stands for it: some tools make those.
        kept = [
            each
            for each in files
            if each["path"] and (each["size"] or each["path"] not in parents | set(folders))
            if each["path"] != folder
        ]
        if not kept and not folders:
            raise DatasetNotFoundError(self._nothing(what, folder))
        ordered = sorted(kept, key=lambda each: each["path"].encode("utf-8", "surrogatepass"))
        return Listed(tuple(_file(each) for each in ordered), tuple(sorted(folders)))

    def look(self, name: str) -> StoredFile | None:
        """Look at one file with one request; see ``Place``."""
        if self._is_elsewhere():
            found = self._elsewhere("look", folder=name).files
            return StoredFile(*found[0]) if found else None

        def ask() -> StoredFile | None:
            try:
                return _file({**self._store().head(name), "path": name})
            except FileNotFoundError:
                return None

        return self._asked(f"{self._url}/{name}", ask, listing=False)

    def read(self, file: StoredFile, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read ranges; see ``Place``."""
        if self._is_elsewhere():
            return self._elsewhere("read", file=astuple(file), ranges=list(ranges)).parts
        what = f"{self._url}/{file.name}"
        return read_ranges(
            ranges, file.size, what, lambda start, stop: self._part(file, start, stop)
        )

    def fetch(
        self, file: StoredFile, target: BinaryIO, told: Callable[[int], None] | None = None
    ) -> None:
        """Write a file in order, some parts ahead; see ``Place``.

        A part that fails is asked for again, and what came before it stays.
        """
        for part in self._parts(file):
            target.write(part)
            if told is not None:
                told(len(part))
        if file.size == 0:
            self.head(file)

    def head(self, file: StoredFile) -> None:
        """Make sure that a file is there, and of its version; raises as ``read`` does."""
        if self._is_elsewhere():
            self._elsewhere("head", file=astuple(file))
            return
        what = f"{self._url}/{file.name}"
        self._asked(what, lambda: _check(what, file, self._store().head(file.name)), listing=False)

    def _parts(self, file: StoredFile) -> Iterator[bytes]:
        starts = range(0, file.size, LONGEST)
        if len(starts) == 1:
            yield from self.read(file, [(0, file.size)])
            return
        if self._is_elsewhere():
            for start in range(0, file.size, _PARTS_AHEAD * LONGEST):
                stop = min(start + _PARTS_AHEAD * LONGEST, file.size)
                yield from self.read(file, [(start, stop)])
            return
        with ThreadPoolExecutor(_PARTS_AHEAD, "zephon-fetch") as pool:
            under_way: list[Future[bytes]] = []
            try:
                for start in starts:
                    stop = min(start + LONGEST, file.size)
                    under_way.append(pool.submit(self._part, file, start, stop))
                    if len(under_way) == _PARTS_AHEAD:
                        yield under_way.pop(0).result()
                while under_way:
                    yield under_way.pop(0).result()
            finally:
                for each in under_way:
                    each.cancel()

    def _part(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Read one stretch with one request, and refuse it if it is of another object."""
        if start == stop:
            return b""
        what = f"{self._url}/{file.name}"

        def ask() -> bytes:
            answer = self._store().get(file.name, options=_options(file, (start, stop)))
            _check(what, file, answer.meta)
            came = bytes(answer.bytes())
            if len(came) != stop - start:
                raise PassingFault(f"{len(came)} bytes of the {stop - start} asked for")
            return came

        return self._asked(what, ask, listing=False)

    def _deep(self, folder: str) -> tuple[list[Any], list[str]]:
        return [each for page in self._store().list(folder or None) for each in page], []

    def _flat(self, folder: str) -> tuple[list[Any], list[str]]:
        found = self._store().list_with_delimiter(folder or None)
        return list(found["objects"]), [str(each) for each in found["common_prefixes"]]

    def _nothing(self, what: str, folder: str) -> str:
        """Say that a folder is empty; the one more question shows a path that is a file's."""
        text = f"{what}: nothing lies there; look at the path, and at its upper and lower case"
        inside = f"{self._place.prefix}/{folder}".strip("/")
        if not inside:
            return f"{what}: the bucket is empty; name the one that holds the data files"
        name = inside.rpartition("/")[2]
        above = what[: -len(name) - 1]
        try:
            ObjectPlace(above, self._options, self._patience)._store().head(name)
        except Exception:
            return text
        return f"{what}: the path is a file; pass its folder {above!r}"

    def _asked(self, what: str, ask: Callable[[], T], *, listing: bool) -> T:
        def attempt() -> T:
            try:
                return ask()
            except (ZephonError, PassingFault):
                raise
            except Exception as error:
                fault = fault_of(error)
                if may_pass(error, fault):
                    raise PassingFault(fault.told) from None
                told = self._opened.credentials if self._opened else "not looked for"
                # Without its cause: what a client prints of a request may hold a signature.
                raise error_of(error, what, told, listing=listing) from None

        return patiently(what, self._patience, attempt)

    def _is_elsewhere(self) -> bool:
        """Say whether to ask another process; a function that gives credentials stays here."""
        return obstore_is_lost() and "credential_provider" not in self._options

    def _elsewhere(self, act: str, **more: Any) -> Response:
        return ask_elsewhere(request_of(act, self._url, self._options, self._patience, **more))

    def _store(self) -> Any:
        obstore_needed(f"{self._url!r}")
        with self._lock:
            if self._opened is None:
                self._opened = open_store(
                    self._place, self._options, self._patience, f"{self._url!r}"
                )
            return self._opened.store


def _file(found: Mapping[str, Any]) -> StoredFile:
    modified = found["last_modified"]
    modified_ns = int(modified.timestamp() * 1_000_000) * 1000 if modified else 0
    tag = found["e_tag"]
    if tag and not tag.startswith(('"', "W/")):
        tag = f'"{tag}"'  # Azure writes it with quotes in headers, and without in listings
    version = tag or f"{found['size']}-{modified_ns}"
    return StoredFile(found["path"], found["size"], version, modified_ns)


def _options(file: StoredFile, stretch: tuple[int, int]) -> dict[str, Any]:
    # A weak tag matches nothing by definition; what came is compared anyway.
    strong = file.version.startswith('"')
    return {"range": stretch, **({"if_match": file.version} if strong else {})}


def _check(what: str, file: StoredFile, meta: Mapping[str, Any]) -> None:
    now = _file({**meta, "path": file.name})
    if (now.size, now.version) != (file.size, file.version):
        raise ShardError(changed(what))
