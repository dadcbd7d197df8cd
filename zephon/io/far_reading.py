"""How rows of far datasets are read: out of the shard cache, or where they lie.

The row groups are the same whichever it is, and so are the keys of caches of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from zephon.column_steps import Statistics
from zephon.errors import PlanError
from zephon.io.fields import Column
from zephon.io.formats.format import DecodedGroup, Format, GroupReader, Texts
from zephon.io.near_shards import NearShards
from zephon.io.raw_rows import RawRow
from zephon.io.shard import Shard
from zephon.io.shard_cache.cache import ShardCache
from zephon.io.shard_cache.settings import CacheSettings

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FarReading:
    """What options say of reading far datasets; can be sent to other processes.

    cache: of the shard cache; None: there is none.
    direct: what can be read where it lies is read there.
    """

    cache: CacheSettings | None = None
    direct: bool = False

    @classmethod
    def of(cls, options: Any) -> FarReading:
        """Take up ``StoreOptions``."""
        cache = CacheSettings.of(options.cache) if options.cache.enabled else None
        return cls(cache, options.direct)

    def cached(self, dataset: Dataset) -> CacheSettings | None:
        """Give the cache that a dataset is read through; None: it is read where it lies.

        Raises:
            PlanError: its files must be copied whole, and there is no cache.
        """
        if dataset.shards.far is None:
            return None
        if dataset.format.reads_far_files and (self.direct or self.cache is None):
            return None
        if self.cache is None:
            raise PlanError(
                f"dataset {dataset.name!r}: Cannot read remote dataset root {dataset.path!r} "
                f"without the shard cache; set cache.enabled=True. Files of format {dataset.kind} "
                "must be copied whole: options(io_options={'cache': {'enabled': True}})"
            )
        return self.cache

    def reader(
        self, dataset: Dataset, columns: tuple[Column, ...], *, payload: bool
    ) -> GroupReader:
        """Make what decodes row groups of a dataset, far or not.

        Raises:
            DatasetError: a shard lacks a column, or has it in another type.
            PlanError: as ``cached``.
            CacheError: the cache cannot be used, or not for this dataset.
        """
        settings = self.cached(dataset)
        if settings is None:
            return dataset.format.reader(dataset.name, dataset.shards, columns, payload=payload)
        return CachedGroups(dataset, columns, settings, payload=payload)


FAR = FarReading()
"""Without options: what can be read where it lies is."""


def raw_rows(
    dataset: Dataset, groups: GroupReader, shard: int, group: int, rows: Sequence[int]
) -> list[RawRow]:
    """Do as ``Format.raw_rows`` with what ``FarReading.reader`` made."""
    if isinstance(groups, CachedGroups):
        return groups.raw_rows(dataset.format, shard, group, rows)
    return dataset.format.raw_rows(groups, shard, group, rows)


class CachedGroups(GroupReader):
    """Decodes row groups out of shards that the cache holds while they are read."""

    def __init__(
        self,
        dataset: Dataset,
        columns: tuple[Column, ...],
        settings: CacheSettings,
        *,
        payload: bool,
    ) -> None:
        assert dataset.shards.far is not None
        self._dataset = dataset.name
        self._far = dataset.shards.far
        self._names = dataset.shards.names
        self._cache = ShardCache.opened(settings)
        if self._far.listed:
            files = [self._far.at(name).file for name in self._names.to_pylist()]
            self._cache.check_planned(dataset.name, self._far.place, files)
        here = NearShards(dataset.shards, self._located)
        self._inner = dataset.format.reader(dataset.name, here, columns, payload=payload)

    def read(self, shard: int, group: int) -> DecodedGroup:
        """Decode one row group."""
        return self._held(shard, lambda: self._inner.read(shard, group))

    def statistics(self, shard: int, groups: Sequence[int]) -> Sequence[Mapping[str, Statistics]]:
        """Say what the file tells."""
        return self._held(shard, lambda: self._inner.statistics(shard, groups))

    def keep_texts(self, texts: Texts) -> None:
        """Let text that cost much to have be kept."""
        self._inner.keep_texts(texts)

    def leave_rows(self) -> None:
        """Leave it to whoever looks at a whole row to find that it is bad."""
        self._inner.leave_rows()

    def raw_rows(self, known: Format, shard: int, group: int, rows: Sequence[int]) -> list[RawRow]:
        """Give rows as they lie in the file."""
        return self._held(shard, lambda: known.raw_rows(self._inner, shard, group, rows))

    def _held(self, shard: int, read: Callable[[], _T]) -> _T:
        far = self._far.at(self._names[shard].as_py())
        return self._cache.reading(self._dataset, far.place, far.file, lambda _: read())

    def _located(self, shard: Shard, place: int) -> Shard:
        del place
        far = self._far.at(shard.name)
        path, mtime_ns = self._cache.path_of(self._dataset, far.place, far.file)
        with contextlib.suppress(OSError):  # it is not here yet
            mtime_ns = os.stat(path).st_mtime_ns  # as the disk could write it down
        return replace(shard, path=path, mtime_ns=mtime_ns, far=None)
