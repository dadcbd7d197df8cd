"""A named collection of shards. It knows where rows lie and how many; it reads none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import DatasetError, NotYetError, nearest
from zephon.io.fields import Field
from zephon.io.formats import FORMATS
from zephon.io.formats.memory import Memory, in_memory_shard
from zephon.io.in_memory import InMemoryShard
from zephon.io.listing import list_directory
from zephon.io.location import check_name, local_directory
from zephon.io.shard import Shard

__all__ = ["Dataset", "InMemoryShard", "Shard"]

_FILE_FORMATS = {kind: known.suffixes for kind, known in FORMATS.items() if known.suffixes}
_NOT_YET = ("lance", "litdata", "mds", "vortex")
_COUNTING_THREADS = 8


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """A descriptor of a dataset; make one with ``from_path`` or ``from_dict``.

    name: how mixtures, checkpoints and messages call it.
    kind: "parquet", "jsonl" or "in_memory".
    path: the absolute directory; None for rows in memory.
    shards: in bytewise order of their names; for rows in memory, ascending by key.
    passed_over: entries of the directory that are not read, each with the reason.
    shard_ids: the user's ids of rows in memory; None where ids are positions.
    seen_fields: what ``fields()`` gives.
    fields_complete: True if every row is known to have all those fields and no other; False if
        only some rows were looked at, or shards differ.

    >>> dataset = Dataset.from_dict("toy", {7: InMemoryShard([{"text": "a"}, {"text": "b"}])})
    >>> dataset
    Dataset('toy', in_memory, 2 rows in 1 shard)
    >>> dataset.ids().tolist(), dataset.counts().tolist(), dataset.total()
    ([7], [2], 2)
    """

    name: str
    kind: str
    path: str | None
    shards: tuple[Shard, ...]
    passed_over: tuple[str, ...] = ()
    shard_ids: tuple[int, ...] | None = None
    seen_fields: tuple[Field, ...] = field(default=(), compare=False)
    fields_complete: bool = field(default=False, compare=False)
    _counts: NDArray[np.int64] = field(init=False, compare=False)
    _bytes: NDArray[np.int64] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "_counts", _fixed([shard.rows for shard in self.shards]))
        object.__setattr__(self, "_bytes", _fixed([shard.bytes for shard in self.shards]))

    @classmethod
    def from_path(
        cls, name: str, path: str | os.PathLike[str], *, fmt: str | None = None
    ) -> Dataset:
        """Open a local directory of Parquet or JSONL files and count their rows.

        Args:
            name: usable as one part of a path.
            path: the directory; only its direct children are read.
            fmt: "parquet" or "jsonl"; None decides by the files' suffixes.

        Raises:
            DatasetNotFoundError: nothing lies at the path.
            DatasetError: a wrong name or format, no data file, or files of two formats.
            NotYetError: a store or a format that is documented but not there yet.
            ShardError: a data file cannot be read.
        """
        check_name(name)
        _check_format(name, fmt)
        directory = local_directory(name, path)
        listing = list_directory(name, directory, _FILE_FORMATS, fmt)
        shards = _count(name, listing.kind, [directory / file for file in listing.files])
        fields, complete = FORMATS[listing.kind].fields(name, shards)
        return cls(
            name=name,
            kind=listing.kind,
            path=str(directory),
            shards=shards,
            passed_over=listing.passed_over,
            seen_fields=fields,
            fields_complete=complete,
        )

    @classmethod
    def from_dict(cls, name: str, shards: Mapping[int, InMemoryShard]) -> Dataset:
        """Make a dataset of rows in memory.

        Args:
            name: usable as one part of a path.
            shards: rows by shard id.

        Raises:
            DatasetError: a wrong name, an id that is no int, or rows in anything but an
                ``InMemoryShard``.
        """
        check_name(name)
        for key, rows in shards.items():
            if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
                raise DatasetError(
                    f"dataset {name!r}: shard ids must be int, got {key!r}; number the shards"
                )
            if not isinstance(rows, InMemoryShard):
                raise DatasetError(
                    f"dataset {name!r}, shard {key}: rows must be an InMemoryShard, got a "
                    f"{type(rows).__name__}; pass InMemoryShard(rows)"
                )
        keys = sorted(int(key) for key in shards)
        described = tuple(in_memory_shard(key, shards[key]) for key in keys)
        fields, complete = FORMATS[Memory.kind].fields(name, described)
        return cls(
            name=name,
            kind=Memory.kind,
            path=None,
            shards=described,
            shard_ids=tuple(keys),
            seen_fields=fields,
            fields_complete=complete,
        )

    @property
    def backend(self) -> Mapping[str, Any]:
        """The kind, and the path or the shards in memory by id; read-only."""
        if self.shard_ids is None:
            return MappingProxyType({"kind": self.kind, "path": self.path})
        memory = (shard.memory for shard in self.shards)
        rows = dict(zip(self.shard_ids, memory, strict=True))
        return MappingProxyType({"kind": self.kind, "shards": rows})

    def ids(self) -> NDArray[np.int64]:
        """Shard ids in ascending order, shape [shards]: positions, or the keys of ``from_dict``."""
        return _fixed(range(len(self.shards)) if self.shard_ids is None else self.shard_ids)

    def counts(self) -> NDArray[np.int64]:
        """Rows of each shard, shape [shards], int64, aligned with ``ids()``; read-only."""
        return self._counts

    def raw_bytes(self) -> NDArray[np.int64]:
        """Bytes of each shard, shape [shards], int64: file sizes, or an estimate in memory."""
        return self._bytes

    def total(self) -> int:
        """Rows of all shards."""
        return int(self._counts.sum())

    def __len__(self) -> int:
        return self.total()

    def max_count(self) -> int:
        """Rows of the largest shard; 0 without shards."""
        return int(self._counts.max(initial=0))

    def shard_count(self) -> int:
        """Number of shards, empty ones too."""
        return len(self.shards)

    def mean_row_bytes(self) -> float:
        """Mean bytes of a row once decompressed, all columns; 0.0 without rows. Sizes tasks."""
        total = self.total()
        return sum(shard.decoded_bytes for shard in self.shards) / total if total else 0.0

    def mean_group_bytes(self) -> float:
        """Mean bytes of a decoded row group; 0.0 without rows."""
        groups = sum(len(shard.group_rows) for shard in self.shards)
        return self.mean_row_bytes() * self.total() / groups if groups else 0.0

    def fields(self) -> tuple[Field, ...]:
        """Top-level columns: of all footers, or of the first 64 rows for JSONL and memory."""
        return self.seen_fields

    def manifest(self) -> tuple[tuple[str, int, int], ...]:
        """What the dataset is made of: (name, rows, bytes) of each shard."""
        return tuple((shard.name, shard.rows, shard.bytes) for shard in self.shards)

    def __repr__(self) -> str:
        plural = "" if len(self.shards) == 1 else "s"
        return (
            f"Dataset({self.name!r}, {self.kind}, {self.total()} rows in {len(self.shards)} "
            f"shard{plural})"
        )

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Dataset:
        return self  # frozen; rows in memory stay the user's

    def __reduce__(self) -> tuple[Any, ...]:
        made = (self.name, self.kind, self.path, self.shards, self.passed_over, self.shard_ids)
        return Dataset, (*made, self.seen_fields, self.fields_complete)


def _check_format(name: str, fmt: str | None) -> None:
    if fmt is None or (isinstance(fmt, str) and fmt in _FILE_FORMATS):
        return
    if isinstance(fmt, str) and fmt in _NOT_YET:
        raise NotYetError(
            f"dataset {name!r}: format {fmt!r} is not supported yet; convert the files to "
            f"Parquet or JSONL"
        )
    raise DatasetError(
        f"dataset {name!r}: Unknown format kind {fmt!r}; "
        f"{nearest(str(fmt), [*_FILE_FORMATS, *_NOT_YET])}"
    )


def _count(name: str, kind: str, paths: list[Path]) -> tuple[Shard, ...]:
    known = FORMATS[kind]
    if len(paths) == 1:
        return (known.count(name, paths[0]),)
    pool = ThreadPoolExecutor(min(_COUNTING_THREADS, len(paths)), "zephon-count")
    try:
        return tuple(pool.map(lambda path: known.count(name, path), paths))
    finally:
        pool.shutdown(cancel_futures=True)


def _fixed(values: Any) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array
