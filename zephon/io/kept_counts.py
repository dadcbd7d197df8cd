"""Counts the files of a directory, but for those that were counted before and are the same since.

What is found is kept (``kept_catalog``) where looking took long: some twentieth of a second. So
small directories leave nothing in the cache root. Whether a shard was counted now or before, it is
the same shard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.io.catalog_file import Catalog
from zephon.io.data_file import DataFile
from zephon.io.each_file import each_file
from zephon.io.far_files import FarFile, FarFiles
from zephon.io.formats.file_format import FileFormat
from zephon.io.kept_catalog import KeptCatalog
from zephon.io.marks import mark_of
from zephon.io.shard import Shard
from zephon.io.shards import Shards
from zephon.io.stamps import file_stamps, stored_stamps

KEPT_SECONDS = 0.05
"""From so long on, what was found is kept; writing and reading it takes some thousandths."""

_OURS = "zephon."  # code of other formats may change from one start to the next
_FILE_SECONDS, _BYTE_SECONDS = 50e-6, 0.5e-9  # of looking at a local file that is cached
_FAR_SECONDS = 0.05  # of looking at a file of a far place: always kept
_LONG_SECONDS = 1.0  # looking took long, whatever was expected
_BEAT_SECONDS = 1.0
_SAVED_SECONDS = 30.0  # between two times when what was found so far is kept
_SAVED_SHARE = 20  # and at most one part in so many of the time goes there


@dataclass(frozen=True, slots=True)
class Counted:
    """What was found out about some files.

    shards: of all files, in their order.
    looked_at: how many of them were looked at now.
    kept_in: where what was found is kept; "" where that was not worthwhile, or there is a problem.
    problem: why what was found could not be kept.
    """

    shards: Shards
    looked_at: int
    kept_in: str = ""
    problem: str = ""


def counted_files(
    name: str,
    directory: Path | str,
    files: Sequence[str],
    known: FileFormat,
    listing: Mapping[str, Any] | None = None,
    far: FarFiles | None = None,
) -> Counted:
    """Find out about files, by what is kept of them or by counting them.

    Args:
        name: of the dataset, for messages.
        directory: an absolute path without links; or a url.
        files: their names, in bytewise order.
        known: their format.
        listing: what else decides which files are listed, so that listings of one directory in
            several ways do not take each other's place.
        far: the files, if they lie in a far place.

    Raises:
        ShardError: a file cannot be read.
    """
    kept = None
    if type(known).__module__.startswith(_OURS):
        kept = KeptCatalog(str(directory), known, listing or {})
    found = _Found(name, str(directory), files, known, kept, far)
    found.take()
    if kept is None or found.expected_seconds() < KEPT_SECONDS:
        return found.counted(lambda: None)
    with kept.building() as get_on:
        found.take()  # whoever was first may have looked at them meanwhile
        return found.counted(get_on)


class _Found:
    """Shards as they are found, one place a file."""

    def __init__(
        self,
        name: str,
        directory: str,
        files: Sequence[str],
        known: FileFormat,
        kept: KeptCatalog | None,
        far: FarFiles | None,
    ) -> None:
        self._kept = kept
        self._far = far
        self._name, self._directory, self._known, self._files = name, directory, known, files
        if far is None:
            self._stamps = file_stamps(directory, files)  # before any file is read
        else:
            self._stamps = stored_stamps([far.at(file).file for file in files])
        self._shards: list[Shard | None] = [None] * len(files)
        self._whole: Shards | None = None
        self.missing: list[int] = list(range(len(files)))

    def take(self) -> None:
        """Take what is kept of files with the same stamps."""
        if self._kept is None or not self.missing:
            return
        catalog = self._kept.read(self._directory)
        if catalog is None or catalog.stamps is None:
            return
        names, stamps = catalog.shards.names, catalog.stamps
        if names.to_pylist() == list(self._files) and stamps.same(self._stamps).all():
            self._whole, self.missing = catalog.shards, []
            self._whole.kept_in, self._whole.far = self._kept.path, self._far
            return
        at = {name: place for place, name in enumerate(names.to_pylist())}
        here = [place for place in self.missing if self._files[place] in at]
        there = [at[self._files[place]] for place in here]
        same = self._stamps.at(_places(here)).same(stamps.at(_places(there)))
        for place, kept, unchanged in zip(here, there, same.tolist(), strict=True):
            if unchanged:
                self._shards[place] = catalog.shards[kept]
        self.missing = [place for place in self.missing if self._shards[place] is None]

    def expected_seconds(self) -> float:
        """Guess how long it takes to look at the missing files, if they are cached."""
        if self._far is not None:
            return len(self.missing) * _FAR_SECONDS
        seconds = len(self.missing) * _FILE_SECONDS
        if not self._known.counts_quickly:
            sizes = self._stamps.bytes[_places(self.missing)]
            seconds += float(sizes.clip(0).sum()) * _BYTE_SECONDS
        return seconds

    def counted(self, get_on: Callable[[], None]) -> Counted:
        """Look at the missing files; keep what was found where that took long."""
        if self._whole is not None:
            return Counted(self._whole, 0)
        began = beat = saved = time.perf_counter()
        expected, pause = self.expected_seconds(), _SAVED_SECONDS
        files = [self._files[place] for place in self.missing]
        quickly = self._known.counts_quickly and self._far is None
        looks = each_file(self._count, self._name, self._directory, files, quickly=quickly)
        for place, shard in zip(self.missing, looks, strict=True):
            self._shards[place] = shard
            now = time.perf_counter()
            if now - beat > _BEAT_SECONDS:
                beat = now
                get_on()
            if now - saved > pause:
                self._keep()
                saved = time.perf_counter()
                pause = max(_SAVED_SECONDS, (saved - now) * _SAVED_SHARE)
        took = time.perf_counter() - began
        kept_in = problem = ""
        if self.missing and (expected >= KEPT_SECONDS or took >= _LONG_SECONDS):
            kept_in, problem = self._keep()
        shards = self._joined(range(len(self._files)))
        if self._kept is not None and len(self.missing) < len(self._files):
            shards.kept_in = self._kept.path
        return Counted(shards, len(self.missing), kept_in, problem)

    def _keep(self) -> tuple[str, str]:
        """Keep those shards that can be known by their stamps later on; say where, or why not."""
        if self._kept is None:
            return "", ""
        stamps = self._stamps
        settled = stamps.settled.tolist()
        sizes, times = stamps.bytes.tolist(), stamps.mtimes_ns.tolist()
        places = [
            place
            for place, shard in enumerate(self._shards)
            if shard is not None
            and settled[place]
            and (shard.bytes, shard.mtime_ns) == (sizes[place], times[place])
        ]
        if not places:
            return "", ""
        at = stamps.at(_places(places))
        catalog = Catalog(self._known.kind, self._joined(places), (), False, at)
        problem = self._kept.write(catalog)
        return ("", problem) if problem else (self._kept.path, "")

    def _joined(self, places: Sequence[int]) -> Shards:
        shards = [shard for place in places if (shard := self._shards[place]) is not None]
        layouts = self._known.layouts(shards)
        return Shards.of(shards, directory=self._directory, layouts=layouts, far=self._far)

    def _count(self, dataset: str, file: DataFile) -> Shard:
        if self._far is None:
            return self._known.count(dataset, file)
        return count_far(self._known, dataset, file.path, self._far.at(file.name))


def count_far(known: FileFormat, dataset: str, url: str, far: FarFile) -> Shard:
    """Count a file of a far place: there, or in a copy that is gone afterwards.

    Raises:
        ShardError: it is not of this format, is cut off, or is of another version now.
        AccessError, StorageError: the place does not give it.
    """
    if known.reads_far_files:
        return known.count(dataset, DataFile(url, far.file.name, far))
    with far.copied() as path:
        shard = known.count(dataset, DataFile(path, far.file.name))
        with open(path, "rb", buffering=0) as file:
            mark = mark_of(file.fileno(), shard.bytes)
    return replace(shard, path=url, mtime_ns=far.file.modified_ns, mark=mark)


def _places(places: Sequence[int]) -> NDArray[np.int64]:
    return np.array(places, np.int64)
