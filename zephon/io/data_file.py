"""A file that holds a shard: where it lies, and what its dataset calls it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from zephon.io.far_files import FarFile


@dataclass(frozen=True, slots=True)
class DataFile(os.PathLike[str]):
    """What is opened to count a shard; ``open`` and ``os.stat`` take it as they take a path.

    path: of the file, absolute.
    name: the shard's: relative to the dataset's directory, parts joined by "/".
    far: the file, if it lies in a far place and is read there; then ``path`` is a url.

    >>> file = DataFile("/data/en/1.parquet", "en/1.parquet")
    >>> os.fspath(file), file.name
    ('/data/en/1.parquet', 'en/1.parquet')
    """

    path: str
    name: str
    far: FarFile | None = None

    def __fspath__(self) -> str:
        return self.path
