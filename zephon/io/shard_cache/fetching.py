"""How a shard comes here: to a file of its own, checked, synced to disk, and moved to its place.

Whatever stops the process or the machine, a shard's name leads to a whole file of the right
version or to none. Attempts that fail for a reason that may pass are made again, with pauses that
grow and differ from process to process; an error names the object, the attempts and the last
reason.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from zephon.errors import (
    AccessError,
    CacheError,
    InsufficientCacheSpaceError,
    ShardError,
    StorageError,
    told,
)
from zephon.io.own_directory import PRIVATE_FILE
from zephon.io.page_digest import page_digest
from zephon.io.shard_cache.disk import NO_SPACE, DiskError, PartFile, no_space, on_disk
from zephon.io.shard_cache.names import ShardNames
from zephon.io.shard_cache.room import Room
from zephon.io.shard_cache.told import Told, write_told
from zephon.io.storage.place import Place, StoredFile
from zephon.seeds import key as seed

_FIRST_PAUSE, _MOST_PAUSE = 0.1, 10.0
_BUFFER_BYTES = 1 << 20
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A shard in its place.

    dataset: its name, for messages. hashes: what an index tells of it, and shall be checked.
    """

    dataset: str
    place: Place
    file: StoredFile
    hashes: Mapping[str, str]

    @property
    def label(self) -> str:
        """Names it in messages."""
        return f"dataset {self.dataset!r}, shard {self.file.name!r} of {self.place.url}"


class Unwelcome(Exception):
    """There is no room for a shard that nobody waits for."""


class _Rejected(Exception):
    """What came is not what was asked for."""


class Fetch:
    """Brings one shard, with all attempts that it takes.

    Args:
        source: the shard.
        folder: of its dataset, in the cache.
        names: of its files there.
        part: path of the file to write first.
        room: asked before each attempt.
        attempts: the most.
        timeout_s: since the last byte, after which there is no further attempt.
        moved: is called with each number of bytes that came.
        between: is called before each attempt.
    """

    def __init__(
        self,
        source: Source,
        folder: str,
        names: ShardNames,
        part: str,
        *,
        room: Room,
        attempts: int,
        timeout_s: float,
        moved: Callable[[int], None],
        between: Callable[[], None],
    ) -> None:
        self._source = source
        self._folder = folder
        self._names = names
        self._part = part
        self._room = room
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._moved = moved
        self._between = between
        self._heard = time.monotonic()
        self._made_room = False

    def run(self, *, must: bool) -> None:
        """Bring it to its place.

        Args:
            must: somebody waits for it; else it comes only where there is room.

        Raises:
            Unwelcome: there is no room.
            InsufficientCacheSpaceError, CacheError: the disk does not take it.
            AccessError, ShardError, StorageError: its place does not give it.
        """
        began = time.monotonic()
        reasons: list[str] = []
        for attempt in range(1, self._attempts + 1):
            self._between()
            try:
                self._try(must=must)
                return
            except (AccessError, ShardError, CacheError):
                raise
            except DiskError as exc:
                self._free_or_raise(exc.cause)
                reasons.append(told(exc.cause))
            except (StorageError, OSError, _Rejected) as exc:
                reasons.append(str(exc) if isinstance(exc, _Rejected) else told(exc))
            if attempt == self._attempts or time.monotonic() - self._heard > self._timeout_s:
                break
            self._pause(attempt)
        before = "; ".join(dict.fromkeys(reasons[:-1]))
        raise StorageError(
            f"{self._source.label}: it must come whole, and {len(reasons)} attempts in "
            f"{time.monotonic() - began:.1f} s failed, the last one with: {reasons[-1]}"
            + (f" (before: {before})" if before else "")
            + "; try again later, or raise io_options.cache.download_retry and download_timeout"
        )

    def _try(self, *, must: bool) -> None:
        file, names = self._source.file, self._names
        try:
            with self._opened() as raw:
                if not self._room.admit(self._source.label, file.size, must=must):
                    raise Unwelcome
                self._write(raw)
                found = self._checked()
                with on_disk():
                    os.utime(self._part, ns=(names.mtime_ns, names.mtime_ns))
                    os.fsync(raw.fileno())
                    place = os.path.join(self._folder, names.told)
                    write_told(place, found, os.path.join(self._folder, f"{self._part}.told"))
                    os.rename(self._part, os.path.join(self._folder, names.shard))
        finally:
            for left in (self._part, f"{self._part}.told"):
                with contextlib.suppress(OSError):
                    os.unlink(left)

    @contextmanager
    def _opened(self) -> Iterator[PartFile]:
        with on_disk():
            os.makedirs(self._folder, 0o700, exist_ok=True)  # it may have been cleared
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            raw = PartFile(os.open(self._part, flags, PRIVATE_FILE), "r+b")
        with raw:
            yield raw

    def _write(self, raw: PartFile) -> None:
        target = io.BufferedRandom(raw, _BUFFER_BYTES)
        try:
            self._source.place.fetch(self._source.file, cast(BinaryIO, target), self._hear)
            target.flush()
        except Exception as exc:
            raw.failed = raw.failed or no_space(exc)
            if raw.failed is not None:
                raise DiskError(raw.failed) from exc
            raise
        finally:
            with contextlib.suppress(OSError, ValueError):
                target.detach()  # or it would close the file, and flush what has failed

    def _hear(self, count: int) -> None:
        self._heard = time.monotonic()
        self._moved(count)

    def _checked(self) -> Told:
        """Compare what came with what was told of it.

        Raises:
            _Rejected: it is something else.
        """
        file, wanted = self._source.file, dict(self._source.hashes)
        if version := _SHA256.fullmatch(file.version):
            wanted["sha256"] = version[1]
        with on_disk(), open(self._part, "rb", buffering=0) as raw:
            size = os.fstat(raw.fileno()).st_size
            if size != file.size:
                raise _Rejected(f"{file.size:,} bytes were told, and {size:,} came")
            digest = page_digest(raw, size).hex()
            for name, value in wanted.items():
                raw.seek(0)
                found = hashlib.file_digest(raw, name).hexdigest()
                if found != value.lower():
                    raise _Rejected(f"its {name} must be {value}, and is {found}")
        return Told(
            name=file.name,
            version=file.version,
            size=file.size,
            mtime_ns=self._names.mtime_ns,
            digest=digest,
            hashes={name: value.lower() for name, value in wanted.items()},
        )

    def _free_or_raise(self, cause: OSError) -> None:
        """Remove what nobody holds from a disk that is full; once."""
        size = self._source.file.size
        if cause.errno == errno.ENOENT and not self._made_room:  # cleared while it was written
            self._made_room = True
            return
        if cause.errno not in NO_SPACE:
            raise CacheError(
                f"shard cache: {self._part!r} must be written, but {cause.strerror or cause}; name "
                "another io_options.cache.root"
            ) from cause
        freed = 0 if self._made_room else self._room.free(size)
        self._made_room = True
        if not freed:
            raise InsufficientCacheSpaceError(
                f"shard cache: {self._folder!r} needs {size:,} bytes for {self._source.label}, and "
                f"its disk or quota is full ({cause.strerror}); free some, set "
                "io_options.cache.limit_bytes, or name a root on another disk"
            ) from cause

    def _pause(self, attempt: int) -> None:
        """Wait half of a time that doubles, and a part of the other half that is our own."""
        longest = min(_FIRST_PAUSE * 2 ** (attempt - 1), _MOST_PAUSE)
        drawn = seed(self._part, attempt) / 2**64
        time.sleep(longest * (1 + drawn) / 2)
