"""A file that holds a shard: where it lies, and what its dataset calls it."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataFile(os.PathLike[str]):
    """What is opened to count a shard; ``open`` and ``os.stat`` take it as they take a path.

    path: of the file, absolute.
    name: the shard's: relative to the dataset's directory, parts joined by "/".

    >>> file = DataFile("/data/en/1.parquet", "en/1.parquet")
    >>> os.fspath(file), file.name
    ('/data/en/1.parquet', 'en/1.parquet')
    """

    path: str
    name: str

    def __fspath__(self) -> str:
        return self.path
