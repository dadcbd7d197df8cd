"""What the shards of a dataset hold, as far as a checkpoint must know it: marks, times, hashes.

Of up to 4,096 shards everything is known, and files are opened for it where nothing tells their
marks. Of more files only that is known which opening the dataset has told anyway: marks by an index
or a catalogue, times where files were counted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zephon.errors import ShardError
from zephon.io.data_file import DataFile
from zephon.io.dataset import Dataset
from zephon.io.each_file import each_file
from zephon.io.far_files import FarFile, FarFiles
from zephon.io.marks import full_hash, is_hash, mark_of, number_of
from zephon.io.recorded import RECORDED_SHARDS
from zephon.io.row_marks import full_hash_of_rows, mark_of_rows
from zephon.io.shard import Shard
from zephon.io.shards import Shards
from zephon.io.storage.place import StoredFile

Hashes = NDArray[np.uint64]

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What is known of each shard; arrays of shape [shards], or None where it is not known of all.

    marks: content marks (``marks``, ``row_marks``), uint64.
    written: when each file was last written, in microseconds since 1970, int64; None in memory.
    full_hashes: the first 48 bits of a hash of the whole shard, uint64.
    versions: 48 bits of the version that a far place gives each file, uint64.
    url: of the far place, pinned; "" where there is none.
    """

    marks: Hashes | None
    written: NDArray[np.int64] | None
    full_hashes: Hashes | None
    versions: Hashes | None = None
    url: str = ""


def contents_told(dataset: Dataset) -> Contents:
    """Say what the shards held when they were told of; opens files only where nothing has told it.

    4,096 files take some 10 ms where an index tells their marks, else 0.1 to 0.7 s of processor
    time, the first time.

    Raises:
        ShardError: a file cannot be read, or was written to since its rows were counted.
    """
    shards = dataset.shards
    if shards.far is not None:
        return _of_far(shards, shards.far)
    if len(shards) > RECORDED_SHARDS and shards.memory is None:
        written = None if shards.mtimes_ns is None else _written(shards.mtimes_ns)
        return Contents(shards.marks, written, shards.full_hashes)
    if shards.marks is None:
        return replace(contents_seen(dataset), full_hashes=shards.full_hashes)
    times = _each(dataset, lambda shard, _: shard.written_ns())
    return Contents(shards.marks, _written(np.array(times)), shards.full_hashes)


def contents_seen(dataset: Dataset, places: Sequence[int] | None = None) -> Contents:
    """Look what shards hold now, whatever an index tells; a file is marked once while it stays.

    Args:
        dataset: whose shards.
        places: which of them; None: all.

    Raises:
        ShardError: as ``contents_told``.
    """
    shards = dataset.shards
    if shards.far is not None:
        return _of_far(shards, shards.far, places)
    if shards.memory is not None:
        few = shards.memory if places is None else [shards.memory[place] for place in places]
        return Contents(np.array([mark_of_rows(rows) for rows in few], np.uint64), None, None)

    def look(shard: Shard, place: int) -> tuple[int, int]:
        with _opened(dataset.name, shard) as (file, status):
            written, changed = status.st_mtime_ns, status.st_ctime_ns
            if place not in shards.seen or shards.seen[place][0] != changed:
                shards.seen[place] = changed, mark_of(file.fileno(), shard.bytes)
            return written, shards.seen[place][1]

    found = _each(dataset, look, places)
    times = np.array([time for time, _ in found], np.int64)
    marks = np.array([mark for _, mark in found], np.uint64)
    return Contents(marks, _written(times), None)


def hashed_whole(dataset: Dataset, places: Sequence[int] | None = None) -> Hashes:
    """Read all of some shards and hash it; two gigabytes a second and thread, at best.

    Args:
        dataset: whose shards.
        places: which of them; None: all.

    Raises:
        ShardError: as ``contents_told``; or a file is not what an index tells of it.
    """
    shards = dataset.shards
    if shards.memory is not None:
        few = shards.memory if places is None else [shards.memory[place] for place in places]
        return np.array([full_hash_of_rows(rows) for rows in few], np.uint64)

    def read(shard: Shard, place: int) -> int:
        far = shard.check_far(dataset.name)
        if far is not None:
            found = _hashed_far(far)
        else:
            with _opened(dataset.name, shard) as (file, _):
                found = number_of(full_hash(file))
        if shard.full_hash not in (None, found):
            raise shard.stale(dataset.name, "it holds something else in as many bytes")
        return found

    return np.array(_each(dataset, read, places), np.uint64)


def _of_far(shards: Shards, far: FarFiles, places: Sequence[int] | None = None) -> Contents:
    """Say what a listing, or an index of very many files, tells of files of a far place.

    Raises:
        ShardError: a file that an index tells of is not there.
        AccessError, StorageError: the place does not tell.
    """
    if len(shards) <= RECORDED_SHARDS:
        far.list_all()
    which = slice(None) if places is None else np.array(places, np.int64)
    marks = None if shards.marks is None else shards.marks[which]
    full = None if shards.full_hashes is None else shards.full_hashes[which]
    url = far.place.url
    if not far.listed:
        return Contents(marks, None, full, url=url)
    names = shards.names.to_pylist()
    files = [far.at(names[at]).file for at in (range(len(names)) if places is None else places)]
    written = np.array([file.modified_ns for file in files], np.int64)
    versions = np.array([_version_number(file) for file in files], np.uint64)
    if full is None and files and all(_is_hash(file) for file in files):
        full = np.array([number_of(file.version) for file in files], np.uint64)
    times = _written(written) if written.all() else None
    return Contents(marks, times, full, versions, url)


def _version_number(file: StoredFile) -> int:
    return number_of(hashlib.sha256(file.version.encode()).hexdigest())


def _is_hash(file: StoredFile) -> bool:
    return is_hash(file.version, 64)  # the hub's large files: the SHA-256 of their content


def _hashed_far(far: FarFile) -> int:
    """Hash a file of a far place, in a copy that is gone afterwards, or by its version."""
    if _is_hash(far.file):
        return number_of(far.file.version)
    with far.copied() as path, open(path, "rb", buffering=0) as file:
        return number_of(full_hash(file))


def _written(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    return times_ns // 1000


@contextmanager
def _opened(dataset: str, shard: Shard) -> Iterator[tuple[FileIO, os.stat_result]]:
    """Open a file, which must have the size and time that were told of it."""
    shard.written_ns()  # says what is missing where an index tells of it
    try:
        shard.check_written(dataset, os.stat(shard.path))  # opening a pipe would wait
        with open(shard.path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            shard.check_written(dataset, status)
            yield file, status
    except ShardError:
        raise
    except OSError as exc:
        raise ShardError(
            f"dataset {dataset!r}, shard {shard.name!r}: the file must be readable to tell what it "
            f"holds, got {exc}; put it back"
        ) from exc


def _each(
    dataset: Dataset, look: Callable[[Shard, int], Found], places: Sequence[int] | None = None
) -> list[Found]:
    """Look at files, several at a time where it takes long."""
    shards = dataset.shards
    names = shards.names.to_pylist()
    at = {names[place]: place for place in (range(len(names)) if places is None else places)}

    def one(_: str, file: DataFile) -> Found:
        place = at[file.name]
        return look(shards[place], place)

    return list(each_file(one, dataset.name, shards.directory, [*at], quickly=True))
