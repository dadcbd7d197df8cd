"""Looks at the files of a directory, several at a time where that is worth it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from zephon.io.data_file import DataFile

COUNTING_THREADS = 8
_ALONE_SECONDS = 0.005  # 50 Parquet footers, of which 5 take as long as starting the threads

Found = TypeVar("Found")


def each_file(
    look: Callable[[str, DataFile], Found],
    name: str,
    directory: Path | str,
    files: Sequence[str],
    threads: int = COUNTING_THREADS,
    *,
    quickly: bool = False,
) -> Iterator[Found]:
    """Look at files, several at a time; give what was found, in the order of the files.

    Args:
        look: looks at one.
        name: of the dataset, for messages.
        directory: where they are; or a url.
        files: their names, relative to the directory.
        threads: how many files at a time.
        quickly: a look is expected to take less than a thread takes to start; so there are none
            while that is so.
    """
    folder = str(directory)

    def there(file: str) -> DataFile:
        return DataFile(os.path.join(folder, file), file)

    began, alone = time.perf_counter(), 0
    while alone < len(files) and (
        len(files) == 1 or (quickly and time.perf_counter() - began < _ALONE_SECONDS)
    ):
        yield look(name, there(files[alone]))
        alone += 1
    if alone == len(files):
        return
    pool = ThreadPoolExecutor(max(1, min(threads, len(files) - alone)), "zephon-count")
    try:
        yield from pool.map(lambda file: look(name, there(file)), files[alone:])
    finally:
        pool.shutdown(cancel_futures=True)
